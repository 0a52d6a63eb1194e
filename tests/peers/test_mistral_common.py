# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Ministral's text in mistral-common's own tokenizer, against mistral-common's own encoding of the request."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import chatformats
from chatformats import ChatFormatError
from chatformats.spans import Rendered

from ..cases import conversations
from ..strategies import Conversation, well_formed
from .mistral import OTHER_TOKENS, decode, mistral_tokenizer, request, tekken
from .test_tokenizers import injecting

pytest.importorskip("mistral_common", reason="mistral-common is not installed (extra: peers)")

FORMAT = chatformats.get("ministral-3")
GENERATED = 300


def encode_plain(text: str) -> list[int]:
    """Encode as mistral-common does: to its tokenizer no text is a control token."""
    ids: list[int] = tekken().encode(text, bos=False, eos=False)
    return ids


def encode(text: str) -> list[int]:
    """Encode as a tokenizer does that looks for control tokens in a text."""
    ids: list[int] = []
    tokens = "|".join(map(re.escape, (*OTHER_TOKENS, *FORMAT.control_tokens)))
    for number, piece in enumerate(re.split(f"({tokens})", text)):
        ids += [tekken().get_special_token(piece)] if number % 2 else encode_plain(piece)
    return ids


def controls(ids: list[int]) -> list[str]:
    return [tekken().id_to_piece(number) for number in ids if tekken().is_special(number)]


def encoded(result: Rendered) -> list[int]:
    """Return the token ids, once nothing but the format's control tokens is one, and nothing is lost."""
    ids = result.encode(encode, encode_plain, OTHER_TOKENS)
    assert controls(ids) == [segment.text for segment in result.segments if segment.origin == "control"]
    assert decode(ids) == result.text
    return ids


@pytest.mark.parametrize("token", (*FORMAT.control_tokens, *OTHER_TOKENS))
def test_injected_token_stays_text(token: str) -> None:
    case = injecting("ministral-3", token)
    result = FORMAT.render_segments(**case)
    ids = encoded(result)
    assert len(controls(encode(result.text))) > len(controls(ids))


# What mistral-common does to a request before it encodes it, and the template does not. Each step makes of a
# conversation one of which the template prints what mistral-common prints of the first.

Step = Callable[[dict[str, Any]], None]


def no_default_system_prompt(case: dict[str, Any]) -> None:
    """Without a system message mistral-common writes none; the template has a default of its own."""
    if case["messages"][0]["role"] != "system":
        case["default"] = True


def parts_in_one_text(case: dict[str, Any]) -> None:
    """Text parts are joined with a blank line, where the template joins them with nothing (or prints a list)."""
    for message in case["messages"]:
        if isinstance(message.get("content"), list):
            message["content"] = "\n\n".join(part["text"] for part in message["content"] if part["text"])


def no_spaces_after_an_answer(case: dict[str, Any]) -> None:
    """Spaces at the end of an answer are cut off."""
    for message in case["messages"]:
        if message["role"] == "assistant" and isinstance(message.get("content"), str):
            text = message["content"].rstrip(" ")
            # An empty text is refused by the template, an empty part is not.
            message["content"] = text if text or message.get("tool_calls") else [{"type": "text", "text": ""}]


def arguments_rewritten(case: dict[str, Any]) -> None:
    """Arguments in a string are read as JSON and written anew, and what is no JSON as a JSON string."""
    for message in case["messages"]:
        for call in message.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            if arguments is None:
                arguments = "{}"
            elif isinstance(arguments, str):
                try:
                    arguments = json.loads(arguments or "{}")
                except ValueError:
                    pass
                arguments = json.dumps(arguments, ensure_ascii=False)
            call["function"]["arguments"] = arguments


def tools_rewritten(case: dict[str, Any]) -> None:
    """Of a tool, its function's name, description and parameters are written, all three and nothing else."""
    for tool in case["tools"] or ():
        function = tool["function"]
        name, description = function["name"], function.get("description") or ""
        parameters = {} if function.get("parameters") is None else function["parameters"]
        tool.clear()
        tool["type"] = "function"
        tool["function"] = {"name": name, "description": description, "parameters": parameters}


def no_reasoning(case: dict[str, Any]) -> None:
    """Reasoning is written between [THINK] and [/THINK]; this template does not read it. Nobody gets it here."""
    for message in case["messages"]:
        message.pop("reasoning_content", None)


STEPS: tuple[Step, ...] = (
    no_default_system_prompt,
    parts_in_one_text,
    no_spaces_after_an_answer,
    arguments_rewritten,
    tools_rewritten,
)


def by_the_template(case: dict[str, Any]) -> list[int] | None:
    """Return the ids of the template's text, or None where it refuses."""
    try:
        result = FORMAT.render_segments(case["messages"], case["tools"])
    except ChatFormatError:
        return None
    ids = encoded(result)
    if case.get("default"):
        end = ids.index(tekken().get_special_token("[/SYSTEM_PROMPT]"))
        del ids[1 : end + 1]
    return ids


def by_mistral_common(case: dict[str, Any]) -> list[int] | None:
    """Return the ids of mistral-common's own encoding, or None where it refuses."""
    messages = []
    pending: list[str] = []
    number = 0
    try:
        for message in case["messages"]:
            message = {**message}
            calls = []
            for call in message.get("tool_calls") or ():
                number += 1
                calls.append({**call, "id": f"call{number:05}"})
                pending.append(calls[-1]["id"])
            if calls:
                message["tool_calls"] = calls
            if message["role"] == "tool":
                message["tool_call_id"] = pending.pop(0) if pending else "call99999"
            messages.append(message)
        asked = request(messages, copy.deepcopy(case["tools"]))
        ids: list[int] = mistral_tokenizer().encode_chat_completion(asked).tokens
    except Exception:  # noqa: BLE001  # pydantic's, its own, assertions
        return None
    return ids


