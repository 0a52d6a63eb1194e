# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""HebaTron's and JoyAI's grammar: ``<function=…>`` calls in ``<tool_call>``."""

from __future__ import annotations

from typing import Any

import pytest

from .reading import calls, read, statuses, tool

OPEN = "<|im_start|>assistant\n<think>\n"
CLOSED = "<|im_start|>assistant\n<think></think>"
NAMES = ["hebatron", "joyai-llm-flash"]


def call(name: str, /, **arguments: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "",
        "\n",
        "  two  spaces  ",
        "\n    indented\n\n",
        "</parameter>",
        "a </parameter> b",
        "</parameter> </parameter>",
        "</parameter>\n</tool_call> is not how it ends",
        "</function>",
        "</function>\n</tool_call> is not how it ends",
        "</tool_call>",
        "</tool_call><tool_call>\n<function=f>\n</function>",
        "</tool_call>\n<|im_end|>\n",
        "</parameter>\n</function>\n<tool_call> is how it ends",
        "<parameter=a>",
        "<function=f>\n<parameter=a>\nopened, never closed",
        "<tool_call>\n<function=f>\n</function>\n</tool_call>",
        "<tool_call>",
        "<think></think>",
        "<|im_end|> and <|end▁of▁sentence|> inside",
        '{"quotes": "\\n"} \\ " \u2028 \x00',
        "מה ☀️ 東京",
    ],
)
def test_a_value_is_what_stands_between_its_line_breaks(name: str, value: str) -> None:
    message = read(name, call("f", a=value, b="2") + call("g", only=value))
    assert calls(message) == [("f", {"a": value, "b": "2"}), ("g", {"only": value})]
    assert message.content == ""
    assert message.problems == []


@pytest.mark.parametrize("value", ["\r\n", "x\r\n", "\t\n\n"])
def test_one_line_break_is_cut_at_each_end_and_no_more(value: str) -> None:
    assert calls(read("hebatron", call("f", a=value))) == [("f", {"a": value})]


def test_tags_without_line_breaks_between_them() -> None:
    completion = (
        "<tool_call><function=f><parameter=a>x</parameter><parameter=b>\n</parameter></function></tool_call>"
    )
    assert calls(read("hebatron", completion)) == [("f", {"a": "x", "b": ""})]


@pytest.mark.parametrize("name", NAMES)
def test_text_before_between_and_after_calls(name: str) -> None:
    message = read(name, f"before\n{call('f')}\n{call('g')}after")
    assert calls(message) == [("f", {}), ("g", {})]
    assert message.content == ("before\n\nafter" if name == "hebatron" else "beforeafter")


def test_hebatron_trims_content_as_a_whole() -> None:
    message = read("hebatron", f"\n\n one \n{call('f')}\n two\n\n", CLOSED)
    assert message.content == "one \n\n two"


def test_joyai_keeps_content_but_for_the_line_break_before_a_call() -> None:
    message = read("joyai-llm-flash", f"\n one \n\n{call('f')}\n{call('g')}\n<|end▁of▁sentence|>")
    assert message.content == "\n one \n"
    assert message.complete
    assert read("joyai-llm-flash", " x\n").content == " x\n"


