# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""JoyAI-LLM-Flash, as its own template writes it.

Reference: ``reference/joyai-llm-flash.jinja``. Differs from what one would expect:

- system messages are gathered from the whole conversation and printed at the top; without one a default
  prompt is printed;
- reasoning content is never printed;
- a message of an unknown role is skipped;
- several assistant messages in a row share one ``<|Assistant|>``;
- arguments in a JSON string are read as JSON first, and must be an object;
- in arguments, what is no container is printed by Python's ``str()``: ``True``, ``None``.
"""

from __future__ import annotations

import json

from ..errors import ChatFormatError, expected
from ..formatter import Sink
from ..undefined import UNDEFINED
from ..values import fields, has_elements, is_mapping, iterated, to_str
from ._xml_tools import argument_text, write_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from ..formatter import Writer
    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser

_DEFAULT_SYSTEM_PROMPT: Final = (
    "You are JoyAI , a large language model trained by JD（京东）that can interact with a computer to "
    "solve tasks. Answer as concisely as possible."
)
_USER: Final = "<|User|>"
_ASSISTANT: Final = "<|Assistant|>"
_END_OF_THOUGHT: Final = "<|end_of_thought|>"
_END_OF_SENTENCE: Final = "<|end▁of▁sentence|>"


class JoyAILLMFlashFormatter:
    """Format a conversation for JoyAI-LLM-Flash.

    >>> messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> JoyAILLMFlashFormatter().render(messages, add_generation_prompt=True)
    'Be brief.<|User|>Hi<|Assistant|><|end_of_thought|>'
    """

    __slots__ = ()
    name = "joyai-llm-flash"
    template = "jdopensource/JoyAI-LLM-Flash-FP8's own"
    variables = ("bos_token",)

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        bos_token: str = "",
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place.

        ``bos_token`` is printed first: the template leaves it to its host.
        """
        out = Sink()
        self._write(out, messages, tools, add_generation_prompt, bos_token)
        return out.text()

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        bos_token: str,
    ) -> None:
        control, scaffold, content = out.control, out.scaffold, out.content
        # A mapping has keys to iterate over, none of which is a message: it prints no turn.
        sequence: Sequence[object]
        if isinstance(messages, (list, tuple)):
            sequence = messages
        else:
            sequence = list(iterated(messages, "messages"))
        systems = [
            index
            for index, turn in enumerate(sequence)
            if (turn if isinstance(turn, dict) else fields(turn, f"messages[{index}]")).get("role")
            == "system"
        ]

        control(to_str(bos_token, "bos_token"))
        if not systems:
            scaffold(_DEFAULT_SYSTEM_PROMPT)
        for index in systems:
            text = fields(sequence[index], f"messages[{index}]").get("content", UNDEFINED)
            if not isinstance(text, str):
                # One alone is printed, whatever it is; several are added up, as strings.
                if len(systems) > 1:
                    raise expected("a string", text, f"messages[{index}].content")
                text = to_str(text, f"messages[{index}].content")
            out.turn(index)
            if index != systems[0]:
                scaffold("\n\n")
            content(text)
        out.turn(None)

        if has_elements(tools, "tools"):
            write_tools(out, tools, scaffold, keywords_as_json=False)

        reply = out.reply
        after_user = False
        for index, turn in out.turns(sequence, 0):
            message = turn if isinstance(turn, dict) else fields(turn, f"messages[{index}]")
            role = message.get("role")
            if role == "user":
                after_user = True
                text = message.get("content", UNDEFINED)
                if not isinstance(text, str):
                    raise expected("a string", text, f"messages[{index}].content")
                control(_USER)
                content(text)
            elif role == "assistant":
                if after_user:
                    control(_ASSISTANT)
                after_user = False
                text = message.get("content") or ""
                if not isinstance(text, str):
                    raise expected("a string", text, f"messages[{index}].content")
                control(_END_OF_THOUGHT)
                reply.content(text)
                calls = message.get("tool_calls")
                if calls is not None:
                    _write_tool_calls(reply, calls, index)
                reply.control(_END_OF_SENTENCE)
            elif role == "tool":
                after_user = True
                text = message.get("content", UNDEFINED)
                if not isinstance(text, str):
                    raise expected("a string", text, f"messages[{index}].content")
                scaffold("\n<tool_response>\n")
                content(text)
                scaffold("\n</tool_response>")

        if add_generation_prompt:
            control(_ASSISTANT)
            control(_END_OF_THOUGHT)

    stop = ("<|end▁of▁sentence|>",)

    def parse(self, completion: str, *, prompt: str | None = None, tools: Tools | None = None) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        parser = self.parser(prompt, tools)
        parser.feed(completion)
        return parser.close()

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.function_tags import JoyAILLMFlashParser

        return JoyAILLMFlashParser(self.stop, prompt, tools)


def _write_tool_calls(reply: Writer, calls: object, message: int) -> None:
    scaffold, content = reply.scaffold, reply.content
    for index, tool_call in enumerate(iterated(calls, f"messages[{message}].tool_calls")):
        path = f"messages[{message}].tool_calls[{index}]"
        call = fields(tool_call, path)
        function = call.get("function", UNDEFINED)
        if function is not UNDEFINED:
            path += ".function"
            call = fields(function, path)
        name = call.get("name", UNDEFINED)
        if not isinstance(name, str):
            raise expected("a string", name, path + ".name")
        scaffold("\n<tool_call>\n<function=")
        content(name)
        scaffold(">\n")
        if "arguments" in call:
            path += ".arguments"
            for key, value in _arguments(call["arguments"], path).items():
                if not isinstance(key, str):
                    raise expected("a string as key", key, path)
                scaffold("<parameter=")
                content(key)
                scaffold(">\n")
                content(argument_text(value, path, key))
                scaffold("\n</parameter>\n")
        scaffold("</function>\n</tool_call>")


def _arguments(arguments: object, path: str) -> Mapping[str, object]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except RecursionError as error:
            raise ChatFormatError("JSON nested too deep", path) from error
        except ValueError as error:
            raise ChatFormatError(f"expected JSON in the string: {error}", path) from error
    if not is_mapping(arguments):
        raise expected("a mapping", arguments, path)
    return arguments
