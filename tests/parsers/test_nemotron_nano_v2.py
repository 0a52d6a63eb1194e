# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Nemotron's grammar: ``<TOOLCALL>[{"name": …, "arguments": …}]</TOOLCALL>``."""

from __future__ import annotations

import json

import pytest

from chatformats.parsing import ArgumentsDelta, ToolCallBegin

from .reading import calls, read, statuses, streamed, tool

OPEN = "<SPECIAL_11>Assistant\n<think>\n"
CLOSED = "<SPECIAL_11>Assistant\n<think></think>"


def block(*elements: object) -> str:
    return f"<TOOLCALL>{json.dumps(elements, ensure_ascii=False)}</TOOLCALL>"


def element(name: str, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    "value",
    [
        "]</TOOLCALL>",
        "<SPECIAL_12>",
        "<TOOLCALL>[",
        '"}]',
        "\\",
        '\\"}',
        "{{",
        "}}",
        "\n",
        "é\ud800",
        "</think>",
    ],
)
def test_json_decides_where_arguments_end(value: str) -> None:
    message = read("nemotron-nano-v2", block(element("f", a=value, b=[{}]), element("g", **{value: 1})))
    assert calls(message) == [("f", {"a": value, "b": [{}]}), ("g", {value: 1})]
    assert (message.content, message.problems) == ("", [])


@pytest.mark.parametrize(
    "text",
    [
        '[{"name": "f", "arguments": {"a": 1}}]',
        ' [ {"arguments": {"a": 1}, "name": "f"} ] ',
        '[{"name": "f", "id": {"x": 1}, "arguments": {"a": 1}}]',
        '[{"name": "f", "arguments": "{\\"a\\": 1}"}]',
        '[{{"name": "f", "arguments": {"a": 1}}}]',
        '[{ {"name" : "f" ,"arguments":{"a": 1} } }]',
        '{"name": "f", "arguments": {"a": 1}}',
        '[{"name": "\\u0066", "arguments": {"a": 1}}]',
    ],
)
def test_ways_to_write_a_call(text: str) -> None:
    message = read("nemotron-nano-v2", f"I look.\n<TOOLCALL>{text}</TOOLCALL>\n<SPECIAL_12>\n")
    assert calls(message) == [("f", {"a": 1})]
    assert (message.content, message.complete, message.problems) == ("I look.", True, [])


def test_no_arguments() -> None:
    assert calls(read("nemotron-nano-v2", '<TOOLCALL>[{"name": "f"}]</TOOLCALL>')) == [("f", {})]


def test_arguments_are_streamed_once_the_name_is_known() -> None:
    parser_input = '<TOOLCALL>[{"name": "f", "arguments": {"a": "x'
    _, events = streamed("nemotron-nano-v2", parser_input)
    assert events[0] == ToolCallBegin(0, "f")
    assert "".join(e.text for e in events if isinstance(e, ArgumentsDelta)) == '{"a": "x'


def test_text_before_between_and_after_calls() -> None:
    message = read("nemotron-nano-v2", f"\n one \n{block(element('f'))}\n{block(element('g'))} two\n")
    assert message.content == "one \n\n two"
    assert calls(message) == [("f", {}), ("g", {})]


def test_reasoning() -> None:
    message = read("nemotron-nano-v2", "why\n</think>\n\nbecause\n<SPECIAL_12>\n", OPEN)
    assert (message.reasoning_content, message.reasoning_complete) == ("why", True)
    assert (message.content, message.complete) == ("because", True)
    assert read("nemotron-nano-v2", "because", CLOSED).content == "because"
    # A held-back message: its content follows the tag.
    assert read("nemotron-nano-v2", " go on", OPEN + "so far").reasoning_content == " go on"
    assert read("nemotron-nano-v2", " go on", OPEN + "why\n</think>\nso far").content == "go on"


def test_calls_in_reasoning_that_was_never_closed() -> None:
    message = read("nemotron-nano-v2", f"I use <TOOLCALL>[ and so on.\n{block(element('f'))}", OPEN)
    assert (message.reasoning_content, message.reasoning_complete) == ("I use <TOOLCALL>[ and so on.", False)
    assert calls(message) == [("f", {})]


def test_unknown_tool() -> None:
    message = read("nemotron-nano-v2", block(element("f"), element("g")), tools=[tool("g")])
    assert statuses(message) == ["unknown_tool", "ok"]


@pytest.mark.parametrize("end", range(len("<TOOLCALL>"), len('<TOOLCALL>[{"name": "f", "arguments": {}}')))
def test_cut_anywhere_in_a_call(end: int) -> None:
    message = read("nemotron-nano-v2", "text\n" + block(element("f"))[:end])
    assert (statuses(message), message.content) == (["unclosed"], "text")
    assert message.tool_calls[0].arguments is None


@pytest.mark.parametrize("end", ["", "]", "]</TOOLCALL"])
def test_a_call_is_read_though_its_list_does_not_end(end: str) -> None:
    message = read("nemotron-nano-v2", '<TOOLCALL>[{"name": "f", "arguments": {}}' + end)
    assert (calls(message), message.content) == ([("f", {})], "")
    assert message.problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what?", ["malformed"]),
        ("", ["malformed"]),
        ("[5]", ["malformed"]),
        ('["f", {"name": "f"}, 5]', ["malformed", "ok", "malformed"]),
        ("[[]]", ["malformed"]),
        ('[{"arguments": {}}]', ["missing_name"]),
        ('[{"name": 5, "arguments": {}}]', ["missing_name"]),
        ('[{"name": "f", "arguments": [1]}]', ["malformed"]),
        ('[{"name": "f", "arguments": null}]', ["malformed"]),
        ('[{"name": "f", "arguments": "no"}]', ["invalid_json"]),
        ('[{"name": "f", "arguments": {a: 1}}]', ["invalid_json"]),
        ('[{"name": "f", "arguments": {"a": NaN}}]', ["invalid_json"]),
        ('[{"name": "f", "arguments": {"a": 1}', ["invalid_json"]),
        ('[{"name": "f", "arguments": {}, "name": "g"}]', ["malformed"]),
        ('[{"name": "f", "arguments": {"a": 1}, "arguments": {}}]', ["malformed"]),
        ('[{"name": "f", "arguments": {}}}]', ["ok", "malformed"]),
    ],
)
def test_statuses(text: str, expected: list[str]) -> None:
    message = read("nemotron-nano-v2", f"<TOOLCALL>{text}</TOOLCALL>")
    assert (statuses(message), message.content) == (expected, "")
    assert message.problems


def test_an_empty_list_is_no_call() -> None:
    message = read("nemotron-nano-v2", "x<TOOLCALL>[ ]</TOOLCALL>")
    assert (message.content, message.tool_calls) == ("x", [])


def test_the_turn_ends_in_a_string() -> None:
    message = read("nemotron-nano-v2", '<TOOLCALL>[{"name": "f", "arguments": {"a": "<SPECIAL_12>\n')
    assert (statuses(message), message.complete) == (["unclosed"], True)