class TestReasoning:
    def test_open_in_the_prompt(self) -> None:
        message = read("hebatron", "why\n</think>\n\nbecause<|im_end|>", OPEN)
        assert (message.reasoning_content, message.reasoning_complete) == ("why", True)
        assert (message.content, message.complete) == ("because", True)

    def test_never_closed(self) -> None:
        message = read("hebatron", "why\n", OPEN)
        assert (message.reasoning_content, message.reasoning_complete) == ("why\n", False)
        assert message.content == ""

    def test_closed_in_the_prompt(self) -> None:
        message = read("hebatron", "The tag </think> ends it.", CLOSED)
        assert (message.reasoning_content, message.reasoning_complete) == (None, None)
        assert message.content == "The tag </think> ends it."

    @pytest.mark.parametrize("prompt", [None, CLOSED, OPEN, "<|im_start|>assistant\n"])
    def test_opened_by_the_completion(self, prompt: str | None) -> None:
        message = read("hebatron", "<think>\nwhy\n</think>\nbecause", prompt)
        assert (message.reasoning_content, message.content) == ("why", "because")

    def test_a_line_break_that_the_prompt_does_not_hold(self) -> None:
        assert read("hebatron", "\nwhy</think>", "<think>").reasoning_content == "why"
        assert read("hebatron", "\nwhy</think>", "<think>\n").reasoning_content == "\nwhy"

    def test_empty(self) -> None:
        message = read("hebatron", "\n</think>\n\n" + call("f"), OPEN)
        assert (message.reasoning_content, message.reasoning_complete) == ("", True)
        assert calls(message) == [("f", {})]

    def test_in_a_prompt_that_ends_in_text(self) -> None:
        assert read("hebatron", " go on</think>x", OPEN + "so far").reasoning_content == " go on"
        assert read("hebatron", " go on", CLOSED + "so far").content == "go on"

    def test_a_users_tag_opens_nothing(self) -> None:
        prompt = "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n"
        assert read("hebatron", "A tag.", prompt).content == "A tag."

    def test_closed_though_nothing_opened_it(self) -> None:
        message = read("hebatron", "why\n</think>\nbecause")
        assert message.content == "why\n</think>\nbecause"
        assert [(p.position, "prompt" in p.problem) for p in message.problems] == [(4, True)]
        assert read("hebatron", "</think>\nbecause").content == "because"

    @pytest.mark.parametrize("quote", "`\"'")
    def test_a_quoted_tag_ends_nothing(self, quote: str) -> None:
        message = read("hebatron", f"I end with {quote}</think>{quote}.\n</think>\nDone", OPEN)
        assert message.reasoning_content == f"I end with {quote}</think>{quote}."
        assert message.content == "Done"
        assert read("hebatron", f"say {quote}</think>Done", OPEN).content == "Done"

    def test_a_quoted_call_is_text(self) -> None:
        text = "Write `<tool_call>` first."
        assert read("hebatron", text, CLOSED).content == text

    def test_a_call_in_reasoning_that_was_never_closed(self) -> None:
        message = read("hebatron", "I look.\n" + call("f", a="1"), OPEN)
        assert (message.reasoning_content, message.reasoning_complete) == ("I look.", False)
        assert calls(message) == [("f", {"a": "1"})]

    def test_reasoning_goes_on_after_a_call(self) -> None:
        message = read("hebatron", f"I look.\n{call('f')}\nAnd then?\n</think>\nSo.", OPEN)
        assert (message.reasoning_content, message.content) == ("I look.\nAnd then?", "So.")

    def test_an_opener_in_reasoning_that_no_call_follows(self) -> None:
        text = "First <tool_call> and then <function=f> and <tool_call>\n<function=f>, so"
        message = read("hebatron", text + "\n</think>\n" + call("f"), OPEN)
        assert message.reasoning_content == text
        assert calls(message) == [("f", {})]

    def test_joyai(self) -> None:
        prompt = "<|User|>Hi<|Assistant|>"
        message = read("joyai-llm-flash", "why<|end_of_thought|>\nbecause", prompt)
        assert (message.reasoning_content, message.reasoning_complete) == ("why", True)
        assert message.content == "\nbecause"
        message = read("joyai-llm-flash", "because", prompt + "<|end_of_thought|>")
        assert (message.reasoning_content, message.content) == (None, "because")
        assert read("joyai-llm-flash", "<|end_of_thought|>because").content == "because"


SCHEMAS: dict[str, Any] = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "array": {"type": "array"},
    "object": {"type": "object"},
    "string": {"type": "string"},
    "nullable_string": {"type": ["string", "null"]},
    "nullable_integer": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "string_or_integer": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    "referred": {"$ref": "#/$defs/Size"},
    "values": {"enum": [1, None]},
    "constant": {"const": True},
    "says_nothing": {"description": "?"},
    "no_schema": 5,
}
TOOL = tool("f", **SCHEMAS)
TOOL["function"]["parameters"]["$defs"] = {"Size": {"type": "object"}}


