# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""NVIDIA Nemotron Nano v2, as llama.cpp's corrected template writes it.

Reference: ``reference/nemotron-nano-v2.jinja``. Differs from what one would expect:

- ``/think`` and ``/no_think`` in a user or system message switch the reasoning of the whole
  conversation, the last one found wins, and both are cut out of the text;
- an assistant message at the end is held back: it opens with a think tag that history never shows, and
  its tool calls stand in a turn of their own;
- with a generation prompt that message's content follows the open think tag, and its tool calls
  disappear;
- of an assistant message in history, what stands between the first and the second ``</think>`` is kept;
- the doubled braces of the tool instructions are printed as they are: they stand in a string;
- tool results are printed without quotes or escapes, consecutive ones in one list.
"""

from __future__ import annotations

from ..errors import ChatFormatError, expected
from ..formatter import Sink
from ..undefined import UNDEFINED
from ..values import elements, fields, iterated, length, to_json, to_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

    from ..formatter import Writer
    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser

_TURN: Final = "<SPECIAL_11>"
_END_OF_TURN: Final = "<SPECIAL_12>"
_TOOL_INSTRUCTION: Final = """\
]</AVAILABLE_TOOLS>

If you decide to call any tool(s), use the following format:
<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, \
{{"name": "tool_name2", "arguments": "tool_args2"}}]</TOOLCALL>

The user will execute tool-calls and return responses from tool(s) in this format:
<TOOL_RESPONSE>[{{"tool_response1"}}, {{"tool_response2"}}]</TOOL_RESPONSE>

Based on the tool responses, you can call additional tools if needed, correct tool calls if any errors \
are found, or just respond to the user."""


class NemotronNanoV2Formatter:
    """Format a conversation for Nemotron Nano v2, whose reasoning is switched in the messages.

    >>> NemotronNanoV2Formatter().render([{"role": "user", "content": "Hi /no_think"}])
    '<SPECIAL_10>System\\n\\n\\n<SPECIAL_11>User\\nHi\\n'
    """

    __slots__ = ()
    name = "nemotron-nano-v2"
    template = "llama.cpp's for NVIDIA Nemotron Nano v2; NVIDIA's own repositories ship slightly other ones"
    variables = ("continue_final_message",)

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place.

        With ``continue_final_message`` the content of a last assistant message stays open. It is the
        template's variable: its tool calls still follow, and a generation prompt ignores it.
        """
        out = Sink()
        self._write(out, messages, tools, add_generation_prompt, continue_final_message)
        return out.text()

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        continue_final_message: bool,
    ) -> None:
        control, scaffold, content = out.control, out.scaffold, out.content
        sequence = elements(messages, "messages")
        thinking = _thinking(sequence)
        if not sequence:
            raise ChatFormatError("expected at least one message", "messages")

        control("<SPECIAL_10>")
        scaffold("System\n")
        first = 0
        system = ""
        message: Mapping[str, object] = fields(sequence[0], "messages[0]")
        if message.get("role") == "system":
            first = 1
            system = _without_switches(message.get("content"), 0)
            if system:
                out.turn(0)
                content(system)
                out.turn(None)

        if tools:
            if system:
                scaffold("\n\n")
            _write_tools(out, tools)
        scaffold("\n\n")

        if first == len(sequence):
            raise ChatFormatError("expected a message after the system message", "messages")
        last = len(sequence) - 1
        held_back = fields(sequence[last], f"messages[{last}]")
        if held_back.get("role") == "assistant":
            answer = _stripped(held_back.get("content"), last)
            sequence = sequence[:last]
        else:
            held_back = {}
            answer = ""

        reply = out.reply
        end = len(sequence)
        role: object = UNDEFINED
        for index, turn in out.turns(sequence[first:], first):
            message = turn if isinstance(turn, dict) else fields(turn, f"messages[{index}]")
            previous, role = role, message.get("role")
            if role == "user":
                control(_TURN)
                scaffold("User\n")
                content(_without_switches(message.get("content"), index))
                scaffold("\n")
            elif role == "tool":
                if previous != "tool":
                    control(_TURN)
                    scaffold("User\n<TOOL_RESPONSE>[")
                result = message.get("content", UNDEFINED)
                if not isinstance(result, str):
                    result = to_str(result, f"messages[{index}].content")
                content(result)
                following = index + 1
                if following < end and _role(sequence, following) == "tool":
                    scaffold(", ")
                else:
                    scaffold("]</TOOL_RESPONSE>")
            elif role == "assistant":
                control(_TURN)
                scaffold("Assistant\n")
                text = _stripped(message.get("content"), index)
                if "</think>" in text:
                    text = text.split("</think>")[1].strip()
                reply.content(text)
                calls = message.get("tool_calls")
                if calls:
                    if text:
                        reply.scaffold("\n")
                    _write_tool_calls(reply, calls, index)
                reply.scaffold("\n")
                reply.control(_END_OF_TURN)
                scaffold("\n")

        think = "<think>\n" if thinking else "<think></think>"
        if add_generation_prompt:
            control(_TURN)
            scaffold("Assistant\n")
            scaffold(think)
            if answer:
                out.turn(last)
                reply.content(answer)
                out.turn(None)
            return

        out.turn(last)
        if answer:
            control(_TURN)
            scaffold("Assistant\n")
            scaffold(think)
            reply.content(answer)
            # The template asks whether it "is false": of all false values, only False ends the turn.
            if continue_final_message is False:
                reply.scaffold("\n")
                reply.control(_END_OF_TURN)
                scaffold("\n")
        calls = held_back.get("tool_calls", ())
        if length(calls, f"messages[{last}].tool_calls"):
            control(_TURN)
            scaffold("Assistant\n")
            _write_tool_calls(reply, calls, last)
            reply.control(_END_OF_TURN)
            scaffold("\n\n")
        out.turn(None)

    stop = ("<SPECIAL_12>",)

    def parse(self, completion: str, *, prompt: str | None = None, tools: Tools | None = None) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        parser = self.parser(prompt, tools)
        parser.feed(completion)
        return parser.close()

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.nemotron_nano_v2 import NemotronNanoV2Parser

        return NemotronNanoV2Parser(self.stop, prompt, tools)


