# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Segments say the truth: who wrote each character, for which message, and what the model generates.

``pytest tests/test_spans.py --conversations 20000`` looks further than the default run does.
"""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict, UserDict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import chatformats
from chatformats import ChatFormatError, find_control_tokens
from chatformats.base import BaseFormatter
from chatformats.formatter import Sink
from chatformats.spans import Injection, Rendered, Segment

from . import oracle
from .strategies import Conversation, malformed, well_formed

# What ends an assistant turn. GLM-4 tools' template writes nothing there; Ministral's host says what.
END_OF_TURN = {
    "hebatron": "<|im_end|>",
    "joyai-llm-flash": "<|end▁of▁sentence|>",
    "ministral-3": "</s>",
    "nemotron-nano-v2": "<SPECIAL_12>",
}


def rendered(name: str, messages: Any, tools: Any = None, **variables: Any) -> Rendered:
    render_segments: Callable[..., Rendered] = chatformats.get(name).render_segments
    return render_segments(messages, tools, **variables)


def prompt(name: str, messages: Any, tools: Any = None, **variables: Any) -> str | None:
    """Return the prompt, or None where the formatter refuses."""
    render: Callable[..., str] = chatformats.get(name).render
    try:
        return render(messages, tools, **variables)
    except ChatFormatError:
        return None


def outcome(render: Callable[..., Any], conversation: Conversation, **more: Any) -> Any:
    """Return what is rendered, or the error's kind and text."""
    try:
        return render(conversation.messages, conversation.tools, **conversation.variables, **more)
    except ChatFormatError as error:
        return type(error), str(error)


# Segments and text.


def assert_segments(name: str, conversation: Conversation) -> Iterator[str]:
    formatter = chatformats.get(name)
    text = outcome(formatter.render, conversation)
    result = outcome(formatter.render_segments, conversation)
    if not isinstance(result, Rendered):
        assert result == text, "render_segments raises exactly where render does, with the same words"
        yield "refused"
        return
    assert result.text == text == "".join(segment.text for segment in result.segments)
    assert all(segment.text for segment in result.segments)
    for left, right in pairwise(result.segments):
        assert left.origin == "control" or left[1:] != right[1:], "these two would have been one"
    hosts = {str(conversation.variables.get(token)) for token in ("bos_token", "eos_token")}
    for segment in result.segments:
        role = None
        if segment.message is not None:
            role = conversation.messages[segment.message].get("role")
        assert segment.role == (role if isinstance(role, str) else None)
        if segment.origin == "control":
            assert segment.text in hosts.union(formatter.control_tokens)
        elif segment.origin == "scaffold":
            assert not any(token in segment.text for token in formatter.control_tokens)
        assert segment.role == "assistant" or not segment.generated
    yield "rendered"


# Origin: every caller's string is written in a character of its own, which no template knows.

_FIRST_MARKER = 0x20000
_STRUCTURE = frozenset(
    ("arguments", "content", "description", "enum", "function", "id", "image", "image_url", "name")
    + ("parameters", "properties", "reasoning_content", "required", "role", "text", "tool_calls", "type")
)
_ROLES = ("system", "user", "assistant", "tool")
# What templates look for in a text is left as it is, that they still trim, split and cut it.
_PIECES = re.compile(r"(<think>|</think>|/think|/no_think|\s)|.", re.DOTALL)
# How JSON and Python write what is no string, and the keys that are left as they are.
_NOTATION = re.compile(
    "|".join(sorted(_STRUCTURE, key=len, reverse=True))
    + r"|True|False|None|true|false|null|Infinity|NaN|nan|inf|[-+.0-9]|e[-+0-9]"
    + r"|\\(?:x..|u....|U........|.)|[]{}()\[,:\"' ]"
)


