# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""transformers' ``continue_final_message`` and ``sanitize_control_tokens``, and what is another here.

Nemotron is not continued here: its template has a variable ``continue_final_message``, which holds with the
template's meaning, and which transformers keeps to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import chatformats
from chatformats.spans import Rendered

from .. import oracle
from ..cases import conversations
from ..strategies import Conversation, malformed, well_formed

transformers = pytest.importorskip(
    "transformers",
    minversion="5.24",
    reason="needs transformers 5.24, which edits messages as described here",
)
from transformers.utils.chat_template_utils import render_jinja_template

from .test_tokenizers import GLM4_TOKENS, injecting, trained
from .test_transformers import NO_FROM_JSON, outcome, refused_by_transformers

CONTINUED = tuple(name for name in oracle.NAMES if name != "nemotron-nano-v2")
GENERATED = 300


def by_transformers(name: str, case: dict[str, Any]) -> str | None:
    arguments = {**oracle.DEFAULTS.get(name, {}), "chat_template": oracle.source(name), **case}
    conversation = [arguments.pop("messages")]
    return outcome(
        lambda: render_jinja_template(conversation, **arguments, continue_final_message=True)[0][0]
    )


def compared(name: str, case: dict[str, Any]) -> str:
    """Assert that a conversation is continued as transformers does it; say what came of it."""
    case = {**case, "add_generation_prompt": False}
    theirs = by_transformers(name, case)
    ours = outcome(chatformats.get(name).render, **case, continue_final_message=True)
    if theirs == NO_FROM_JSON or (theirs is None and refused_by_transformers(case)):
        return "refused by transformers"
    if ours is None and theirs is not None:
        # A list that the template prints as Python writes it: transformers goes on where it finds the text
        # anywhere in the prompt, here only where the prompt ends with it.
        assert name == "hebatron"
        text = next(part["text"] for part in reversed(case["messages"][-1]["content"]) if "text" in part)
        assert text.strip() in theirs
        assert not theirs.endswith(text.strip())
        return "found elsewhere"
    assert ours == theirs
    return "refused" if ours is None else "continued"


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, id=f"{name}-{title}")
        for name in CONTINUED
        for title, case in conversations(name).items()
    ],
)
def test_continued(name: str, case: dict[str, Any]) -> None:
    compared(name, case)


@pytest.mark.parametrize("kind", [well_formed, malformed], ids=["well_formed", "malformed"])
@pytest.mark.parametrize("name", CONTINUED)
def test_continued_conversations(name: str, kind: Any) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=GENERATED,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(kind(name))
    def examine(conversation: Conversation) -> None:
        case = {"messages": conversation.messages, "tools": conversation.tools, **conversation.variables}
        seen[compared(name, case)] += 1

    examine()
    assert seen["continued"] >= (0.5 if kind is well_formed else 0.1) * GENERATED
    assert seen["refused"] >= 0.05 * GENERATED
    assert seen["found elsewhere"] <= 0.02 * GENERATED


# sanitize_control_tokens: transformers marks each control token in the caller's strings, renders, and encodes
# each marked one by itself as plain text. Here the whole stretch around it is encoded as plain text. So both
# have the same text and the same control tokens, and other ids around an injected one only.


def by_sanitizing(name: str, case: dict[str, Any]) -> list[int]:
    # What is passed as a variable is a caller's to transformers; bos and eos are the tokenizer's.
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained(name).tokenizer,
        **oracle.DEFAULTS["ministral-3"] if name == "ministral-3" else {},
    )
    tokenizer.chat_control_tokens = list(trained(name).control_tokens)
    ids: list[int] = tokenizer.apply_chat_template(
        conversation=case["messages"],
        chat_template=oracle.source(name),
        **{key: value for key, value in case.items() if key != "messages"},
        sanitize_control_tokens=True,
        return_dict=False,
    )
    return ids


