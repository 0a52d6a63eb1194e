# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Ministral's grammar: ``[TOOL_CALLS]name[ARGS]{…}``."""

from __future__ import annotations

import json

import pytest

from .reading import calls, read, statuses, streamed, tool


def call(name: str, **arguments: object) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments, ensure_ascii=False)}"


@pytest.mark.parametrize(
    "value",
    [
        "[TOOL_CALLS]g[ARGS]{}",
        "</s>",
        "</s> and more",
        '"}',
        "\\",
        '\\"}[TOOL_CALLS]',
        "{[",
        "]}",
        "\n\t",
        "[THINK]",
        "é\u2028\ud800",
    ],
)
def test_json_decides_where_arguments_end(value: str) -> None:
    message = read("ministral-3", call("f", a=value, b=[{}, None]) + call("g", **{value: 1}) + "</s>")
    assert calls(message) == [("f", {"a": value, "b": [{}, None]}), ("g", {value: 1})]
    assert (message.content, message.complete, message.problems) == ("", True, [])


def test_text_before_between_and_after_calls() -> None:
    message = read("ministral-3", f" before \n{call('f')} {call('g')}\n{call('h')} after</s>")
    assert message.content == " before \n after"
    assert [name for name, _ in calls(message)] == ["f", "g", "h"]


def test_white_space_in_and_before_arguments() -> None:
    message = read("ministral-3", '[TOOL_CALLS]f[ARGS]\n {\n "a" : 1 }\n')
    assert (calls(message), message.content) == ([("f", {"a": 1})], "")


def test_arguments_come_as_the_model_writes_them() -> None:
    _, events = streamed("ministral-3", call("f", a="xy"))
    assert [type(event).__name__ for event in events[:2]] == ["ToolCallBegin", "ArgumentsDelta"]
    assert len(events) == 2 + len('{"a": "xy"}')


def test_reasoning_that_the_completion_opens() -> None:
    message = read("ministral-3", f"[THINK]{call('f')}, or not?[/THINK]\nI {call('g')}")
    assert message.reasoning_content == f"{call('f')}, or not?"
    assert (message.content, calls(message)) == ("\nI ", [("g", {})])
    assert read("ministral-3", "A [THINK] tag[/THINK]").content == "A [THINK] tag[/THINK]"


def test_a_call_id_is_kept_in_the_raw_text() -> None:
    message = read("ministral-3", "[TOOL_CALLS]f[CALL_ID]123[ARGS]{}")
    assert calls(message) == [("f", {})]
    assert message.tool_calls[0].raw == "[TOOL_CALLS]f[CALL_ID]123[ARGS]{}"


def test_unknown_tool() -> None:
    assert statuses(read("ministral-3", call("f") + call("g"), tools=[tool("g")])) == ["unknown_tool", "ok"]


@pytest.mark.parametrize("end", range(len("[TOOL_CALLS]"), len(call("f", a="1"))))
def test_cut_anywhere(end: int) -> None:
    message = read("ministral-3", "text" + call("f", a="1")[:end])
    assert (statuses(message), message.content) == (["unclosed"], "text")
    assert message.tool_calls[0].arguments is None


def test_the_turn_ends_in_a_string() -> None:
    for end in ("</s>", "</s>\n"):
        message = read("ministral-3", '[TOOL_CALLS]f[ARGS]{"a": "' + end)
        assert (statuses(message), message.complete) == (["unclosed"], True)
        assert message.tool_calls[0].raw == '[TOOL_CALLS]f[ARGS]{"a": "'


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("[TOOL_CALLS][ARGS]{}", ["missing_name"]),
        ('[TOOL_CALLS] [{"name": "f", "arguments": {}}]', ["malformed"]),
        ("[TOOL_CALLS] is a marker", ["malformed"]),
        ("[TOOL_CALLS]f</s>", ["malformed"]),
        ("[TOOL_CALLS]f[CALL_ID]1</s>", ["malformed"]),
        ("[TOOL_CALLS]f[ARGS]</s>", ["invalid_json"]),
        ("[TOOL_CALLS]f[ARGS]not JSON", ["invalid_json"]),
        ("[TOOL_CALLS]f[ARGS][1]", ["malformed"]),
        ('[TOOL_CALLS]f[ARGS]"{}"', ["malformed"]),
        ("[TOOL_CALLS]f[ARGS]{a: 1}", ["invalid_json"]),
        ('[TOOL_CALLS]f[ARGS]{"a": NaN}', ["invalid_json"]),
        ('[TOOL_CALLS]f[ARGS]{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", ["invalid_json"]),
        ('[TOOL_CALLS]f[ARGS]{"a": 1' + call("g"), ["invalid_json", "ok"]),
        ("[TOOL_CALLS]f" + call("g"), ["malformed", "ok"]),
        ("[TOOL_CALLS]f[ARGS]" + call("g"), ["invalid_json", "ok"]),
        ("[TOOL_CALLS]f[ARGS]5" + call("g"), ["malformed", "ok"]),
    ],
)
def test_statuses(completion: str, expected: list[str]) -> None:
    message = read("ministral-3", completion)
    assert (statuses(message), message.content) == (expected, "")
    assert message.problems
