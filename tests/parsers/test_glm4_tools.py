# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""GLM-4's grammar: a name, ``<arg_key>`` and ``<arg_value>``."""

from __future__ import annotations

from typing import Any

import pytest

from .reading import calls, read, statuses, tool


def call(name: str, /, **arguments: str) -> str:
    lines = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{lines}</tool_call>"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "plain",
        "  two  spaces\n",
        "\nleading",
        "\n\n",
        "many\nlines\n",
        "</arg_value>",
        "a </arg_value> b",
        "</tool_call>",
        "<tool_call>g\n</tool_call>",
        "<arg_key>b</arg_key>\n<arg_value>",
        "</arg_key>",
        "<think>",
        '"\\ \u2028',
    ],
)
def test_a_value_is_what_stands_between_its_tags(value: str) -> None:
    if value == "\n\n":
        # The exception: a line break at each end.
        assert calls(read("glm4-tools", call("f", a=value))) == [("f", {"a": ""})]
        return
    message = read("glm4-tools", call("f", a=value, b="2") + call("g", only=value))
    assert calls(message) == [("f", {"a": value, "b": "2"}), ("g", {"only": value})]
    assert (message.content, message.problems) == ("", [])


def test_a_line_break_is_cut_where_one_stands_at_each_end() -> None:
    assert calls(read("glm4-tools", call("f", a="\nx\n", b="\n\nx\n\n"))) == [("f", {"a": "x", "b": "\nx\n"})]


def test_compact() -> None:
    completion = (
        "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call><tool_call>g</tool_call>"
    )
    assert calls(read("glm4-tools", completion)) == [("f", {"a": "1"}), ("g", {})]
    assert calls(read("glm4-tools", "<tool_call>\nf\n</tool_call>")) == [("f", {})]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "integer"}, "42", 42),
        ({"type": "integer"}, "\n42\n", 42),
        ({"type": "string"}, "42", "42"),
        ({"type": "boolean"}, "true", True),
        ({"type": "boolean"}, "True", True),
        ({"type": "array"}, "[1]", [1]),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "\nlong enough\n", "long enough"),
        ({}, "42", "42"),
    ],
)
def test_values_are_typed_by_the_schema(schema: Any, text: str, value: object) -> None:
    assert calls(read("glm4-tools", call("f", a=text), tools=[tool("f", a=schema)])) == [("f", {"a": value})]


def test_white_space_round_calls_is_layout() -> None:
    message = read("glm4-tools", f" Let me see. \n{call('f')}\n{call('g')}\n")
    assert (message.content, calls(message)) == (" Let me see.", [("f", {}), ("g", {})])
    assert read("glm4-tools", f" \n {call('f')}").content == ""


@pytest.mark.parametrize("answer", [" plain \n", "\n", "", "`<tool_call>` is a tag", "<tool_cal", "a < b"])
def test_a_plain_answer_is_as_it_is(answer: str) -> None:
    message = read("glm4-tools", answer)
    assert (message.content, message.tool_calls, message.complete) == (answer, [], False)


def test_reasoning_that_the_completion_opens() -> None:
    message = read("glm4-tools", "\n<think>why</think>\nbecause\n" + call("f"))
    assert (message.reasoning_content, message.content) == ("why", "because")
    assert read("glm4-tools", "A <think> tag").content == "A <think> tag"
    assert read("glm4-tools", "why</think>because", "<|assistant|><think>").reasoning_content == "why"
    assert read("glm4-tools", "Hi", "[Round 0]\n问：What is <think>?\n答：").content == "Hi"


def test_prose_in_reasoning_is_no_call() -> None:
    text = "Wrap it in <tool_call> and </tool_call>."
    message = read("glm4-tools", f"<think>{text}</think>{call('f')}")
    assert (message.reasoning_content, calls(message)) == (text, [("f", {})])
    message = read("glm4-tools", f"<think>I look. {call('f')}")
    assert (message.reasoning_content, calls(message)) == ("I look. ", [("f", {})])


@pytest.mark.parametrize("end", range(len("<tool_call>"), len(call("f", a="1"))))
def test_cut_anywhere(end: int) -> None:
    message = read("glm4-tools", "text\n" + call("f", a="1")[:end])
    assert statuses(message) == ["unclosed"]
    assert message.tool_calls[0].arguments is None
    assert message.content == "text"


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<tool_call></tool_call>", ["missing_name"]),
        ("<tool_call>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", ["missing_name"]),
        ('<tool_call>{"name": "f", "arguments": {}}</tool_call>', ["malformed"]),
        ("<tool_call> f </tool_call>", ["malformed"]),
        ("<tool_call>f<arg_value>1</arg_value></tool_call>", ["malformed"]),
        ("<tool_call>f<arg_key>a</arg_key>1</tool_call>", ["malformed"]),
        ("<tool_call>f<arg_key>a<arg_key>b</arg_key></tool_call>", ["malformed"]),
        ("<tool_call>f<tool_call>g</tool_call>", ["unclosed", "ok"]),
        ("<tool_call>f<arg_key>a</arg_key>\nwhat?" + call("g"), ["malformed", "ok"]),
    ],
)
def test_statuses(completion: str, expected: list[str]) -> None:
    message = read("glm4-tools", completion)
    assert (statuses(message), message.content) == (expected, "")
    assert message.problems


@pytest.mark.parametrize("end", ["</tool_call>", "</tool_call>\n"])
def test_a_missing_end_of_a_value(end: str) -> None:
    message = read("glm4-tools", "<tool_call>f<arg_key>a</arg_key><arg_value>1" + end)
    assert set(map(str, calls(message))) == {"('f', {'a': '1'})"}
    assert message.problems