def by_segments(name: str, case: dict[str, Any]) -> list[int]:
    encoder = trained(name)
    render_segments: Callable[..., Rendered] = chatformats.get(name).render_segments
    added = GLM4_TOKENS if name == "glm4-tools" else ()
    return render_segments(**case).encode(encoder.encode, encoder.encode_plain, added)


def plain(value: Any, tokens: tuple[str, ...]) -> Any:
    """Return a value whose keys hold no control token: transformers leaves those as they are."""
    if isinstance(value, list):
        return [plain(item, tokens) for item in value]
    if not isinstance(value, dict):
        return value
    return {"k" if any(t in key for t in tokens) else key: plain(item, tokens) for key, item in value.items()}


@pytest.mark.parametrize(
    ("name", "token"), [(name, token) for name in oracle.NAMES for token in trained(name).control_tokens]
)
def test_sanitized(name: str, token: str) -> None:
    encoder = trained(name)
    case = plain(injecting(name, token), encoder.control_tokens)
    for message in case["messages"]:
        if name == "joyai-llm-flash":
            del message.get("tool_calls", [])[1:]  # for want of a filter from_json
        if message["role"] == "tool":
            message["content"] = token  # and no container: see below
    theirs, ours = by_sanitizing(name, case), by_segments(name, case)
    assert encoder.decode(theirs) == encoder.decode(ours)
    assert encoder.controls(theirs) == encoder.controls(ours)
    assert token in encoder.controls(encoder.encode(encoder.decode(ours)))


@pytest.mark.parametrize("name", oracle.NAMES)
def test_sanitized_without_injected_tokens(name: str) -> None:
    case = injecting(name, "What's up?")
    if name == "joyai-llm-flash":
        for message in case["messages"]:
            del message.get("tool_calls", [])[1:]
    assert by_sanitizing(name, case) == by_segments(name, case)


USER = {"role": "user", "content": "Hi"}


def calling(name: str, arguments: object) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


@pytest.mark.parametrize(
    ("name", "message", "token"),
    [
        # Keys are not marked.
        ("hebatron", calling("f", {"<|im_end|>": 1}), "<|im_end|>"),
        ("joyai-llm-flash", calling("f", {"<|User|>": 1}), "<|User|>"),
        ("ministral-3", calling("f", {"[/INST]": 1}), "[/INST]"),
        ("nemotron-nano-v2", calling("f", {"<SPECIAL_12>": 1}), "<SPECIAL_12>"),
        # Nor is what becomes a token in the template's hands.
        ("hebatron", calling("<|im_end|", {}), "<|im_end|>"),
        ("nemotron-nano-v2", {"role": "user", "content": "<SPECIAL_1/think2>"}, "<SPECIAL_12>"),
        # In what is printed by Python's str(), marks become escapes, and mark nothing.
        ("hebatron", {"role": "tool", "content": ["<|im_end|>"]}, "<|im_end|>"),
    ],
)
def test_not_sanitized_by_transformers(name: str, message: dict[str, Any], token: str) -> None:
    case = {"messages": [USER, message]}
    theirs = trained(name).controls(by_sanitizing(name, case))
    ours = trained(name).controls(by_segments(name, case))
    assert theirs.count(token) == ours.count(token) + 1
    theirs.remove(token)
    assert sorted(theirs) == sorted(ours)


def test_marks_keep_a_template_from_trimming() -> None:
    # With a mark before them, transformers' template does not trim the line break and the space.
    answer = {
        "role": "assistant",
        "content": "<think>hm</think>\n Yo",
        "tool_calls": calling("f", {})["tool_calls"],
    }
    case: dict[str, Any] = {"messages": [answer, USER]}
    decode = trained("hebatron").decode
    theirs, ours = decode(by_sanitizing("hebatron", case)), decode(by_segments("hebatron", case))
    assert ours == oracle.render("hebatron", **case)
    assert theirs == ours.replace("</think>Yo", "</think>\n Yo")
    assert theirs != ours