class _Marker:
    """Write each string of a conversation in a character of its own; ``owners`` says whose it is."""

    def __init__(self, name: str) -> None:
        self._json_arguments = name == "joyai-llm-flash"
        self.owners: dict[str, int | None] = {}

    def conversation(self, conversation: Conversation) -> Conversation:
        messages, tools = conversation.messages, conversation.tools
        if isinstance(messages, (list, tuple)):
            messages = type(messages)([self._message(message, i) for i, message in enumerate(messages)])
        return Conversation(messages, self._value(tools, None), conversation.variables)

    def _text(self, text: str, owner: int | None) -> str:
        character = chr(_FIRST_MARKER + len(self.owners))
        self.owners[character] = owner
        return _PIECES.sub(lambda piece: piece[1] or character, text)

    def _message(self, message: Any, owner: int) -> Any:
        marked = self._value(message, owner)
        if isinstance(message, dict):
            if message.get("role") in _ROLES:
                marked["role"] = message["role"]
            if isinstance(message.get("content"), (list, tuple)):
                for part, original in zip(marked["content"], message["content"], strict=True):
                    if isinstance(original, dict) and original.get("type") in ("text", "image", "image_url"):
                        part["type"] = original["type"]
        return marked

    def _value(self, value: Any, owner: int | None, names: bool = False) -> Any:
        """Mark a value; ``names`` are keys that the caller makes up, whatever they are."""
        if isinstance(value, str):
            return self._text(value, owner)
        if isinstance(value, (list, tuple)):
            return type(value)([self._value(item, owner, names) for item in value])
        if not isinstance(value, dict):
            return value
        marked = {}
        for key, item in value.items():
            if key == "arguments" and not names:
                marked[key] = self._arguments(item, owner)
                continue
            kept = not isinstance(key, str) or (key in _STRUCTURE and not names)
            item = self._value(item, owner, names=key == "properties" and not names)
            marked[key if kept else self._text(key, owner)] = item
        return marked

    def _arguments(self, arguments: Any, owner: int | None) -> Any:
        if isinstance(arguments, str) and self._json_arguments:
            try:
                parsed = json.loads(arguments)
            except ValueError:
                return arguments
            return json.dumps(self._all(parsed, owner), ensure_ascii=False)
        return self._all(arguments, owner)

    def _all(self, value: Any, owner: int | None) -> Any:
        """Mark a value and every key in it: in arguments, all of them are the caller's."""
        if isinstance(value, dict):
            return {
                self._text(key, owner) if isinstance(key, str) else key: self._all(item, owner)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return type(value)([self._all(item, owner) for item in value])
        return self._value(value, owner)


def assert_origin(name: str, conversation: Conversation) -> Iterator[str]:
    marker = _Marker(name)
    marked = marker.conversation(conversation)
    result = outcome(chatformats.get(name).render_segments, marked)
    if not isinstance(result, Rendered):
        return
    owners = marker.owners
    for segment in result.segments:
        for character in owners.keys() & set(segment.text):
            assert segment.origin == "content", f"a caller's text in {segment!r}"
            assert segment.message == owners[character]
            assert segment.generated == (segment.role == "assistant")
            yield segment.role if segment.role in _ROLES else "others" if segment.role else "tools"
        if segment.origin == "content":
            unmarked = "".join(character for character in segment.text if character not in owners)
            # What Nemotron leaves of "</think>", a switch in it.
            unmarked = unmarked.replace("<>", "")
            assert not _NOTATION.sub("", _PIECES.sub(lambda p: "" if p[1] else p[0], unmarked)), segment
    for index, message in enumerate(marked.messages):
        # Where all that a message says is one text, its content is that text, as far as it is printed.
        if isinstance(message, dict) and message.get("role") in ("user", "system", "tool"):
            if not isinstance(text := message.get("content"), str):
                continue
            written = "".join(s.text for s in result.segments if s.message == index and s.origin == "content")
            if name == "nemotron-nano-v2" and message["role"] != "tool":
                text = text.replace("/think", "").replace("/no_think", "").strip()
            assert written in (text, "")


# Generated: what follows the generation prompt, end-of-turn marker included.


def why_not_prompted(name: str, messages: list[Any], text: str, prompted: str | None) -> str | None:
    """Say why a template does not write its generation prompt before the last message, if it does not."""
    before = [message.get("role") if isinstance(message, dict) else None for message in messages[:-1]]
    if prompted is None:
        system_first = name in ("glm4-tools", "nemotron-nano-v2") and before[:1] == ["system"]
        assert before[system_first:] == [], "a template refuses a prompt only where it has nothing to answer"
        return "there is nothing to answer"
    if name == "glm4-tools" and before[-1] == "assistant":
        return "after an answer the generation prompt is a line break, without 答："
    content = messages[-1].get("content")
    if name == "hebatron" and isinstance(content, str) and content.strip() == "<think>":
        return "the caller's think tag and the template's line break before tool calls look like the prompt"
    if text.startswith(prompted):
        return None
    if name == "hebatron":
        head = prompted.removesuffix("<think>\n").removesuffix("<think></think>")
        assert head != prompted
        assert text.startswith(head)
        return (
            "the turn does not open with the prompt's think tag: no reasoning where it was enabled, or some"
        )
    if name == "joyai-llm-flash":
        speakers = [role for role in before if role in ("user", "tool", "assistant")]
        assert speakers[-1:] != ["user"]
        assert speakers[-1:] != ["tool"]
        return "only after a user or a tool does <|Assistant|> stand before an answer"
    assert name == "nemotron-nano-v2", "Ministral has no generation prompt that could be another"
    if before[-1] == "assistant":
        return "the prompt would hold the answer before back, and print it open"
    assert not content or not content.strip()
    return "tool calls alone open with no think tag"


def assert_generated(name: str, conversation: Conversation) -> Iterator[str]:
    messages, tools, variables = conversation.messages, conversation.tools, dict(conversation.variables)
    if not isinstance(messages, list):
        return
    variables["add_generation_prompt"] = False
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        conversation = Conversation(messages[: index + 1], tools, variables)
        result = outcome(chatformats.get(name).render_segments, conversation)
        if not isinstance(result, Rendered):
            continue
        text = result.text
        spans = result.spans(generated=True, message=index)
        if name == "nemotron-nano-v2" and not spans:
            assert not message.get("tool_calls")
            assert not (message.get("content") or "").strip()
            yield "nothing is printed"
            continue
        if not spans:
            # GLM-4 tools' only: there an answer has no end-of-turn marker, and Ministral's host may say "".
            assert not result.spans(message=index, origin="content")
            assert name == "glm4-tools" or str(variables.get("eos_token")) == ""
            continue
        # One turn, but for Nemotron, which writes its last tool calls in a second one.
        twice = name == "nemotron-nano-v2" and message.get("content") and message.get("tool_calls")
        assert len(spans) == 1 or (len(spans) == 2 and twice)
        closed = text[: spans[-1][1]]
        assert text[len(closed) :].strip("\n") == ""
        end = END_OF_TURN.get(name, "")
        if name == "ministral-3":
            end = str(variables.get("eos_token", end))
        ends = len(spans)
        if name == "nemotron-nano-v2" and str(message.get("content") or "").strip():
            ends -= variables.get("continue_final_message", False) is not False
        end = end if ends else ""
        assert closed.endswith(end)
        if end:
            last = [segment for segment in result.segments if segment.generated][-1]
            assert last == Segment(end, "control", index, "assistant", True)
            assert result.segments.count(last) == ends

        prompted = prompt(name, messages[:index], tools, **{**variables, "add_generation_prompt": True})
        reason = why_not_prompted(name, conversation.messages, text, prompted)
        if reason is None:
            assert text[: spans[0][0]] == prompted
        yield reason or "prompted"


# Encoding: only what the format wrote becomes a control token.


def assert_encoding(name: str, conversation: Conversation) -> Iterator[str]:
    variables = {k: v for k, v in conversation.variables.items() if k not in ("bos_token", "eos_token")}
    conversation = Conversation(conversation.messages, conversation.tools, variables)
    result = outcome(chatformats.get(name).render_segments, conversation)
    if not isinstance(result, Rendered):
        return
    tokenizer = Characters(chatformats.get(name).control_tokens)
    ids: list[int] = []
    for segment in result.segments:
        encode = tokenizer.encode if segment.origin == "control" else tokenizer.encode_plain
        ids += encode(segment.text)
    assert result.encode(tokenizer.encode, tokenizer.encode_plain) == ids
    assert (tokenizer.encode(result.text) != ids) == bool(result.injected)
    for token, start, message in result.injected:
        assert result.text.startswith(token, start)
        spans = result.spans(origin="content", message=message)
        assert any(left < start + len(token) and start < right for left, right in spans)
    yield "injected" if result.injected else "harmless"


# A prompt that is continued: the same, as far as it goes.


def assert_continued(name: str, conversation: Conversation) -> Iterator[str]:
    if name == "nemotron-nano-v2":  # where it is the template's variable, as the other tests have it
        return
    formatter = chatformats.get(name)
    variables = {**conversation.variables, "add_generation_prompt": False}
    conversation = Conversation(conversation.messages, conversation.tools, variables)
    text = outcome(formatter.render, conversation, continue_final_message=True)
    result = outcome(formatter.render_segments, conversation, continue_final_message=True)
    if not isinstance(result, Rendered):
        assert result == text
        return
    assert result.text == text
    content = conversation.messages[-1]["content"]
    if not isinstance(content, str):
        return
    assert text.endswith(content) or (name == "hebatron" and text.endswith(content.strip()))
    # An empty content, which templates may treat as none, is continued as if it were not empty.
    if content.strip():
        whole = rendered(name, conversation.messages, conversation.tools, **variables)
        assert whole.text.startswith(text)
        assert as_far_as(len(text), whole.segments) == result.segments
        yield "continued"


def as_far_as(end: int, segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return segments up to a place in the prompt."""
    start = 0
    cut = []
    for segment in segments:
        if start < end:
            cut.append(segment._replace(text=segment.text[: end - start]))
        start += len(segment.text)
    return tuple(cut)


class Characters:
    """A tokenizer of characters and of control tokens."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = dict(zip(tokens, range(-1, -100, -1), strict=False))
        self._pattern = re.compile("|".join([*map(re.escape, self._tokens), "."]), re.DOTALL)

    def encode(self, text: str) -> list[int]:
        return [
            self._tokens[piece] if piece in self._tokens else ord(piece)
            for piece in self._pattern.findall(text)
        ]

    def encode_plain(self, text: str) -> list[int]:
        return [ord(character) for character in text]

    def decode(self, ids: list[int]) -> str:
        names = {number: token for token, number in self._tokens.items()}
        return "".join(f"«{names[number]}»" if number in names else chr(number) for number in ids)


ASSERTIONS = (assert_segments, assert_origin, assert_generated, assert_encoding, assert_continued)


@pytest.mark.parametrize("kind", [well_formed, malformed], ids=["well_formed", "malformed"])
@pytest.mark.parametrize("name", oracle.NAMES)
def test_generated_conversations(name: str, kind: Any, conversations: int, derandomize: bool) -> None:
    share = 1 / 3 if kind is malformed else 2 / 3
    seen: Counter[str] = Counter()

    @settings(
        max_examples=int(conversations * share),
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(kind(name))
    def examine(conversation: Conversation) -> None:
        for assertion in ASSERTIONS:
            seen.update(assertion(name, conversation))

    examine()
    if kind is malformed:
        assert seen["rendered"] >= 0.1 * conversations * share
        assert seen["refused"] >= 0.05 * conversations * share
        return
    # What is hardly ever seen is hardly tested.
    silent = {"glm4-tools": {"system", "tool", "injected"}, "nemotron-nano-v2": {"continued"}}.get(
        name, set()
    )
    expected = {*_ROLES, "tools", "rendered", "prompted", "harmless", "injected", "continued"}
    for what in expected - silent:
        assert seen[what] >= 0.05 * conversations * share, what
    assert not seen.keys() & silent


# Examples, as the references have them.


def lines(result: Rendered) -> list[str]:
    """Return the segments a line each: message, a star for what is generated, origin, text."""
    return [
        f"{'-' if message is None else message}{'*' if generated else ''} {origin} {text}"
        for text, origin, message, _, generated in result.segments
    ]


def call(name: object, arguments: object) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def user(content: object = "Hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def answer(content: object = "Yo", **more: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def system(content: object = "Be brief.") -> dict[str, Any]:
    return {"role": "system", "content": content}


def tool(content: object = "5") -> dict[str, Any]:
    return {"role": "tool", "content": content}


def test_segments_of_glm4_tools() -> None:
    result = rendered("glm4-tools", [user(), answer(), user("Bye")], add_generation_prompt=True)
    assert lines(result) == [
        "0 scaffold [Round 0]\n问：",
        "0 content Hi",
        "1 scaffold \n答：",
        "1* content Yo",
        "1 scaffold \n",
        "2 scaffold [Round 1]\n问：",
        "2 content Bye",
        "- scaffold \n答：",
    ]


def test_segments_of_hebatron() -> None:
    calling = answer("ok", reasoning_content="hm", tool_calls=[call("f", {"a": True})])
    result = rendered("hebatron", [system(), user(), calling, tool()], add_generation_prompt=True)
    first, identity, *rest = lines(result)[1:]
    assert first == "- control <|im_start|>"
    assert identity.startswith("- scaffold system\nאני מודל שפה בשם HebaTron")
    assert rest == [
        "0 scaffold \n\n",
        "0 content Be brief.",
        "- control <|im_end|>",
        "- scaffold \n",
        "1 control <|im_start|>",
        "1 scaffold user\n",
        "1 content Hi",
        "1 control <|im_end|>",
        "1 scaffold \n",
        "2 control <|im_start|>",
        "2 scaffold assistant\n",
        "2 control <think>",
        "2 scaffold \n",
        "2* content hm",
        "2* scaffold \n",
        "2* control </think>",
        "2* scaffold \n",
        "2* content ok",
        "2* scaffold \n",
        "2* control <tool_call>",
        "2* scaffold \n<function=",
        "2* content f",
        "2* scaffold >\n<parameter=",
        "2* content a",
        "2* scaffold >\n",
        "2* content True",
        "2* scaffold \n</parameter>\n</function>\n",
        "2* control </tool_call>",
        "2* scaffold \n",
        "2* control <|im_end|>",
        "2 scaffold \n",
        "3 control <|im_start|>",
        "3 scaffold user\n",
        "3 control <tool_response>",
        "3 scaffold \n",
        "3 content 5",
        "3 scaffold \n",
        "3 control </tool_response>",
        "3 scaffold \n",
        "3 control <|im_end|>",
        "3 scaffold \n",
        "- control <|im_start|>",
        "- scaffold assistant\n",
        "- control <think>",
        "- scaffold \n",
    ]


def test_segments_of_joyai_llm_flash() -> None:
    messages = [
        user(),
        answer("", tool_calls=[call("f", '{"a": [1]}')]),
        tool(),
        system(),
        system("In Latin."),
    ]
    result = rendered("joyai-llm-flash", messages, add_generation_prompt=True, bos_token="<s>")
    assert lines(result) == [
        "- control <s>",
        "3 content Be brief.",
        "4 scaffold \n\n",
        "4 content In Latin.",
        "0 control <|User|>",
        "0 content Hi",
        "1 control <|Assistant|>",
        "1 control <|end_of_thought|>",
        "1* scaffold \n",
        "1* control <tool_call>",
        "1* scaffold \n<function=",
        "1* content f",
        "1* scaffold >\n<parameter=",
        "1* content a",
        "1* scaffold >\n",
        "1* content [1]",
        "1* scaffold \n</parameter>\n</function>\n",
        "1* control </tool_call>",
        "1* control <|end▁of▁sentence|>",
        "2 scaffold \n<tool_response>\n",
        "2 content 5",
        "2 scaffold \n</tool_response>",
        "- control <|Assistant|>",
        "- control <|end_of_thought|>",
    ]


def test_segments_of_ministral_3() -> None:
    parts = [{"type": "text", "text": "What?"}, {"type": "image"}]
    calling = answer("", tool_calls=[call("a<b", {}), call("g", "")])
    result = rendered("ministral-3", [user(parts), calling, tool(5)], [{"a": 1}])
    default = [line for line in lines(result) if "Le Chat" in line]
    assert [line.split(" ", 2)[:2] for line in default] == [["-", "scaffold"]]
    assert [line for line in lines(result) if line not in default] == [
        "- control <s>",
        "- control [SYSTEM_PROMPT]",
        "- control [/SYSTEM_PROMPT]",
        "- control [AVAILABLE_TOOLS]",
        '- content [{"a": 1}]',
        "- control [/AVAILABLE_TOOLS]",
        "0 control [INST]",
        "0 control [IMG]",
        "0 content What?",
        "0 control [/INST]",
        "1* control [TOOL_CALLS]",
        "1* content a&lt;b",
        "1* control [ARGS]",
        "1* content {}",
        "1* control [TOOL_CALLS]",
        "1* content g",
        "1* control [ARGS]",
        "1* scaffold {}",
        "1* control </s>",
        "2 control [TOOL_RESULTS]",
        "2 content 5",
        "2 control [/TOOL_RESULTS]",
    ]


def test_segments_of_nemotron_nano_v2() -> None:
    messages = [system("S /no_think"), user(), answer("a"), tool(), tool("6")]
    messages += [answer("b", tool_calls=[call("f", {"x": 1}), call("g", "{")])]
    assert lines(rendered("nemotron-nano-v2", messages)) == [
        "- control <SPECIAL_10>",
        "- scaffold System\n",
        "0 content S",
        "- scaffold \n\n",
        "1 control <SPECIAL_11>",
        "1 scaffold User\n",
        "1 content Hi",
        "1 scaffold \n",
        "2 control <SPECIAL_11>",
        "2 scaffold Assistant\n",
        "2* content a",
        "2* scaffold \n",
        "2* control <SPECIAL_12>",
        "2 scaffold \n",
        "3 control <SPECIAL_11>",
        "3 scaffold User\n<TOOL_RESPONSE>[",
        "3 content 5",
        "3 scaffold , ",
        "4 content 6",
        "4 scaffold ]</TOOL_RESPONSE>",
        "5 control <SPECIAL_11>",
        "5 scaffold Assistant\n<think></think>",
        "5* content b",
        "5* scaffold \n",
        "5* control <SPECIAL_12>",
        "5 scaffold \n",
        "5 control <SPECIAL_11>",
        "5 scaffold Assistant\n",
        '5* scaffold <TOOLCALL>[{"name": "',
        "5* content f",
        '5* scaffold ", "arguments": ',
        '5* content {"x": 1}',
        '5* scaffold }, {"name": "',
        "5* content g",
        '5* scaffold ", "arguments": ',
        "5* content {",
        "5* scaffold }]</TOOLCALL>",
        "5* control <SPECIAL_12>",
        "5 scaffold \n\n",
    ]


class Marked(BaseFormatter):
    name = "marked"
    control_tokens: tuple[str, ...] = ("<a>", "<a><b>", "<b>", "(.*)")

    def write(
        self, out: Sink, messages: Any, tools: Any, add_generation_prompt: bool, *, markup: str = ""
    ) -> None:
        for _ in out.turns(messages, 0):
            out.reply.markup(markup)
            out.markup(markup)


class Unmarked(Marked):
    control_tokens = ()


def test_markup_is_taken_apart_at_control_tokens() -> None:
    markup = "\nx<a><b><b><a>y(.*).<"
    result = Marked().render_segments([answer()], markup=markup)
    pieces = [
        "scaffold \nx",
        # Of two that begin alike, the longer one is meant.
        "control <a><b>",
        "control <b>",
        "control <a>",
        "scaffold y",
        "control (.*)",
        "scaffold .<",
    ]
    assert lines(result) == [*(f"0* {piece}" for piece in pieces), *(f"0 {piece}" for piece in pieces)]
    assert result.text == markup * 2


def test_markup_writes_nothing_between_two_tokens() -> None:
    # An empty piece would pass for the message's content.
    result = Marked().render_segments([user()], markup="<a><a>")
    assert lines(result) == ["0* control <a>"] * 2 + ["0 control <a>"] * 2
    assert result.dropped == [0]


def test_markup_without_control_tokens_is_scaffold() -> None:
    result = Unmarked().render_segments([user()], markup="<a>\n")
    assert lines(result) == ["0* scaffold <a>\n", "0 scaffold <a>\n"]


def test_prompted_answer_of_nemotron_is_open() -> None:
    messages = [user(), answer("b", tool_calls=[call("f", {})])]
    assert lines(rendered("nemotron-nano-v2", messages, add_generation_prompt=True))[-3:] == [
        "- control <SPECIAL_11>",
        "- scaffold Assistant\n<think>\n",
        "1* content b",
    ]


def test_thought_in_the_content_begins_with_the_prompt() -> None:
    # As the prompt has it, <think> and the line break are not generated; the rest of the content is.
    for prompted, rest in (("<think>\n", "hm</think>Yo"), ("<think></think>", "Yo")):
        result = rendered("hebatron", [user(), answer(prompted + rest)])
        assert lines(result)[-4:-2] == [f"1 content {prompted}", f"1* content {rest}"]


CHAT = [system(), user(), answer()]
# <s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hi[/INST]Yo</s>
#    3              18       27              43    49 51     58 60


@pytest.mark.parametrize(
    ("filters", "spans"),
    [
        ({}, [(0, 64)]),
        ({"origin": "content"}, [(18, 27), (49, 51), (58, 60)]),
        ({"origin": "control"}, [(0, 18), (27, 49), (51, 58), (60, 64)]),
        ({"origin": "scaffold"}, []),
        ({"role": "user"}, [(43, 58)]),
        ({"message": 0}, [(3, 43)]),
        ({"message": 0, "role": "user"}, []),
        ({"generated": True}, [(58, 64)]),
        ({"generated": False}, [(0, 58)]),
        ({"generated": True, "origin": "content"}, [(58, 60)]),
        ({"role": "assistant", "origin": "control"}, [(60, 64)]),
        ({"role": "tool"}, []),
    ],
)
def test_spans(filters: dict[str, Any], spans: list[tuple[int, int]]) -> None:
    assert rendered("ministral-3", CHAT).spans(**filters) == spans


def test_mask() -> None:
    result = rendered("ministral-3", CHAT)
    whole = [(0, 58), (58, 60), (60, 64)]
    straddling = [(57, 59), (59, 61), (0, 64), (57, 58), (63, 64)]
    empty = [(0, 0), (58, 58), (59, 59), (64, 64)]
    assert result.mask(whole) == [0, 1, 1]
    assert result.mask(straddling) == [1, 1, 1, 0, 1]
    assert result.mask(empty) == [0, 0, 0, 0]
    assert result.mask([]) == []
    assert rendered("ministral-3", CHAT[:2]).mask([(0, 3), (49, 51)]) == [0, 0]


def test_mask_of_two_answers() -> None:
    result = rendered("glm4-tools", [user(), answer(), user("Bye"), answer("Oh")])
    start = result.text.index("Oh")
    assert result.spans(generated=True) == [(17, 19), (start, start + 2)]
    offsets = [(16, 17), (16, 18), (18, 20), (19, 20), (19, start), (19, start + 1), (16, start + 2)]
    assert result.mask(offsets) == [0, 1, 1, 0, 0, 1, 1]


def test_message_index() -> None:
    result = rendered("ministral-3", CHAT)
    offsets = [
        (0, 3),
        (2, 4),
        (3, 18),
        (42, 43),
        (43, 49),
        (57, 59),
        (58, 60),
        (60, 64),
        (0, 0),
        (50, 50),
        (64, 64),
    ]
    assert result.message_index(offsets) == [None, None, 0, 0, 1, 1, 2, 2, None, None, None]
    assert result.message_index([]) == []


DEVELOPER = {"role": "developer", "content": "x"}


@pytest.mark.parametrize(
    ("name", "messages", "dropped"),
    [
        ("glm4-tools", [system(), user(), tool(), DEVELOPER, user()], [0, 2, 3]),
        ("glm4-tools", [user(), answer("", tool_calls=[call("f", {})]), user()], [1]),
        ("glm4-tools", [user(), answer("Yo", tool_calls=[call("f", {})]), user(""), answer("")], []),
        ("glm4-tools", [system(""), user(), tool(" \n"), {"role": "developer"}], []),
        ("glm4-tools", [user(), tool([{"type": "image"}]), tool([{"type": "text", "text": "x"}])], [2]),
        ("glm4-tools", [user(), tool([{"text": 10**5000}]), tool(5), tool(0), tool({"a": 1})], [1, 2, 4]),
        ("hebatron", [system(), DEVELOPER, system(), user(""), answer("")], []),
        ("hebatron", [user(), answer("", reasoning_content="hm"), user()], [1]),
        ("hebatron", [user(), answer("", reasoning_content="hm")], []),
        (
            "joyai-llm-flash",
            [system(), DEVELOPER, user(), system(), answer("", reasoning_content="x")],
            [1, 4],
        ),
        ("ministral-3", [user([{"type": "image"}]), answer("", tool_calls=[call("f", {})]), tool("")], []),
        ("nemotron-nano-v2", [system(), DEVELOPER, system(), user(), answer("</think>")], [1, 2]),
        ("nemotron-nano-v2", [user(), answer("<think>hm</think>"), user()], [1]),
        # A switch has done what it is for.
        ("nemotron-nano-v2", [system("/no_think"), user("/think"), answer()], []),
    ],
)
def test_dropped(name: str, messages: list[Any], dropped: list[int]) -> None:
    assert rendered(name, messages).dropped == dropped


def test_tool_calls_behind_a_generation_prompt_are_dropped() -> None:
    messages = [user(), answer("", tool_calls=[call("f", {})])]
    assert rendered("nemotron-nano-v2", messages, add_generation_prompt=True).dropped == [1]


def test_dropped_is_of_the_messages_as_they_were() -> None:
    messages = [user(), DEVELOPER]
    result = rendered("joyai-llm-flash", messages)
    messages[:] = [user(), user(), DEVELOPER]
    assert result.dropped == [1]


def found(name: str, messages: Any, tools: Any = None, **variables: Any) -> list[tuple[str, int | None]]:
    """Return the injected tokens, each with its message, once each is seen to stand where it is said to."""
    result = rendered(name, messages, tools, **variables)
    for injection in result.injected:
        assert result.text.startswith(injection.token, injection.start)
    return [(injection.token, injection.message) for injection in result.injected]


def test_injected_is_what_the_caller_wrote() -> None:
    messages = [user("a[/INST]b</s>"), answer("[INST]", tool_calls=[call("[ARGS]", "[IMG]")])]
    assert rendered("ministral-3", [system(), *messages], [{"[INST]": 1}]).injected == [
        Injection("[INST]", 63, None),
        Injection("[/INST]", 100, 1),
        Injection("</s>", 108, 1),
        Injection("[INST]", 119, 2),
        Injection("[ARGS]", 137, 2),
        Injection("[IMG]", 149, 2),
    ]
    assert found("glm4-tools", [user("<|user|>[gMASK]")]) == []
    assert found("hebatron", [user("<|im_end|>"), answer("<think>\nhm</think>Yo")]) == [
        ("<|im_end|>", 0),
        ("<think>", 1),
        ("</think>", 1),
    ]


def test_injected_is_not_what_the_template_takes_apart() -> None:
    name = call("</s>", {})
    assert found("ministral-3", [user(), answer("", tool_calls=[name])]) == []
    assert find_control_tokens(chatformats.get("ministral-3"), [answer("", tool_calls=[name])]) != []
    assert found("hebatron", [user(), answer("<think>a</think>b"), user()]) == []


def test_injected_is_also_what_the_template_puts_together() -> None:
    def assembled(
        name: str, messages: Any, tools: Any = None, **variables: Any
    ) -> list[tuple[str, int | None]]:
        assert find_control_tokens(chatformats.get(name), messages, tools) == []
        return found(name, messages, tools, **variables)

    calling = [user(), answer("", tool_calls=[call("<|im_end|", {})])]
    assert assembled("hebatron", calling) == [("<|im_end|>", 1)]
    schema = [{"name": "f", "parameters": {"properties": {"a": {"think": 1}}, "tool_call": {}}}]
    assert assembled("hebatron", [user()], schema) == [
        ("<think>", None),
        ("</think>", None),
        ("<tool_call>", None),
        ("</tool_call>", None),
    ]
    parts = [{"type": "text", "text": text} for text in ("x[/IN", "ST]", "y")]
    assert assembled("ministral-3", [user(parts)]) == [("[/INST]", 0)]
    assert assembled("nemotron-nano-v2", [user("<SPECIAL_1/th/thinkink2>")]) == []
    assert assembled("nemotron-nano-v2", [user("<SPECIAL_1/think2>")]) == [("<SPECIAL_12>", 0)]
    assert assembled("nemotron-nano-v2", [system("<SPEC/no_/thinkthinkIAL_10>"), user()]) == [
        ("<SPECIAL_10>", 0)
    ]
    arguments = '{"a": "\\u003c|User|>"}'
    calling = [user(), answer("", tool_calls=[call("f", arguments)])]
    assert assembled("joyai-llm-flash", calling) == [("<|User|>", 1)]
    results = [user(), answer("", tool_calls=[call("f", {})]), tool("<SPECIAL_12"), tool(">")]
    assert assembled("nemotron-nano-v2", results) == []


def test_injected_is_also_what_the_host_says_is_a_token() -> None:
    messages = [user("<bos><eos>"), answer()]
    tokens = {"bos_token": "<bos>", "eos_token": "<eos>"}
    assert found("ministral-3", messages, **tokens) == [("<bos>", 0), ("<eos>", 0)]
    assert found("ministral-3", messages) == []
    # What the format spells out itself is not injected, whatever the host says.
    assert "French" in rendered("ministral-3", messages).text
    assert found("ministral-3", messages, eos_token="French") == []


NOT_TOKENS = ["<|im_end|", "<|IM_END|>", "im_end", "< |im_end|>", "<|im_end>", "", 5, None, True]


def test_find_control_tokens() -> None:
    fmt = chatformats.get("hebatron")
    messages = (
        user("a<|im_end|>b<|im_end|><think>"),
        answer(None, tool_calls=[call("<tool_call>", {"<think>": ["x", {"</think>": "<|im_start|>"}]})]),
        {"role": "x</think>", "content": NOT_TOKENS},
    )
    tools = [{"function": {"parameters": {"properties": {"<|im_end|>": {"enum": ["<think>"]}}}}}]
    function = "messages[1].tool_calls[0].function"
    assert find_control_tokens(fmt, messages, tools) == [
        ("messages[0].content", "<|im_end|>", 1),
        ("messages[0].content", "<|im_end|>", 12),
        ("messages[0].content", "<think>", 22),
        (f"{function}.name", "<tool_call>", 0),
        (f"{function}.arguments['<think>']", "<think>", 0),
        (f"{function}.arguments['<think>'][1]['</think>']", "</think>", 0),
        (f"{function}.arguments['<think>'][1]['</think>']", "<|im_start|>", 0),
        ("messages[2].role", "</think>", 1),
        ("tools[0].function.parameters.properties['<|im_end|>']", "<|im_end|>", 0),
        ("tools[0].function.parameters.properties['<|im_end|>'].enum[0]", "<think>", 0),
    ]
    assert find_control_tokens(fmt, [], None) == []
    assert find_control_tokens(chatformats.get("glm4-tools"), messages, tools) == []


@pytest.mark.parametrize("mapping", [OrderedDict, UserDict, MappingProxyType], ids=lambda kind: kind.__name__)
def test_find_control_tokens_in_other_containers(mapping: Callable[[Any], Any]) -> None:
    fmt = chatformats.get("ministral-3")
    messages: Any = deque([mapping(user(mapping({"a": deque(["[INST]"])})))])
    assert find_control_tokens(fmt, messages) == [("messages[0].content.a[0]", "[INST]", 0)]
    assert len(find_control_tokens(fmt, [user({"[INST]"}), user({"a": 1, 5: "[IMG]"}.values())])) == 2


def test_find_control_tokens_however_deep() -> None:
    fmt = chatformats.get("ministral-3")
    value: Any = "[INST]"
    for _ in range(100_000):
        value = [value]
    assert find_control_tokens(fmt, [user(value)]) == [("messages[0].content" + "[0]" * 100_000, "[INST]", 0)]
    for _ in range(100_000):
        value = {"a": value}
    (found_path, _, _), *others = find_control_tokens(fmt, [user(value)])
    assert found_path.startswith("messages[0].content.a.a.a")
    assert others == []


def test_find_control_tokens_in_a_circle() -> None:
    fmt = chatformats.get("ministral-3")
    circle: dict[str, Any] = {"[INST]": 1, "list": ["[IMG]"]}
    circle["self"] = circle
    circle["list"] += [circle, circle["list"]]
    assert find_control_tokens(fmt, [user(circle)]) == [
        ("messages[0].content['[INST]']", "[INST]", 0),
        ("messages[0].content.list[0]", "[IMG]", 0),
    ]
    # What merely occurs twice is found twice.
    twice = ["[IMG]"]
    assert len(find_control_tokens(fmt, [user([twice, twice, [twice]])])) == 3


def encoded(result: Rendered, tokens: Iterable[str], added: Iterable[str] = ()) -> str:
    """Encode and decode: what became a control token stands in « »."""
    tokenizer = Characters([*tokens, *added])
    return tokenizer.decode(result.encode(tokenizer.encode, tokenizer.encode_plain, added))


def test_encode() -> None:
    tokens = chatformats.get("ministral-3").control_tokens
    messages = [system(), user("a[/INST]b"), answer("c"), user("d")]
    assert encoded(rendered("ministral-3", messages), tokens) == (
        "«<s>»«[SYSTEM_PROMPT]»Be brief.«[/SYSTEM_PROMPT]»«[INST]»a[/INST]b«[/INST]»c«</s>»«[INST]»d«[/INST]»"
    )
    parts = [{"type": "text", "text": text} for text in ("[IN", "ST]")]
    assert encoded(rendered("ministral-3", [system("x"), user(parts)]), tokens) == (
        "«<s>»«[SYSTEM_PROMPT]»x«[/SYSTEM_PROMPT]»«[INST]»[INST]«[/INST]»"
    )


def test_encode_as_it_is_without_injections() -> None:
    calls: list[str] = []

    def encode(text: str) -> list[int]:
        calls.append(text)
        return [1, 2]

    result = rendered("ministral-3", CHAT)
    assert result.encode(encode, lambda text: [0]) == [1, 2]
    assert calls == [result.text]
    assert rendered("glm4-tools", []).encode(encode, encode) == []


def test_encode_with_tokens_that_the_format_does_not_write() -> None:
    messages = [system("<pad>"), user("x"), tool("y<tool_response>z"), user("<pa")]
    result = rendered("joyai-llm-flash", messages)
    tokens = chatformats.get("joyai-llm-flash").control_tokens
    added = ["<pad>", "<tool_response>", "</tool_response>"]
    assert result.injected == []
    # What the scaffold spells out is the format's, and stays a token beside what is injected.
    assert encoded(result, tokens, added) == (
        "<pad>«<|User|>»x\n«<tool_response>»\ny<tool_response>z\n«</tool_response>»«<|User|>»<pa"
    )
    glm = rendered("glm4-tools", [user("<|user|>"), answer()])
    assert encoded(glm, (), ["<|user|>", "问："]) == "[Round 0]\n«问：»<|user|>\n答：Yo"
    # Only what holds an injected token is encoded as plain text.
    tokenizer = Characters(["<|user|>", "[Round", "答："])
    pieces: list[str] = []

    def encode_plain(text: str) -> list[int]:
        pieces.append(text)
        return tokenizer.encode_plain(text)

    glm = rendered("glm4-tools", [user("x<|user|>"), answer(), user("<|user|>y"), answer("z")])
    ids = glm.encode(tokenizer.encode, encode_plain, ["<|user|>", "[Round", "答："])
    assert tokenizer.decode(ids).count("«<|user|>»") == 0
    assert pieces == [" 0]\n问：x<|user|>\n", " 1]\n问：<|user|>y\n"]


def test_encode_where_a_token_of_the_format_s_is_part_of_an_injected_one() -> None:
    glm = rendered("glm4-tools", [user("x"), answer()])
    assert encoded(glm, (), ["问："]) == "[Round 0]\n«问：»x\n答：Yo"
    assert encoded(glm, (), ["问：", "：x"]) == "[Round 0]\n问：x\n答：Yo"


# Continuing the last message: the prompt ends where its content ends.

PARTS = [{"type": "text", "text": "Well, "}, {"type": "text", "text": "Once "}]
CONTINUED = {
    "glm4-tools": [
        ([user(), answer("Once ")], "Hi\n答：Once "),
        ([user(), answer("Once\n", tool_calls=[call("f", {})])], "Hi\n答：Once\n"),
        ([user(), answer("")], "Hi\n答："),
        ([user("Once ")], "[Round 0]\n问：Once "),
    ],
    "hebatron": [
        ([user(), answer("Once \n")], "<|im_start|>assistant\n<think></think>Once"),
        ([user(), answer("Once ", reasoning_content="hm")], "assistant\n<think>\nhm\n</think>\nOnce"),
        ([user(), answer("Once ", tool_calls=[call("f", {})])], "assistant\n<think></think>Once"),
        ([user(), answer("<think>\nhm ")], "assistant\n<think>\nhm"),
        ([user(), answer("")], "assistant\n<think></think>"),
        ([user(), answer("", reasoning_content="hm")], "assistant\n<think>\nhm\n</think>"),
        ([user(), answer("\n")], "assistant\n<think></think>"),
        ([user(PARTS)], "user\n[{'type': 'text', 'text': 'Well, '}, {'type': 'text', 'text': 'Once "),
        ([user("Once ")], "<|im_start|>user\nOnce "),
        ([user(), tool("Once ")], "<tool_response>\nOnce "),
    ],
    "joyai-llm-flash": [
        ([user(), answer("Once ")], "Hi<|Assistant|><|end_of_thought|>Once "),
        ([user(), answer("Once ", reasoning_content="hm")], "<|Assistant|><|end_of_thought|>Once "),
        ([user(), answer("Once", tool_calls=[call("f", {})])], "<|Assistant|><|end_of_thought|>Once"),
        ([user(), answer("")], "<|Assistant|><|end_of_thought|>"),
        ([user("Once ")], "<|User|>Once "),
    ],
    "ministral-3": [
        ([user(), answer("Once ")], "[INST]Hi[/INST]Once "),
        ([user(), answer("Once ", tool_calls=[call("f", {})])], "[INST]Hi[/INST]Once "),
        ([user(), answer(PARTS)], "[INST]Hi[/INST]Well, Once "),
        ([user(), answer("")], "[INST]Hi[/INST]"),
        ([user([*PARTS, {"type": "image"}])], "[INST]Well, Once "),
    ],
}


@pytest.mark.parametrize(
    ("name", "messages", "end"), [(name, *case) for name, cases in CONTINUED.items() for case in cases]
)
def test_continued(name: str, messages: list[Any], end: str) -> None:
    text = prompt(name, messages, continue_final_message=True)
    assert text is not None
    assert text.endswith(end)
    result = rendered(name, messages, continue_final_message=True)
    assert result.text == text
    assert result.dropped == []


@pytest.mark.parametrize("name", oracle.NAMES)
def test_continued_text_may_look_like_a_mark(name: str) -> None:
    text = "CONTINUE_FINAL_MESSAGE_TAG "
    call_with_it = call("f", {"a": text})
    messages = [user(text), answer(text + "x", tool_calls=[call_with_it])]
    result = rendered(name, messages, continue_final_message=True)
    if name == "nemotron-nano-v2":
        assert result.text == oracle.render(name, messages, continue_final_message=True)
    else:
        assert result.text == rendered(name, messages).text[: len(result.text)]
        assert result.text.endswith(text + "x")


def test_what_follows_a_continued_system_message_is_dropped() -> None:
    result = rendered("joyai-llm-flash", [user(), answer(), system()], continue_final_message=True)
    assert lines(result) == ["2 content Be brief."]
    assert result.dropped == [0, 1]


CONTRADICTION = (
    "continue_final_message: contradicts add_generation_prompt: a prompt ends in one of the two ways"
)
NOT_PRINTED = "continue_final_message: the template does not print the last message's content to its end"
NOTHING_TO_CONTINUE: dict[str, tuple[Any, str]] = {
    "null": ([user(), answer(None)], "messages[1].content: expected text to continue, got None"),
    "missing": (
        [user(), {"role": "assistant"}],
        "messages[1].content: expected text to continue, but it is mis",
    ),
    "number": ([user(), answer(5)], "messages[1].content: expected text to continue, got int"),
    "long_number": ([user(), answer(10**5000)], "messages[1].content: expected text to continue, got int"),
    "mapping": ([user(), answer({"text": "x"})], "messages[1].content: expected text to continue, got dict"),
    "no_parts": ([user([])], "messages[0].content: expected a text part to continue, got list"),
    "an_image": (
        [user([{"type": "image"}, "x"])],
        "messages[0].content: expected a text part to continue, got",
    ),
    "null_part": (
        [user([*PARTS, {"type": "text", "text": None}])],
        "messages[0].content[2].text: expected text to",
    ),
    "no_mapping": ([user(), "x"], "messages[1].content: expected text to continue, but it is missing"),
    "no_messages": ([], "messages: expected a message to continue"),
    "no_sequence": (5, "messages: expected a sequence of messages, got int"),
}


@pytest.mark.parametrize(("messages", "sentence"), NOTHING_TO_CONTINUE.values(), ids=NOTHING_TO_CONTINUE)
@pytest.mark.parametrize("name", sorted(CONTINUED))
def test_nothing_to_continue(name: str, messages: Any, sentence: str) -> None:
    render: Callable[..., str] = chatformats.get(name).render
    with pytest.raises(ChatFormatError) as caught:
        render(messages, continue_final_message=True)
    assert str(caught.value).startswith(sentence)
    with pytest.raises(ChatFormatError) as segments_caught:
        rendered(name, messages, continue_final_message=True)
    assert str(segments_caught.value) == str(caught.value)


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("glm4-tools", [user(), tool("x")]),
        ("glm4-tools", [user(), DEVELOPER]),
        ("glm4-tools", [system()]),
        ("joyai-llm-flash", [user(), DEVELOPER]),
        ("ministral-3", [user([{"type": "image", "text": "x"}])]),
        # As Python's str() writes it, it is no text to go on with.
        ("hebatron", [user([{"type": "text", "text": "a\nb"}])]),
    ],
)
def test_nothing_of_it_is_printed(name: str, messages: Any) -> None:
    with pytest.raises(ChatFormatError) as caught:
        rendered(name, messages, continue_final_message=True)
    assert str(caught.value).startswith(NOT_PRINTED)


@pytest.mark.parametrize("name", sorted(CONTINUED))
def test_continuing_contradicts_a_generation_prompt(name: str) -> None:
    with pytest.raises(ChatFormatError) as caught:
        rendered(name, CHAT, add_generation_prompt=True, continue_final_message=True)
    assert str(caught.value) == CONTRADICTION


def test_continue_final_message_of_nemotron_is_the_template_s_own() -> None:
    messages = [user(), answer("Once ", tool_calls=[call("f", {})])]
    for prompted in (False, True):
        variables = {"add_generation_prompt": prompted, "continue_final_message": True}
        assert prompt("nemotron-nano-v2", messages, **variables) == oracle.render(
            "nemotron-nano-v2", messages, **variables
        )
