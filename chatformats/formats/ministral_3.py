# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Ministral 3, as the first revision of its instruction template writes it.

Reference: ``reference/ministral-3.jinja``. Differs from what one would expect:

- ``{today}`` and ``{yesterday}`` in the default system prompt are printed as they are;
- user and assistant turns must alternate, assistant turns with tool calls and tool results aside;
- a user content of exactly two parts is sorted by type, ignoring case; others keep their order;
- where a tool call's arguments are not a string, its name is HTML-escaped (``a<b`` as ``a&lt;b``): in the
  template ``+`` meets text marked as safe;
- a second system message, and every other role, is refused.
"""

from __future__ import annotations

from ..errors import ChatFormatError, TemplateRaisedError, expected, path_of
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

_DEFAULT_SYSTEM_PROMPT: Final = """\
[SYSTEM_PROMPT]\
You are Ministral-3-3B-Instruct-2512, a Large Language Model (LLM) created by Mistral AI, a French \
startup headquartered in Paris.
You power an AI assistant called Le Chat.
Your knowledge base was last updated on 2023-10-01.
The current date is {today}.

When you're not sure about some information or when the user's request requires up-to-date or specific \
data, you must use the available tools to fetch the information. Do not hesitate to use tools whenever \
they can provide a more accurate or complete response. If no relevant tools are available, then clearly \
state that you don't have the information and avoid making up anything.
If the user's question is not clear, ambiguous, or does not provide enough context for you to accurately\
 answer the question, you do not try to answer it right away and you rather ask the user to clarify \
their request (e.g. "What are some good restaurants around me?" => "Where are you?" or "When is the next\
 flight to Tokyo" => "Where do you travel from?").
You are always very attentive to dates, in particular you try to resolve dates (e.g. "yesterday" is \
{yesterday}) and when asked about information at specific dates, you discard information that is at \
another date.
You follow these instructions in all languages, and always respond to the user in the language they use \
or request.
Next sections describe the capabilities that you have.

# WEB BROWSING INSTRUCTIONS

You cannot perform any web search or access internet to open URLs, links etc. If it seems like the user \
is expecting you to do so, you clarify the situation and ask the user to copy paste the text directly in\
 the chat.

# MULTI-MODAL INSTRUCTIONS

You have the ability to read images, but you cannot generate images. You also cannot transcribe audio \
files or videos.
You cannot read nor transcribe audio files or videos.

# TOOL CALLING INSTRUCTIONS

You may have access to tools that you can use to fetch information or perform actions. You must use \
these tools in the following situations:

1. When the request requires up-to-date information.
2. When the request requires specific data that you do not have in your knowledge base.
3. When the request involves actions that you cannot perform without tools.