def compared(messages: Any, tools: Any) -> str:
    """Compare both ways to encode a conversation; return what came of it, or the steps that it took."""
    case = copy.deepcopy({"messages": messages, "tools": tools})
    try:
        json.dumps(case, ensure_ascii=False).encode()
        no_reasoning(case)
    except (UnicodeEncodeError, TypeError, ValueError, AttributeError):
        return "refused"
    wanted = by_mistral_common(case)
    actual = by_the_template(case)
    if wanted is None or actual is None:
        return "refused"
    if tools and case["messages"][case["messages"][0]["role"] == "system"]["role"] != "user":
        # Tools stand before the first user message, in the template before the first message.
        return "elsewhere"
    steps = []
    for step in STEPS:
        before = copy.deepcopy(case)
        step(case)
        if case != before:
            steps.append(step.__name__)
    assert by_the_template(case) == wanted
    assert steps or actual == wanted
    return " ".join(steps) or "same"


SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What's the weather in Paris?"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Says how warm it is, in °C.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris (東京)"}}}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "content": '{"celsius": 21}'}
ANSWER = {"role": "assistant", "content": "It's 21 °C.</s>[/INST]"}


@pytest.mark.parametrize(
    "messages",
    [
        [SYSTEM, USER],
        [SYSTEM, USER, ANSWER],
        [SYSTEM, USER, ANSWER, USER, ANSWER],
        [SYSTEM, USER, CALLING],
        [SYSTEM, USER, CALLING, RESULT, ANSWER, USER],
        [SYSTEM, USER, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT, RESULT, ANSWER],
        [SYSTEM, USER, {**CALLING, "content": "Let me see.\n"}, RESULT, CALLING, RESULT],
    ],
)
@pytest.mark.parametrize("tools", [None, [], [TOOL], [TOOL, TOOL]])
def test_same_ids(messages: Any, tools: Any) -> None:
    assert compared(messages, tools) == "same"


@pytest.mark.parametrize(
    ("step", "messages", "tools"),
    [
        (no_default_system_prompt, [USER, ANSWER], None),
        (parts_in_one_text, [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "a"}] * 2}], None),
        (no_spaces_after_an_answer, [SYSTEM, USER, {**ANSWER, "content": "Well  "}], None),
        (
            arguments_rewritten,
            [SYSTEM, USER, {**CALLING, "tool_calls": [{"function": {"name": "f", "arguments": '{"a":1}'}}]}],
            None,
        ),
        (
            arguments_rewritten,
            [SYSTEM, USER, {**CALLING, "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}],
            None,
        ),
        (tools_rewritten, [SYSTEM, USER], [{"type": "function", "function": {"name": "f", "strict": True}}]),
    ],
)
def test_other_ids(step: Step, messages: Any, tools: Any) -> None:
    # Each step is needed for something: without it the ids are others.
    case: dict[str, Any] = {"messages": messages, "tools": tools}
    assert by_the_template(case) != by_mistral_common(case)
    assert compared(messages, tools) == step.__name__


def test_same_role_twice() -> None:
    # mistral-common joins what one role says in a row; the template closes each answer, and refuses two of a
    # user's or two plain answers.
    case: dict[str, Any] = {"messages": [SYSTEM, USER, ANSWER, CALLING, RESULT], "tools": None}
    joined: dict[str, Any] = {
        "messages": [SYSTEM, USER, {**ANSWER, **CALLING, "content": ANSWER["content"]}, RESULT]
    }
    assert by_the_template(case) != by_mistral_common(case)
    assert by_the_template({**joined, "tools": None}) == by_mistral_common(case)
    users: dict[str, Any] = {"messages": [SYSTEM, USER, USER], "tools": None}
    assert by_mistral_common(users) is not None
    assert by_the_template(users) is None


def test_tools_stand_before_the_first_user_message() -> None:
    # In the template before the first message, whoever's it is.
    case: dict[str, Any] = {"messages": [SYSTEM, CALLING, RESULT, USER], "tools": [TOOL]}
    ours, theirs = by_the_template(case), by_mistral_common(case)
    assert ours is not None
    assert theirs is not None
    assert controls(ours)[3:5] == ["[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"]
    assert controls(theirs)[-4:-2] == ["[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"]
    assert sorted(ours) == sorted(theirs)


def test_shared_conversations() -> None:
    seen = Counter(
        compared(case["messages"], case.get("tools")) for case in conversations("ministral-3").values()
    )
    assert seen["same"] >= 5
    assert seen.total() - seen["refused"] >= 20


def test_generated_conversations() -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=GENERATED,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(well_formed("ministral-3"))
    def examine(conversation: Conversation) -> None:
        # Most names that the others get are refused by mistral-common, and so are most tools.
        messages = copy.deepcopy(conversation.messages)
        for message in messages:
            for call in message.get("tool_calls") or ():
                call["function"]["name"] = "get_weather"
        seen[compared(messages, [TOOL] if conversation.tools else None)] += 1

    examine()
    assert seen.total() - seen["refused"] >= 0.1 * GENERATED


def test_images_are_out_of_reach() -> None:
    # mistral-common writes [IMG] once for each patch of an image, and needs OpenCV to know how many; the
    # template writes it once for the processor to repeat.
    picture = "data:image/png;base64," + base64.b64encode(b"no picture").decode()
    parts = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": "What is it?"}]
    case: dict[str, Any] = {"messages": [SYSTEM, {"role": "user", "content": parts}], "tools": None}
    assert by_mistral_common(case) is None
    ours = by_the_template(case)
    assert ours is not None
    assert controls(ours).count("[IMG]") == 1
