# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Formatters in SGLang's shape: against a copy of its class, and against itself where it is installed."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import chatformats
from chatformats.integrations.sglang import PythonChatTemplate, ReasoningToggle, python_chat_template

from .. import oracle
from ..cases import ASSISTANT, USER, conversations

SYSTEM = {"role": "system", "content": "Be brief."}


@dataclasses.dataclass(frozen=True)
class StandIn:
    """The fields of SGLang's class, in its order."""

    name: str
    render_segments: Callable[..., list[str]]
    content_format: str
    reasoning_config: Any
    may_reorder_tool_results: bool
    supports_inline_system: bool
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None


def has_shape(template: PythonChatTemplate, cls: Any) -> None:
    fields = {field.name for field in dataclasses.fields(cls)}
    assert fields <= {field.name for field in dataclasses.fields(template)}
    rebuilt = cls(**{name: getattr(template, name) for name in fields})
    assert all(getattr(rebuilt, name) == getattr(template, name) for name in fields)
    for name, member in inspect.getmembers(cls, lambda member: isinstance(member, property)):
        assert getattr(template, name) == member.fget(rebuilt), name


@pytest.mark.parametrize("name", chatformats.names())
def test_has_the_fields(name: str) -> None:
    has_shape(python_chat_template(name), StandIn)


@pytest.mark.parametrize("name", chatformats.names())
def test_pieces_are_the_prompt(name: str) -> None:
    render_segments = python_chat_template(name).render_segments
    tokens = set(chatformats.get(name).control_tokens) | {"<b>"}
    for case in conversations(name).values():
        keywords = {"pad_token": "<pad>", "documents": None, "bos_token": "<b>", "eos_token": "", **case}
        # Which SGLang keeps to itself, as transformers does.
        keywords.pop("continue_final_message", None)
        try:
            prompt = oracle.render(name, **keywords)
        except Exception:  # noqa: BLE001  # a template may raise anything
            with pytest.raises(chatformats.ChatFormatError):
                render_segments(**keywords)
            continue
        pieces = render_segments(**keywords)
        assert "".join(pieces) == prompt
        assert "" not in pieces
        rendered = chatformats.get(name).render_segments(
            **{key: keywords[key] for key in keywords if key in (*case, *chatformats.get(name).variables)}
        )
        controls = [segment.text for segment in rendered.segments if segment.origin == "control"]
        assert len(pieces) <= 2 * len(controls) + 1
        assert [piece for piece in pieces if piece in tokens][: len(controls)].count("<b>") <= 1
        remaining = iter(pieces)
        assert all(control in remaining for control in controls)


@pytest.mark.parametrize("name", ["ministral-3", "joyai-llm-flash"])
def test_a_token_that_is_not_given_is_not_printed(name: str) -> None:
    messages = [SYSTEM, USER, ASSISTANT]
    prompt = oracle.template(name).render(messages=messages, tools=None)
    assert "".join(python_chat_template(name).render_segments(messages)) == prompt
    assert "<s>" not in prompt


@pytest.mark.parametrize("name", chatformats.names())
def test_says_whether_a_later_system_message_is_printed(name: str) -> None:
    template = python_chat_template(name)
    try:
        prompt = "".join(template.render_segments([SYSTEM, USER, {**SYSTEM, "content": "Later."}, USER]))
    except chatformats.ChatFormatError:
        prompt = ""
    assert template.supports_inline_system == ("Later." in prompt)


@pytest.mark.parametrize("name", chatformats.names())
def test_with_sglang(name: str) -> None:
    sglang = pytest.importorskip(
        "sglang.srt.parser.python_chat_template", reason="sglang is not installed: too large for these tests"
    )
    from sglang.srt.parser import jinja_template_utils, template_detection

    from .test_transformers import answer, build

    template = python_chat_template(name)
    has_shape(template, sglang.PythonChatTemplate)
    has_shape_of_toggle(template.reasoning_config, template_detection.ReasoningToggleConfig)
    source, tokenizer = oracle.source(name), build(name)
    forced, reasoning = template_detection.detect_reasoning_pattern(source)
    assert template.force_reasoning == forced
    assert dataclasses.astuple(template.reasoning_config or ReasoningToggle()) == (
        *dataclasses.astuple(reasoning or template_detection.ReasoningToggleConfig()),
        forced,
    )
    assert template.content_format == jinja_template_utils.detect_jinja_template_content_format(source)
    assert template.may_reorder_tool_results == jinja_template_utils.jinja_template_may_reorder_tool_results(
        source
    )
    assert template.supports_inline_system == template_detection.detect_inline_system_support(source)
    detected = template_detection.detect_reasoning_parser(source, tokenizer, reasoning, forced)
    assert template.reasoning_parser == detected
    if name in ("hebatron", "joyai-llm-flash"):
        detected = template_detection.detect_tool_call_parser(source, tokenizer, reasoning, forced)
        assert template.tool_call_parser == detected

    plain = build(name)
    sglang.install_python_chat_template(tokenizer, template)
    for case in ([SYSTEM, USER, ASSISTANT, USER], [[USER], [USER, ASSISTANT]]):
        for keywords in ({"tokenize": False, "enable_thinking": False}, {"add_generation_prompt": True}):
            assert answer(tokenizer, case, **keywords) == answer(plain, case, **keywords)


def has_shape_of_toggle(toggle: ReasoningToggle | None, cls: Any) -> None:
    toggle = toggle or ReasoningToggle()
    fields = {field.name for field in dataclasses.fields(cls)}
    rebuilt = cls(**{name: getattr(toggle, name) for name in fields})
    assert rebuilt.always_on == toggle.always_on