Always prioritize using tools to provide the most accurate and helpful response. If tools are not \
available, inform the user that you cannot perform the requested action at the moment.[/SYSTEM_PROMPT]"""


class Ministral3Formatter:
    """Format a conversation for Ministral 3, in brackets of control tokens.

    >>> messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> Ministral3Formatter().render(messages)
    '<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hi[/INST]'
    """

    __slots__ = ()
    name = "ministral-3"
    template = (
        "mistralai/Ministral-3-3B-Instruct-2512's first revision; later ones also merge consecutive "
        "messages and accept null content"
    )
    variables = ("bos_token", "eos_token")
    control_tokens = (
        "<s>",
        "</s>",
        "[SYSTEM_PROMPT]",
        "[/SYSTEM_PROMPT]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
        "[INST]",
        "[/INST]",
        "[IMG]",
        "[TOOL_CALLS]",
        "[ARGS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
    )
    content_parts = ("system", "user", "assistant")
    stop = ("</s>",)

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        bos_token: str = "<s>",
        eos_token: str = "</s>",
    ) -> str:
        """Return the prompt; raises ChatFormatError, which names the place.

        The template has no generation prompt: ``add_generation_prompt`` changes nothing. Raises
        TemplateRaisedError, a ChatFormatError, where the template itself refuses.
        """
        if continue_final_message:
            return self.render_segments(
                messages,
                tools,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                bos_token=bos_token,
                eos_token=eos_token,
            ).text
        out = Sink()
        self._write(out, messages, tools, bos_token, eos_token)
        return "".join(out.pieces)

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        bos_token: str = "<s>",
        eos_token: str = "</s>",
    ) -> Rendered:
        """Return the same prompt, which knows who wrote each of its characters."""
        from ..spans import SpanSink

        out = SpanSink(self, messages, add_generation_prompt, continue_final_message)
        self._write(out, out.messages, tools, bos_token, eos_token)
        return out.rendered()

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        bos_token: str = "<s>",
        eos_token: str = "</s>",
        segments: bool = False,
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new."""
        from ..conversation import Conversation

        return Conversation(self, messages, tools, bos_token, eos_token, segments=segments)

    def is_prefix_stable(self, *, bos_token: str = "<s>", eos_token: str = "</s>") -> bool:
        """Say whether appended messages ever change the prompt before them: they do not."""
        return True

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
        *,
        bos_token: str = "<s>",
        eos_token: str = "</s>",
    ) -> str | None:
        """Return what leads from the prompt and what the model wrote to the prompt for the turn after it.

        ``None`` where the template would rewrite either: see ``Conversation.bridge``.
        """
        return self.conversation(messages, tools, bos_token=bos_token, eos_token=eos_token).bridge(
            completion, new_messages
        )

    def _write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        bos_token: str,
        eos_token: str,
        since: tuple[Sequence[object], int] | None = None,
    ) -> None:
        # ``since``: the roles and the first message to write, where the rest is written.
        control, content = out.control, out.content
        if since is None:
            control(bos_token if isinstance(bos_token, str) else to_str(bos_token, ("bos_token",)))

            sequence = as_messages(messages)
            if not sequence:
                raise ChatFormatError("expected at least one message", "messages")
            roles: Sequence[object] = roles_of(sequence)
            first = 0
            if roles[0] == "system":
                first = 1
                out.turn(0)
                control("[SYSTEM_PROMPT]")
                text = sequence[0].get("content", UNDEFINED)
                if isinstance(text, str):
                    content(text)
                else:
                    _write_text_parts(out, text, ("messages", 0, "content"), "system message")
                control("[/SYSTEM_PROMPT]")
                out.turn(None)
            else:
                out.markup(_DEFAULT_SYSTEM_PROMPT)

            if tools is not None and length(tools, ("tools",)) > 0:
                out.tools(_write_tools, tools)

            _check_alternation(sequence, roles[first:], first, True)
            start = first
        else:
            sequence = messages
            roles, start = since

        reply = out.reply
        reply_control, reply_content = reply.control, reply.content
        for index, message in out.turns(sequence[start:], start):
            role = roles[index]
            try:
                # As Jinja does, and twice as fast as get() with what to return where there is nothing.
                text = message["content"]
            except (LookupError, TypeError):
                # What is no mapping has no role either, and is refused below.
                text = UNDEFINED
            if role == "user":
                control("[INST]")
                if isinstance(text, str):
                    content(text)
                else:
                    _write_user_parts(out, text, ("messages", index, "content"))
                control("[/INST]")
            elif role == "assistant":
                calls = message.get("tool_calls")
                # Its length was asked for above: what has none was refused there.
                called = bool(calls)
                if isinstance(text, str) and (text or called):
                    reply_content(text)
                else:
                    _write_answer_parts(reply, text, called, ("messages", index, "content"))
                if called:
                    _write_tool_calls(reply, calls, index)
                # Not before: a value that cannot be printed is refused only where it is printed.
                if not isinstance(eos_token, str):
                    eos_token = to_str(eos_token, ("eos_token",))
                reply_control(eos_token)
            elif role == "tool":
                if not isinstance(text, str):
                    text = to_str(text, ("messages", index, "content"))
                control("[TOOL_RESULTS]")
                content(text)
                control("[/TOOL_RESULTS]")
            elif isinstance(role, str):
                raise TemplateRaisedError(
                    f"Only user, assistant and tool roles are supported, got {role}",
                    path_of(("messages", index, "role")),
                    _role_hint(roles, index),
                )
            else:
                raise expected("a string", role, ("messages", index, "role"))

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read a completion; ``prompt`` (its end is enough) says whether reasoning is open."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        from ..parsers.ministral_3 import Ministral3Parser

        return Ministral3Parser(self.stop, prompt, tools)

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: bool | None,
        add_generation_prompt: bool,
        tools: Tools | None,
        bos_token: str,
        eos_token: str,
    ) -> None:
        if state is None:
            self._write(out, messages.items, tools, bos_token, eos_token)
        else:
            roles = messages.roles()
            _check_alternation(messages, roles[start:], start, state)
            self._write(out, messages, tools, bos_token, eos_token, (roles, start))

    def _state(self, messages: Recent, start: int, state: bool | None, *options: object) -> bool:
        # Whether the next turn has to be the user's.
        roles = roles_of(messages.settled(start))
        return _check_alternation(messages, roles, start, True if state is None else state)

    def _rewrites(self, *options: object) -> Mapping[str, Literal["head", "turns"]]:
        return {}

    def _end_of_turn(self, bos_token: str, eos_token: str) -> str:
        return eos_token

    def _as_message(self, sampled: str, prompt: str) -> Message:
        text, *calls = sampled.split("[TOOL_CALLS]")
        if not calls or not all("[ARGS]" in call for call in calls):
            return {"role": "assistant", "content": sampled}
        functions = [dict(zip(("name", "arguments"), call.split("[ARGS]", 1))) for call in calls]
        called = [{"function": function} for function in functions]
        return {"role": "assistant", "content": text, "tool_calls": called}


