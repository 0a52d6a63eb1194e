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

from ..errors import ChatFormatError, expected, path_of
from ..formatter import Sink
from ..undefined import UNDEFINED
from ..values import (
    as_messages,
    fields,
    has_elements,
    is_mapping,
    iterated,
    roles_of,
    to_str,
)
from ._xml_tools import argument_text, write_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final, Literal

    from ..conversation import Conversation, Message, Recent
    from ..errors import Place
    from ..formatter import Writer
    from ..messages import Messages, Tools
    from ..parsing import ParsedMessage, Parser
    from ..spans import Rendered

_DEFAULT_SYSTEM_PROMPT: Final = (
    "You are JoyAI , a large language model trained by JD（京东）that can interact with a computer to "
    "solve tasks. Answer as concisely as possible."
)
_USER: Final = "<|User|>"
_ASSISTANT: Final = "<|Assistant|>"
_END_OF_THOUGHT: Final = "<|end_of_thought|>"
_END_OF_SENTENCE: Final = "<|end▁of▁sentence|>"
_ANSWER: Final = _ASSISTANT + _END_OF_THOUGHT


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
    control_tokens = (_USER, _ASSISTANT, _END_OF_THOUGHT, _END_OF_SENTENCE, "<tool_call>", "</tool_call>")
    content_parts = ()
    stop = (_END_OF_SENTENCE,)

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        bos_token: str = "",
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place.

        ``bos_token`` is printed first: the template leaves it to its host.
        """
        if continue_final_message:
            return self.render_segments(
                messages,
                tools,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                bos_token=bos_token,
            ).text
        out = Sink()
        self._write(out, messages, tools, add_generation_prompt, bos_token)
        return "".join(out.pieces)

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        bos_token: str = "",
    ) -> Rendered:
        """Return the same prompt, which knows who wrote each of its characters."""
        from ..spans import SpanSink

        out = SpanSink(self, messages, add_generation_prompt, continue_final_message)
        self._write(out, out.messages, tools, add_generation_prompt, bos_token)
        return out.rendered()

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        bos_token: str = "",
        segments: bool = False,
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new."""
        from ..conversation import Conversation

        return Conversation(self, messages, tools, bos_token, segments=segments)

    def is_prefix_stable(self, *, bos_token: str = "") -> bool:
        """Say whether appended messages ever change the prompt before them: they do.

        A system message goes to the top, whenever it comes; nothing else is changed.
        """
        return False

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
        *,
        bos_token: str = "",
    ) -> str | None:
        """Return what leads from the prompt and what the model wrote to the prompt for the turn after it.

        ``None`` where the template would rewrite either: see ``Conversation.bridge``.
        """
        return self.conversation(messages, tools, bos_token=bos_token).bridge(completion, new_messages)

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        bos_token: str,
        since: tuple[Sequence[object], int, bool] | None = None,
    ) -> None:
        # ``since``: the roles, the first message to write and whether it comes after a user's, where the
        # rest is written.
        control, markup, scaffold, content = out.control, out.markup, out.scaffold, out.content
        if since is None:
            # A mapping has keys to iterate over, none of which is a message: it prints no turn.
            sequence = messages
            if not isinstance(messages, list):
                sequence = as_messages(list(messages) if is_mapping(messages) else messages)
            roles: Sequence[object] = roles_of(sequence)

            control(bos_token if isinstance(bos_token, str) else to_str(bos_token, ("bos_token",)))
            if "system" in roles:
                _write_systems(out, sequence, roles)
            else:
                scaffold(_DEFAULT_SYSTEM_PROMPT)
            if tools is not None and has_elements(tools, ("tools",)):
                out.tools(write_tools, tools, False)
            start, after_user = 0, False
        else:
            sequence = messages
            roles, start, after_user = since

        reply = out.reply
        reply_control, reply_content = reply.control, reply.content
        for index, message in out.turns(sequence[start:], start):
            role = roles[index]
            try:
                # As Jinja does, and twice as fast as get() with what to return where there is nothing.
                text = message["content"]
            except (LookupError, TypeError):
                # What is no mapping has no role either: nothing is printed of it.
                text = UNDEFINED
            if role == "user":
                after_user = True
                if not isinstance(text, str):
                    raise expected("a string", text, ("messages", index, "content"))
                control(_USER)
                content(text)
            elif role == "assistant":
                text = text or ""
                if not isinstance(text, str):
                    raise expected("a string", text, ("messages", index, "content"))
                if after_user:
                    markup(_ANSWER)
                else:
                    control(_END_OF_THOUGHT)
                after_user = False
                reply_content(text)
                calls = message.get("tool_calls")
                if calls is not None:
                    _write_tool_calls(reply, calls, index)
                reply_control(_END_OF_SENTENCE)
            elif role == "tool":
                after_user = True
                if not isinstance(text, str):
                    raise expected("a string", text, ("messages", index, "content"))
                scaffold("\n<tool_response>\n")
                content(text)
                scaffold("\n</tool_response>")

        if add_generation_prompt:
            markup(_ANSWER)

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.function_tags import JoyAILLMFlashParser

        return JoyAILLMFlashParser(self.stop, prompt, tools)

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: bool | None,
        add_generation_prompt: bool,
        tools: Tools | None,
        bos_token: str,
    ) -> None:
        if state is None:
            self._write(out, messages.items, tools, add_generation_prompt, bos_token)
        else:
            since = (messages.roles(), start, state)
            self._write(out, messages, tools, add_generation_prompt, bos_token, since)

    def _state(self, messages: Recent, start: int, state: bool | None, bos_token: str) -> bool:
        # Whether the model's turn is still to come.
        after_user = bool(state)
        for role in roles_of(messages.settled(start)):
            if role == "user" or role == "tool":
                after_user = True
            elif role == "assistant":
                after_user = False
        return after_user

    def _rewrites(self, bos_token: str) -> Mapping[str, Literal["head", "turns"]]:
        return {"system": "head"}

    def _end_of_turn(self, *options: object) -> str:
        return _END_OF_SENTENCE

    def _as_message(self, sampled: str, prompt: str) -> Message:
        return {"role": "assistant", "content": sampled}