@pytest.mark.parametrize(
    ("parameter", "text", "value"),
    [
        ("integer", "42", 42),
        ("integer", "1e2", 100.0),
        ("integer", "4.5", "4.5"),
        ("integer", "true", "true"),
        ("integer", "9" * 5000, "9" * 5000),
        ("number", "4.5", 4.5),
        ("number", "1e20", 1e20),
        ("number", "NaN", "NaN"),
        ("boolean", "true", True),
        ("boolean", "True", True),
        ("boolean", "False", False),
        ("boolean", "yes", "yes"),
        ("boolean", "1", "1"),
        ("null", "None", None),
        ("null", "null", None),
        ("array", "[1, 2]", [1, 2]),
        ("array", "[" * 100_000, "[" * 100_000),
        ("array", "['a']", "['a']"),
        ("object", '{"a": null}', {"a": None}),
        ("object", "[1]", "[1]"),
        ("string", "42", "42"),
        ("string", "true", "true"),
        ("string", "[1]", "[1]"),
        ("string", "null", "null"),
        ("string", '"quoted"', '"quoted"'),
        ("nullable_string", "null", None),
        ("nullable_string", "None", None),
        ("nullable_string", "nullify", "nullify"),
        ("nullable_string", "42", "42"),
        ("nullable_string", "", ""),
        ("nullable_integer", "42", 42),
        ("nullable_integer", "None", None),
        ("string_or_integer", "42", "42"),
        ("referred", '{"w": 1}', {"w": 1}),
        ("values", "1", 1),
        ("values", "None", None),
        ("constant", "true", True),
        ("says_nothing", "42", "42"),
        ("no_schema", "42", "42"),
        ("undeclared", "42", "42"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_typed_by_the_schema(name: str, parameter: str, text: str, value: object) -> None:
    message = read(name, call("f", **{parameter: text}), tools=[TOOL])
    (parsed,) = message.tool_calls
    assert parsed.arguments is not None
    assert parsed.arguments[parameter] == value
    assert type(parsed.arguments[parameter]) is type(value)
    untyped = read(name, call("f", **{parameter: text}))
    assert untyped.tool_calls[0].arguments == {parameter: text}


@pytest.mark.parametrize("tools", [[], [5, None, {"function": 3}, {"name": 1}, {"function": {"name": "g"}}]])
def test_unknown_tool(tools: Any) -> None:
    message = read("hebatron", call("f", a="1"), tools=tools)
    assert statuses(message) == ["unknown_tool"]
    assert message.tool_calls[0].arguments == {"a": "1"}
    assert statuses(read("hebatron", call("f", a="1"), tools=[{"name": "f"}])) == ["ok"]


class TestBroken:
    """What the grammar does not have: every attempted call is kept."""

    @pytest.mark.parametrize("end", range(len("<tool_call>"), len(call("f", a="1"))))
    def test_cut_anywhere(self, end: int) -> None:
        message = read("hebatron", "text\n" + call("f", a="1")[:end])
        assert statuses(message) == ["unclosed"]
        assert message.tool_calls[0].arguments is None
        assert message.content == "text"

    @pytest.mark.parametrize("start", range(1, len("<tool_call>")))
    def test_a_part_of_a_marker_at_the_end_is_text(self, start: int) -> None:
        text = "text <tool_call>"[: 5 + start]
        assert read("hebatron", text).content == text

    def test_the_turn_ends_in_a_call(self) -> None:
        message = read("hebatron", call("f", a="1")[:-30] + "<|im_end|>\n")
        assert statuses(message) == ["unclosed"]
        assert message.complete

    @pytest.mark.parametrize(
        ("completion", "expected"),
        [
            ("<tool_call></tool_call>", ["malformed"]),
            ("<tool_call>\n<function=>\n</function>\n</tool_call>", ["missing_name"]),
            ('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', ["malformed"]),
            ("<tool_call>\n<function=f\n</function>\n</tool_call>", ["malformed"]),
            ("<tool_call>\n<funktion=f>\n</funktion>\n</tool_call>", ["malformed"]),
            ("<tool_call>\n<function=f>\nwhat?\n</function>\n</tool_call>", ["malformed"]),
            ("<tool_call><tool_call>\n<function=f>\n</function>\n</tool_call>", ["unclosed", "ok"]),
            ("<tool_call>\nwhat?\n" + call("f"), ["malformed", "ok"]),
            ("<tool_call>\n<function=f>\n</function>\n" + call("f"), ["unclosed", "ok"]),
            ("<tool_call>\n<function=f>\n</tool_call>", ["ok"]),
            ("<tool_call>\n<function=f>\n</function>\n<function=g>\n</function>\n</tool_call>", ["ok", "ok"]),
        ],
    )
    def test_statuses(self, completion: str, expected: list[str]) -> None:
        message = read("hebatron", completion)
        assert statuses(message) == expected
        assert message.content == ""
        assert expected == ["ok"] * len(expected) or message.problems

    def test_a_function_without_a_tool_call(self) -> None:
        bare = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>"
        for completion in (bare, f"I look.\n{bare}\n</tool_call>"):
            message = read("hebatron", completion)
            assert calls(message) == [("f", {"a": "1"})]
            assert [p.problem for p in message.problems] == ["a function outside of a tool call"]
        for text in ("use <function=f>\n</function>", "<function=f> is a tag", "<function=f>\nx"):
            assert read("hebatron", text).content == text

    @pytest.mark.parametrize(
        "end",
        [
            "\n</function>\n</tool_call>",
            "\n</function>\n</tool_call>\n<|im_end|>",
            "\n</parameter>\n</tool_call>\n",
            "\n</tool_call>",
            "\n</function>\n</tool_call>\n" + call("f", a="1"),
            "\n</parameter>\n</tool_call>\n" + call("f", a="1"),
        ],
    )
    def test_a_missing_end_before_the_end(self, end: str) -> None:
        message = read("hebatron", "<tool_call>\n<function=f>\n<parameter=a>\n1" + end)
        assert set(map(str, calls(message))) == {"('f', {'a': '1'})"}
        assert len(message.tool_calls) == 1 + ("<function=" in end)
        assert message.problems

    def test_a_missing_end_before_a_parameter_that_the_tool_has(self) -> None:
        completion = call("f", a="1\n<parameter=b>\n2", c="3")
        tools = [tool("f", a={"type": "string"}, b={"type": "integer"}, c={"type": "string"})]
        message = read("hebatron", completion, tools=tools)
        assert calls(message) == [("f", {"a": "1", "b": 2, "c": "3"})]
        assert message.problems
        # Without the tools, nothing says that it is no text.
        assert calls(read("hebatron", completion)) == [("f", {"a": "1\n<parameter=b>\n2", "c": "3"})]
        for value in (
            "1 <parameter=b>\n2",
            "1\n<parameter=b> is one",
            "1\n<parameter=d>\n2",
            "<parameter=b>\n2",
        ):
            assert calls(read("hebatron", call("f", a=value), tools=tools)) == [("f", {"a": value})]

    def test_a_parameter_given_twice(self) -> None:
        completion = call("f", a="1").replace("</function>", "<parameter=a>\n2\n</parameter>\n</function>")
        message = read("hebatron", completion)
        assert calls(message) == [("f", {"a": "2"})]
        assert [p.problem for p in message.problems] == ["an argument that the call has already"]

    def test_what_follows_the_end_of_the_turn(self) -> None:
        message = read("hebatron", "Hi<|im_end|>\n<|im_start|>user\n" + call("f"))
        assert (message.content, message.complete, message.tool_calls) == ("Hi", True, [])
        assert message.pieces[-1][0] == "rest"
        assert [p.position for p in message.problems] == [13]
