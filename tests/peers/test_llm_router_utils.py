# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""SGLang's parsers, as llm-router-utils republishes them, on the same completions.

Its reasoning parser reads a completion first, and its tool-call parser what that leaves. Text is compared
without the white space at its ends. It has no parser of Nemotron's ``<TOOLCALL>``: there, reasoning only.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..parsers.reading import calls, read
from .completions import CASES, TOOLS, Case

SRT = "llm_router_utils.sglang.srt"
REASON = "llm-router-utils is not installed (extra: sglang-parsers)"
parsers = pytest.importorskip(f"{SRT}.function_call.function_call_parser", reason=REASON)
protocol = pytest.importorskip(f"{SRT}.entrypoints.openai.protocol", reason=REASON)
reasoning = pytest.importorskip(f"{SRT}.parser.reasoning_parser", reason=REASON)

PEERS = {
    "hebatron": ("qwen3", "qwen3_coder"),
    "glm4-tools": ("glm45", "glm45"),
    "ministral-3": ("mistral", "mistral"),
    "nemotron-nano-v2": ("nemotron_3", None),
}
PEER_TOOLS = [protocol.Tool(**definition) for definition in TOOLS]
#: Where the peer differs, whole ("w") or in single characters ("s"), and why.
DIFFERENT: dict[tuple[str, str], tuple[str, str]] = {
    ("hebatron", "an end of a call in a value"): ("w", "whole, it cuts the value at the first </tool_call>"),
    ("hebatron", "text after a call"): ("w", "whole, it drops text after a call"),
    ("hebatron", "an end of a value in it"): ("ws", "it cuts the value at the first </parameter>"),
    ("hebatron", "an end of a function in a value"): ("ws", "it cuts the value at the first </function>"),
    ("hebatron", "a quoted tag in reasoning"): ("ws", "it takes the first </think> for the end"),
    ("glm4-tools", "Python's literals"): ("s", "in characters, it passes True through as JSON"),
    ("glm4-tools", "null where a string may stand"): ("ws", "it reads null as a string"),
    ("glm4-tools", "an end of a call in a value"): ("ws", "it ends the call at the first </tool_call>"),
    ("glm4-tools", "text after a call"): ("w", "whole, it drops text after a call"),
    ("glm4-tools", "compact"): ("ws", "its parser of GLM-4.5 wants the line breaks"),
    ("glm4-tools", "an end of a value in it"): ("ws", "it cuts the value at the first </arg_value>"),
    ("nemotron-nano-v2", "a quoted tag in reasoning"): ("ws", "it takes the first </think> for the end"),
}
Read = tuple[str, str, list[tuple[str | None, Any]]]


def arguments(text: str) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return text


def whole(name: str, case: Case) -> Read:
    thinker, caller = PEERS[name]
    reasoner = reasoning.ReasoningParser(thinker, force_reasoning=case.thinking)
    thought, text = reasoner.parse_non_stream(case.completion)
    if caller is None:
        return (text or "").strip(), (thought or "").strip(), []
    content, found = parsers.FunctionCallParser(PEER_TOOLS, caller).parse_non_stream(text or "")
    return (
        content.strip(),
        (thought or "").strip(),
        [(call.name, arguments(call.parameters)) for call in found],
    )


def in_characters(name: str, case: Case) -> Read:
    thinker, caller = PEERS[name]
    reasoner = reasoning.ReasoningParser(thinker, force_reasoning=case.thinking)
    parser = parsers.FunctionCallParser(PEER_TOOLS, caller) if caller else None
    thoughts = content = ""
    found: dict[int, list[Any]] = {}
    for character in [*case.completion, ""]:
        thought, text = reasoner.parse_stream_chunk(character) if character else reasoner.parse_stream_end()
        thoughts += thought or ""
        if parser is None:
            content += text or ""
            continue
        results = [parser.parse_stream_chunk(text)] if text else []
        if not character:
            results.append(parser.parse_stream_end())
        for text, increments in results:
            content += text or ""
            for increment in increments:
                call = found.setdefault(increment.tool_index, [None, ""])
                call[0] = increment.name or call[0]
                call[1] += increment.parameters or ""
    return content.strip(), thoughts.strip(), [(name, arguments(text)) for name, text in found.values()]


@pytest.mark.parametrize(("name", "title"), [(name, title) for name in PEERS for title in CASES[name]])
def test_the_same_or_listed(name: str, title: str) -> None:
    case = CASES[name][title]
    prompt = "<think>\n" if case.thinking else "<think></think>"
    message = read(name, case.completion, prompt if name != "ministral-3" else None, TOOLS)
    assert message.content == case.content
    assert (message.reasoning_content or "") == case.reasoning
    assert calls(message) == list(case.calls)
    ours: Read = (case.content, case.reasoning, list(case.calls))
    different = ""
    for letter, peer in (("w", whole), ("s", in_characters)):
        if peer(name, case) != ours:
            different += letter
    assert different == DIFFERENT.get((name, title), ("", ""))[0]


def test_no_case_is_listed_that_is_not_there() -> None:
    assert all(title in CASES[name] for name, title in DIFFERENT)