def _thinking(sequence: Sequence[object]) -> bool:
    thinking = True
    for index, turn in enumerate(sequence):
        message = turn if isinstance(turn, dict) else fields(turn, f"messages[{index}]")
        role = message.get("role")
        if role == "user" or role == "system":
            text = message.get("content", UNDEFINED)
            try:
                # In a list or a mapping ``in`` asks for an element or a key, as in the template.
                if "/think" in text:  # type: ignore[operator]  # what has no ``in`` raises TypeError
                    thinking = True
                elif "/no_think" in text:  # type: ignore[operator]  # likewise
                    thinking = False
            except TypeError as error:
                raise expected("a string", text, f"messages[{index}].content") from error
    return thinking


def _without_switches(text: object, index: int) -> str:
    if isinstance(text, str):
        return text.replace("/think", "").replace("/no_think", "").strip()
    if text:
        raise expected("a string", text, f"messages[{index}].content")
    return ""


def _stripped(text: object, index: int) -> str:
    if isinstance(text, str):
        return text.strip()
    if text:
        raise expected("a string", text, f"messages[{index}].content")
    return ""


def _role(sequence: Sequence[object], index: int) -> object:
    return fields(sequence[index], f"messages[{index}]").get("role")


def _write_tools(out: Writer, tools: Tools) -> None:
    scaffold, content = out.scaffold, out.content
    scaffold("You can use the following tools to assist the user if required:\n<AVAILABLE_TOOLS>[")
    for index, tool in enumerate(iterated(tools, "tools")):
        if index:
            scaffold(", ")
        path = f"tools[{index}]"
        function = fields(tool, path).get("function", UNDEFINED)
        content(to_json(tool if function is UNDEFINED else function, path))
    scaffold(_TOOL_INSTRUCTION)


def _write_tool_calls(reply: Writer, calls: object, message: int) -> None:
    scaffold, content = reply.scaffold, reply.content
    scaffold("<TOOLCALL>[")
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
        arguments = call.get("arguments", UNDEFINED)
        if not isinstance(arguments, str):
            arguments = to_json(arguments, path + ".arguments")
        scaffold(', {"name": "' if index else '{"name": "')
        content(name)
        scaffold('", "arguments": ')
        content(arguments)
        scaffold("}")
    scaffold("]</TOOLCALL>")
