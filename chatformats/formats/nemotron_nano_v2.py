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
from ..values import as_messages, fields, iterated, length, roles_of, to_json, to_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final, Literal

    from ..conversation import Conversation, Message, Recent
    from ..errors import Place
    from ..formatter import Writer
    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser
    from ..spans import Rendered

_TURN: Final = "<SPECIAL_11>"
_END_OF_TURN: Final = "<SPECIAL_12>"
_USER: Final = f"{_TURN}User\n"
_TOOL_TURN: Final = f"{_USER}<TOOL_RESPONSE>["
_ANSWER: Final = f"{_TURN}Assistant\n"
_THINKING_ANSWER: Final = f"{_ANSWER}<think>\n"
_PLAIN_ANSWER: Final = f"{_ANSWER}<think></think>"
_END_OF_ANSWER: Final = f"\n{_END_OF_TURN}"
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
    control_tokens = ("<SPECIAL_10>", _TURN, _END_OF_TURN)
    content_parts = ()
    stop = (_END_OF_TURN,)

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

        out = SpanSink(self, messages)
        self._write(out, messages, tools, add_generation_prompt, continue_final_message)
        return out.rendered()

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        continue_final_message: bool = False,
        segments: bool = False,
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new."""
        from ..conversation import Conversation

        return Conversation(self, messages, tools, continue_final_message, segments=segments)

    def is_prefix_stable(self, *, continue_final_message: bool = False) -> bool:
        """Say whether appended messages ever change the prompt before them: they do.

        The last turn has a think tag, which history has not, and tool results share one list.
        """
        return False

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
        *,
        continue_final_message: bool = False,
    ) -> str | None:
        """Return what leads from the prompt and what the model wrote to the prompt for the turn after it.

        ``None`` where the template would rewrite either: see ``Conversation.bridge``.
        """
        return self.conversation(messages, tools, continue_final_message=continue_final_message).bridge(
            completion, new_messages
        )

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        continue_final_message: bool,
        since: tuple[Sequence[object], int, int, bool, bool] | None = None,
    ) -> None:
        # ``since``: the roles, the first message, the first to write and what the switches say, where the
        # rest is written.
        markup, scaffold, content = out.markup, out.scaffold, out.content
        if since is None:
            sequence = as_messages(messages)
            roles: Sequence[object] = roles_of(sequence)
            thinking, switched = _switches(sequence, roles, 0, (True, False))
            if not sequence:
                raise ChatFormatError("expected at least one message", "messages")

            markup("<SPECIAL_10>System\n")
            first = 0
            system = ""
            if roles[0] == "system":
                first = 1
                system = _without_switches(sequence[0].get("content"), 0)
                out.turn(0)
                content(system)
                out.turn(None)

            if tools:
                if system:
                    scaffold("\n\n")
                out.tools(_write_tools, tools)
            scaffold("\n\n")
            start = first
        else:
            sequence = messages
            roles, first, start, thinking, switched = since

        last = len(sequence) - 1
        if first > last:
            raise ChatFormatError("expected a message after the system message", "messages")
        answer = ""
        calls: object = ()
        end = last + 1
        if roles[last] == "assistant":
            answer = _stripped(sequence[last].get("content"), last)
            calls = sequence[last].get("tool_calls", ())
            end = last

        reply = out.reply
        reply_markup, reply_content = reply.markup, reply.content
        for index, message in out.turns(sequence[start:end], start):
            role = roles[index]
            try:
                # As Jinja does, and twice as fast as get() with what to return where there is nothing.
                text = message["content"]
            except (LookupError, TypeError):
                # What is no mapping has no role either: nothing is printed of it.
                text = UNDEFINED
            if role == "user":
                markup(_USER)
                if isinstance(text, str) and not switched:
                    content(text.strip())
                else:
                    content(_without_switches(text, index))
                scaffold("\n")
            elif role == "tool":
                if index == first or roles[index - 1] != "tool":
                    markup(_TOOL_TURN)
                content(text if isinstance(text, str) else to_str(text, ("messages", index, "content")))
                if index < last and roles[index + 1] == "tool":
                    scaffold(", ")
                else:
                    scaffold("]</TOOL_RESPONSE>")
            elif role == "assistant":
                text = text.strip() if isinstance(text, str) else _stripped(text, index)
                # As in _switches().
                if "<" in text and text.rfind("</think>") >= 0:
                    text = text.split("</think>")[1].strip()
                markup(_ANSWER)
                reply_content(text)
                history_calls = message.get("tool_calls")
                if history_calls:
                    if text:
                        reply.scaffold("\n")
                    _write_tool_calls(reply, history_calls, index)
                reply_markup(_END_OF_ANSWER)
                scaffold("\n")

        if add_generation_prompt:
            markup(_THINKING_ANSWER if thinking else _PLAIN_ANSWER)
            if answer:
                out.turn(last)
                reply_content(answer)
                out.turn(None)
            return

        out.turn(last)
        if answer:
            markup(_THINKING_ANSWER if thinking else _PLAIN_ANSWER)
            reply_content(answer)
            # The template asks whether it "is false": of all false values, only False ends the turn.
            if continue_final_message is False:
                reply_markup(_END_OF_ANSWER)
                scaffold("\n")
        if length(calls, ("messages", last, "tool_calls")):
            markup(_ANSWER)
            _write_tool_calls(reply, calls, last)
            reply.control(_END_OF_TURN)
            scaffold("\n\n")
        out.turn(None)

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.nemotron_nano_v2 import NemotronNanoV2Parser

        return NemotronNanoV2Parser(self.stop, prompt, tools)

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: tuple[int, bool, bool] | None,
        add_generation_prompt: bool,
        tools: Tools | None,
        continue_final_message: bool,
    ) -> None:
        if state is None:
            self._write(out, messages.items, tools, add_generation_prompt, continue_final_message)
            return
        roles = messages.roles()
        switches = _switches(messages, roles[start:], start, state[1:])
        self._write(
            out,
            messages,
            tools,
            add_generation_prompt,
            continue_final_message,
            (roles, state[0], start, *switches),
        )

    def _state(
        self, messages: Recent, start: int, state: tuple[int, bool, bool] | None, *options: object
    ) -> tuple[int, bool, bool]:
        last = len(messages) - 1
        if roles_of(messages.items[-1:]) == ["assistant"]:
            # A generation prompt behind its calls leaves them unread: what cannot be printed is refused here.
            calls = messages[last].get("tool_calls", ())
            if length(calls, ("messages", last, "tool_calls")):
                _write_tool_calls(Sink(), calls, last)
        # The index of the first message behind the head, and what the switches say.
        if state is None:
            state = (int(roles_of(messages[:1]) == ["system"]), True, False)
        return state[0], *_switches(messages, roles_of(messages.settled(start)), start, state[1:])

    def _rewrites(self, *options: object) -> Mapping[str, Literal["head", "turns"]]:
        return {}

    def _end_of_turn(self, *options: object) -> str:
        return _END_OF_TURN

    def _as_message(self, sampled: str, prompt: str) -> Message:
        thinking = prompt.endswith("<think>\n")
        return {"role": "assistant", "content": ("<think>\n" if thinking else "<think></think>") + sampled}


def _switches(
    sequence: Messages, roles: Sequence[object], first: int, before: tuple[bool, bool]
) -> tuple[bool, bool]:
    """Say whether the model is to think, and whether any message holds a switch."""
    thinking, switched = before
    for index, role in enumerate(roles, first):
        if role == "user" or role == "system":
            text: Any = sequence[index].get("content", UNDEFINED)
            # One character is found in a third of the time that a word takes, one word in half of two's, and
            # backwards a word in long text is found in a third of the time that ``in`` takes.
            if isinstance(text, str) and ("/" not in text or text.rfind("think") < 0):
                continue
            try:
                # In a list or a mapping ``in`` asks for an element or a key, as in the template.
                if "/think" in text:
                    thinking = switched = True
                elif "/no_think" in text:
                    thinking, switched = False, True
            except TypeError as error:
                hint = "normalize() drops it" if text is None else ""
                raise expected("a string", text, ("messages", index, "content"), hint) from error
    return thinking, switched


def _without_switches(text: object, index: int) -> str:
    if isinstance(text, str):
        return text.replace("/think", "").replace("/no_think", "").strip()
    return _stripped(text, index)


def _stripped(text: object, index: int) -> str:
    if isinstance(text, str):
        return text.strip()
    if text:
        raise expected("a string", text, ("messages", index, "content"))
    return ""


def _write_tools(out: Writer, tools: Tools) -> None:
    scaffold, content = out.scaffold, out.content
    scaffold("You can use the following tools to assist the user if required:\n<AVAILABLE_TOOLS>[")
    for index, tool in enumerate(iterated(tools, ("tools",))):
        if index:
            scaffold(", ")
        function = fields(tool, ("tools", index)).get("function", UNDEFINED)
        content(to_json(tool if function is UNDEFINED else function, ("tools", index)))
    scaffold(_TOOL_INSTRUCTION)


def _write_tool_calls(reply: Writer, calls: object, message: int) -> None:
    scaffold, content = reply.scaffold, reply.content
    scaffold("<TOOLCALL>[")
    for index, tool_call in enumerate(iterated(calls, ("messages", message, "tool_calls"))):
        place: Place = ("messages", message, "tool_calls", index)
        call = fields(tool_call, place)
        function = call.get("function", UNDEFINED)
        if function is not UNDEFINED:
            place = ("messages", message, "tool_calls", index, "function")
            call = fields(function, place)
        name = call.get("name", UNDEFINED)
        if not isinstance(name, str):
            raise expected("a string", name, (*place, "name"))
        arguments = call.get("arguments", UNDEFINED)
        if not isinstance(arguments, str):
            arguments = to_json(arguments, (*place, "arguments"))
        scaffold(', {"name": "' if index else '{"name": "')
        content(name)
        scaffold('", "arguments": ')
        content(arguments)
        scaffold("}")
    scaffold("]</TOOLCALL>")
