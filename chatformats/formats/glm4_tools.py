# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""GLM-4 tool calling, as vLLM's template writes it: numbered rounds.

Reference: ``reference/glm4-tools.jinja``. Differs from what one would expect:

- a system message is read and never printed;
- ``tools=[]`` still prints the instructions, only ``None`` leaves them out;
- tool results and tool calls are not printed, a message of any role but user and assistant is skipped;
- rounds count from 0 (FastChat's ChatGLM formats count from 1);
- a closing system message leaves no last message for the generation prompt to look at: an error.
"""

from __future__ import annotations

from ..errors import ChatFormatError, expected
from ..formatter import Sink
from ..undefined import UNDEFINED
from ..values import elements, fields, is_mapping, iterated, to_indented_json, to_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser

_TOOL_INSTRUCTION: Final = """\
You have access to the following tools. When you need to call a tool, you MUST use the following format:

<tool_call>function_name
<arg_key>parameter_name</arg_key>
<arg_value>parameter_value</arg_value>
</tool_call>

Important rules:
- Always wrap tool calls with <tool_call>...</tool_call> tags
- Put the function name on the first line after <tool_call>
- Use <arg_key> and <arg_value> tags for each parameter
- If a parameter value is a string, keep it as-is. If it's a number or boolean, convert it appropriately
- You can make multiple tool calls if needed
- If no tool is suitable, respond with regular text

Available tools:


"""
_ANSWER: Final = "\n答："


class GLM4ToolsFormatter:
    """Format a conversation as GLM-4's numbered rounds, with tools before the first.

    >>> GLM4ToolsFormatter().render([{"role": "user", "content": "Hi"}], add_generation_prompt=True)
    '[Round 0]\\n问：Hi\\n答：'
    """

    __slots__ = ()
    name = "glm4-tools"
    template = "vLLM's for tool calling with GLM-4 (tool_chat_template_glm4.jinja)"
    variables = ()

    def render(
        self, messages: Messages, tools: Tools | None = None, *, add_generation_prompt: bool = False
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place."""
        out = Sink()
        self._write(out, messages, tools, add_generation_prompt)
        return out.text()

    def _write(self, out: Sink, messages: Messages, tools: Tools | None, add_generation_prompt: bool) -> None:
        scaffold, content = out.scaffold, out.content
        # An empty mapping is as good as no messages, a mapping with keys has no first message.
        sequence = () if is_mapping(messages) and not messages else elements(messages, "messages")
        first = 0
        if sequence:
            message = fields(sequence[0], "messages[0]")
            if message.get("role") == "system":
                # Read and trimmed, never printed: what cannot be turned into text still fails.
                to_str(message.get("content", UNDEFINED), "messages[0].content")
                first = 1

        if tools is not None:
            scaffold(_TOOL_INSTRUCTION)
            for index, tool in enumerate(iterated(tools, "tools")):
                content(to_indented_json(tool, f"tools[{index}]"))
                scaffold("\n\n")

        last = len(sequence) - 1
        rounds = 0
        role: object = UNDEFINED
        for index, turn in out.turns(sequence[first:], first):
            message = turn if isinstance(turn, dict) else fields(turn, f"messages[{index}]")
            role = message.get("role")
            if role == "user":
                text = message.get("content", UNDEFINED)
                if not isinstance(text, str):
                    raise expected("a string", text, f"messages[{index}].content")
                scaffold(f"[Round {rounds}]\n问：")
                content(text)
                rounds += 1
            elif role == "assistant":
                text = message.get("content", UNDEFINED)
                if not isinstance(text, str):
                    raise expected("a string", text, f"messages[{index}].content")
                scaffold(_ANSWER)
                content(text)
                if add_generation_prompt or index < last:
                    scaffold("\n")

        if add_generation_prompt:
            if first > last:
                raise ChatFormatError("expected a message to answer", "messages")
            if role != "assistant":
                scaffold(_ANSWER)

    stop: tuple[str, ...] = ()

    def parse(self, completion: str, *, prompt: str | None = None, tools: Tools | None = None) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        parser = self.parser(prompt, tools)
        parser.feed(completion)
        return parser.close()

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.glm4_tools import GLM4ToolsParser

        return GLM4ToolsParser(self.stop, prompt, tools)