def _check_alternation(sequence: Messages, roles: Sequence[object], first: int, user_is_next: bool) -> bool:
    # A pass of its own, as in the template: what it finds is told before any other fault.
    for index, role in enumerate(roles, first):
        if role == "user":
            if not user_is_next:
                break
            user_is_next = False
        elif role == "assistant":
            calls = sequence[index].get("tool_calls")
            if calls is None or length(calls, ("messages", index, "tool_calls")) == 0:
                if user_is_next:
                    break
                user_is_next = True
    else:
        return user_is_next
    raise TemplateRaisedError(
        "After the optional system message, conversation roles must alternate user and "
        "assistant roles except for tool calls and results.",
        path_of(("messages", index, "role")),
        "normalize(merge_consecutive=True) merges the two"
        if index and fields(sequence[index - 1], ("messages", index - 1)).get("role") == role
        else "",
    )


def _role_hint(roles: Sequence[object], index: int) -> str:
    if index == 0 and roles[0] == "developer":
        return "normalize() reads it as system"
    if roles[index] in ("system", "developer") and "user" in roles[index + 1 : index + 2]:
        return "normalize(fold_system=True) puts it into the next user message"
    return ""


def _write_text_parts(out: Writer, parts: object, place: Place, kind: str) -> None:
    for index, part in enumerate(iterated(parts, place)):
        block = fields(part, (*place, index))
        if block.get("type") != "text":
            raise TemplateRaisedError(
                f"Only text chunks are supported in {kind} contents.", path_of((*place, index, "type"))
            )
        out.content(to_str(block.get("text", UNDEFINED), (*place, index, "text")))


def _write_answer_parts(reply: Writer, parts: object, called: bool, place: Place) -> None:
    if not called and (parts is None or length(parts, place) == 0):
        raise TemplateRaisedError(
            "Assistant message must have a string or a list of chunks in content or a list of tool calls.",
            path_of(place),
        )
    if length(parts, place):
        _write_text_parts(reply, parts, place, "assistant message")


def _write_user_parts(out: Writer, parts: object, place: Place) -> None:
    if parts is None:
        # No sequence of parts, and to be missing would not help: that is refused too.
        raise expected("a string or parts", parts, place)
    count = length(parts, place)
    if count == 0:
        raise TemplateRaisedError(
            "User message must have a string or a list of chunks in content", path_of(place)
        )
    blocks = list(enumerate(iterated(parts, place)))
    if count == 2:
        try:
            blocks.sort(key=lambda block: _sort_key(block[1], place))
        except (TypeError, RecursionError) as error:
            raise ChatFormatError("expected two parts whose types can be ordered", path_of(place)) from error
    for index, part in blocks:
        block = fields(part, (*place, index))
        kind = block.get("type")
        if kind == "text":
            out.content(to_str(block.get("text", UNDEFINED), (*place, index, "text")))
        elif kind == "image" or kind == "image_url":
            out.control("[IMG]")
        else:
            raise TemplateRaisedError(
                "Only text, image and image_url chunks are supported in user message content.",
                path_of((*place, index, "type")),
            )


def _sort_key(part: object, place: Place) -> list[Any]:
    kind = fields(part, place).get("type", UNDEFINED)
    # In a list, two equal types compare as equal even where they have no order.
    return [kind.lower() if isinstance(kind, str) else kind]


def _write_tools(out: Writer, tools: Tools) -> None:
    out.control("[AVAILABLE_TOOLS]")
    out.content(to_json(tools, ("tools",)))
    out.control("[/AVAILABLE_TOOLS]")


def _write_tool_calls(reply: Writer, calls: object, message: int) -> None:
    control, content = reply.control, reply.content
    for index, tool_call in enumerate(iterated(calls, ("messages", message, "tool_calls"))):
        place = ("messages", message, "tool_calls", index, "function")
        function = fields(tool_call, place).get("function", UNDEFINED)
        if function is UNDEFINED:
            raise expected("a mapping", function, place)
        call = fields(function, place)
        name = call.get("name", UNDEFINED)
        arguments = call.get("arguments", UNDEFINED)
        if not isinstance(name, str):
            raise expected("a string", name, (*place, "name"))
        control("[TOOL_CALLS]")
        if isinstance(arguments, str):
            content(name)
            control("[ARGS]")
            if arguments == "":
                reply.scaffold("{}")
            else:
                content(arguments)
        else:
            content(_escape(name))
            control("[ARGS]")
            content(to_json(arguments, (*place, "arguments")))


def _escape(text: str) -> str:
    # As markupsafe does it; html.escape() of the standard library writes the quotes differently.
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("'", "&#39;")
        .replace('"', "&#34;")
    )