def _write_systems(out: Sink, sequence: Messages, roles: Sequence[object]) -> None:
    count = roles.count("system")
    index = -1
    for number in range(count):
        index = roles.index("system", index + 1)
        text = sequence[index].get("content", UNDEFINED)
        if not isinstance(text, str):
            # One alone is printed, whatever it is; several are added up, as strings.
            if count > 1:
                raise expected("a string", text, ("messages", index, "content"))
            text = to_str(text, ("messages", index, "content"))
        out.turn(index)
        if number:
            out.scaffold("\n\n")
        out.content(text)
    out.turn(None)


def _write_tool_calls(reply: Writer, calls: object, message: int) -> None:
    markup, scaffold, content = reply.markup, reply.scaffold, reply.content
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
        markup("\n<tool_call>\n<function=")
        content(name)
        scaffold(">\n")
        if "arguments" in call:
            for key, value in _arguments(call["arguments"], (*place, "arguments")).items():
                if not isinstance(key, str):
                    raise expected("a string as key", key, (*place, "arguments"))
                scaffold("<parameter=")
                content(key)
                scaffold(">\n")
                if not isinstance(value, str):
                    value = argument_text(value, (*place, "arguments", key))
                content(value)
                scaffold("\n</parameter>\n")
        markup("</function>\n</tool_call>")


def _arguments(arguments: object, place: Place) -> Mapping[str, object]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except RecursionError as error:
            raise ChatFormatError("JSON nested too deep", path_of(place)) from error
        except ValueError as error:
            raise ChatFormatError(f"expected JSON in the string: {error}", path_of(place)) from error
    if not is_mapping(arguments):
        raise expected("a mapping", arguments, place)
    return arguments
