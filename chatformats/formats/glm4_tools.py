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
from ..values import (
    as_messages,
    fields,
    is_mapping,
    iterated,
    roles_of,
    to_indented_json,
    to_str,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final, Literal

    from ..conversation import Conversation, Message, Recent
    from ..formatter import Writer
    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser
    from ..spans import Rendered

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
    # None of GLM-4's own tokens is in what this template writes.
    control_tokens = ()
    content_parts = ()
    stop = ()

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place."""
        if continue_final_message:
            return self.render_segments(
                messages,
                tools,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
            ).text
        out = Sink()
        self._write(out, messages, tools, add_generation_prompt)
        return "".join(out.pieces)

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> Rendered:
        """Return the same prompt, which knows who wrote each of its characters."""
        from ..spans import SpanSink

        out = SpanSink(self, messages, add_generation_prompt, continue_final_message)
        self._write(out, out.messages, tools, add_generation_prompt)
        return out.rendered()

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        segments: bool = False,
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new."""
        from ..conversation import Conversation

        return Conversation(self, messages, tools, segments=segments)

    def is_prefix_stable(self) -> bool:
        """Say whether appended messages ever change the prompt before them: they do not."""
        return True

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
    ) -> str | None:
        """Return what leads from the prompt and what the model wrote to the prompt for the turn after it.

        ``None`` where the template would rewrite either: see ``Conversation.bridge``.
        """
        return self.conversation(messages, tools).bridge(completion, new_messages)

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        since: tuple[int, int] | None = None,
    ) -> None:
        # ``since``: the first message to write and the rounds before it, where the rest is written.
        scaffold, content, reply_content = out.scaffold, out.content, out.reply.content
        if since is None:
            # An empty mapping is as good as no messages; one with keys has no first message.
            sequence = () if not messages and is_mapping(messages) else as_messages(messages)
            first = 0
            if sequence:
                message = fields(sequence[0], ("messages", 0))
                if message.get("role") == "system":
                    # Read and trimmed, never printed: what cannot be turned into text still fails.
                    to_str(message.get("content", UNDEFINED), ("messages", 0, "content"))
                    first = 1

            if tools is not None:
                out.tools(_write_tools, tools)
            rounds = 0
        else:
            sequence = messages
            first, rounds = since

        last = len(sequence) - 1
        role: object = None
        for index, message in out.turns(sequence[first:], first):
            try:
                role = message["role"]
                text = message["content"]
            except (LookupError, TypeError):
                message = fields(message, ("messages", index))
                role = message.get("role")
                text = message.get("content", UNDEFINED)
            if role == "user":
                if not isinstance(text, str):
                    raise expected("a string", text, ("messages", index, "content"))
                scaffold(f"[Round {rounds}]\n问：")
                content(text)
                rounds += 1
            elif role == "assistant":
                if not isinstance(text, str):
                    raise expected("a string", text, ("messages", index, "content"))
                scaffold(_ANSWER)
                reply_content(text)
                if add_generation_prompt or index < last:
                    scaffold("\n")

        if add_generation_prompt:
            if first > last:
                raise ChatFormatError("expected a message to answer", "messages")
            if role != "assistant":
                scaffold(_ANSWER)

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.glm4_tools import GLM4ToolsParser

        return GLM4ToolsParser(self.stop, prompt, tools)

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: int | None,
        add_generation_prompt: bool,
        tools: Tools | None,
    ) -> None:
        if state is None:
            self._write(out, messages.items, tools, add_generation_prompt)
        else:
            self._write(out, messages, tools, add_generation_prompt, (start, state))

    def _state(self, messages: Recent, start: int, state: int | None) -> int:
        # The number of rounds.
        return (state or 0) + roles_of(messages.settled(start)).count("user")

    def _rewrites(self) -> Mapping[str, Literal["head", "turns"]]:
        return {}

    def _end_of_turn(self) -> str:
        return ""

    def _as_message(self, sampled: str, prompt: str) -> Message:
        return {"role": "assistant", "content": sampled}


def _write_tools(out: Writer, tools: Tools) -> None:
    scaffold, content = out.scaffold, out.content
    scaffold(_TOOL_INSTRUCTION)
    for index, tool in enumerate(iterated(tools, ("tools",))):
        content(to_indented_json(tool, ("tools", index)))
        scaffold("\n\n")
