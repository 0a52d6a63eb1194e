# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""HebaTron: the reference, the stored prompt and the formatter are one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chatformats.formats.hebatron import HebatronFormatter

from ..cases import UNPRINTABLE, USER, accepted, both, calling, check_prompt, check_refusal, refused

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FORMATTER: Final = HebatronFormatter()

# The conversations that the template refuses, each with the place at fault.
REFUSED: Final = {
    "arguments_as_array": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_broken_json": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_empty_string": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_json_string": "messages[1].tool_calls[0].function.arguments",
    "arguments_null": "messages[1].tool_calls[0].function.arguments",
    "message_is_a_string": "messages[0].role",
    "message_is_null": "messages[1].role",
    "missing_role": "messages[0].role",
    "no_messages": "messages",
    "no_messages_with_generation_prompt": "messages",
    "null_role": "messages[0].role",
    "tool_result_after_no_mapping": "messages[2].role",
    "unknown_role_without_content": "messages[1].content",
}


@accepted(FORMATTER.name, REFUSED)
def test_prompt(case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    check_prompt(FORMATTER, case, prompt_file)


@refused(FORMATTER.name, REFUSED)
def test_refusal(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)


def prompt(*messages: object, **case: Any) -> str:
    return both(FORMATTER, *messages, **case)


def history(answer: str, **case: Any) -> str:
    """Return how an answer before the last user message is printed."""
    text = prompt(USER, {"role": "assistant", "content": answer}, USER, **case)
    return text.split("<|im_start|>assistant\n")[1].split("<|im_end|>")[0]


def last(answer: object, **keys: Any) -> str:
    """Return how an answer after the last user message is printed."""
    text = prompt(USER, {"role": "assistant", "content": answer, **keys})
    return text.split("<|im_start|>assistant\n")[1].removesuffix("<|im_end|>\n")


def test_prompt_begins_with_two_line_breaks_and_the_identity() -> None:
    assert prompt(USER).startswith("\n\n<|im_start|>system\nאני מודל שפה בשם HebaTron ")


def test_identity_stands_before_the_system_message() -> None:
    assert "למשתמש.\n\n Be brief. <|im_end|>" in prompt({"role": "system", "content": " Be brief. "}, USER)


def test_a_blank_system_message_is_none() -> None:
    assert prompt({"role": "system", "content": "\u3000\n"}, USER) == prompt(USER)


def test_missing_and_null_content_differ() -> None:
    assert prompt({"role": "user"}).endswith("<|im_start|>user\n<|im_end|>\n")
    assert prompt({"role": "user", "content": None}).endswith("<|im_start|>user\nNone<|im_end|>\n")


def test_an_answer_without_reasoning_opens_with_empty_think_tags() -> None:
    assert last("Not much.") == "<think></think>Not much."
    assert last("<think>a</think>b") == "<think>a</think>b"
    assert last("a</think>b") == "a</think>b"
    assert last("a<think>b") == "a<think>b"


def test_reasoning_content_stands_in_think_tags_unless_blank() -> None:
    assert last("b", reasoning_content="a") == "<think>\na\n</think>\nb"
    assert last("b", reasoning_content=" \n") == "<think></think>b"
    assert last("b", reasoning_content=["a"]) == "<think></think>b"


def test_history_keeps_what_follows_the_last_end_of_thought() -> None:
    assert history("<think>a</think>b</think>c") == "<think></think>c"
    assert history("<think>a</think>b", truncate_history_thinking=False) == "<think>a</think>b"


def test_history_keeps_thought_that_is_open_or_only_closed() -> None:
    assert history("a <think>b") == "a <think>b"
    assert history("a</think>b") == "a</think>b"


def test_an_answer_that_is_no_string_is_printed_by_str() -> None:
    assert last(["a", None, True, 1.0]) == "['a', None, True, 1.0]"


def test_an_answer_that_is_no_string_is_not_printed_before_tool_calls() -> None:
    assert last(["a"], tool_calls=[{"name": "f"}]) == (
        "<think></think><tool_call>\n<function=f>\n</function>\n</tool_call>\n"
    )


def test_arguments_are_json_where_they_are_containers_and_str_elsewhere() -> None:
    arguments = {"a": True, "b": None, "c": 1.0, "d": [True, None, 1.0], "e": {"é": "<"}, "f": "x"}
    assert (
        "<parameter=a>\nTrue\n</parameter>\n"
        "<parameter=b>\nNone\n</parameter>\n"
        "<parameter=c>\n1.0\n</parameter>\n"
        "<parameter=d>\n[true, null, 1.0]\n</parameter>\n"
        '<parameter=e>\n{"é": "<"}\n</parameter>\n'
        "<parameter=f>\nx\n</parameter>\n"
    ) in last("", tool_calls=[{"name": "f", "arguments": arguments}])


def test_enum_and_required_are_json_and_required_comes_last() -> None:
    parameters = {"required": "x", "properties": {"x": {"enum": "é"}}, "title": None}
    assert (
        '<name>x</name>\n<enum>"é"</enum>\n</parameter>\n<title>None</title>\n<required>"x"</required>'
    ) in prompt(USER, tools=[{"name": "f", "parameters": parameters}])


def test_a_tool_result_opens_a_user_turn_unless_it_is_the_first_message() -> None:
    result = {"role": "tool", "content": "1"}
    assert prompt(result).endswith("<|im_end|>\n<tool_response>\n1\n</tool_response>\n<|im_end|>\n")
    assert prompt(USER, result).endswith(
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<|im_end|>\n"
    )


def test_consecutive_tool_results_share_a_user_turn() -> None:
    result = {"role": "tool", "content": "1"}
    assert prompt(USER, result, result).count("<|im_start|>user") == 2


def test_generation_prompt_opens_a_thought_or_closes_an_empty_one() -> None:
    assert prompt(USER, add_generation_prompt=True).endswith("<|im_start|>assistant\n<think>\n")
    assert prompt(USER, add_generation_prompt=True, enable_thinking=False).endswith(
        "<|im_start|>assistant\n<think></think>"
    )


def test_tools_in_a_mapping_are_its_keys() -> None:
    assert prompt(USER, tools={"f": {"name": "f"}}) == prompt(USER, tools=["f"])
    assert "<function>\n<name></name>\n<parameters>\n</parameters>" in prompt(USER, tools=["f"])


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ({"messages": [{"role": "system", "content": UNPRINTABLE}, USER]}, "messages[0].content"),
        ({"messages": [USER, {"role": "system", "content": UNPRINTABLE}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": UNPRINTABLE}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": UNPRINTABLE}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "content": UNPRINTABLE}]}, "messages[0].content"),
        (
            {"messages": [{"role": "assistant", "content": UNPRINTABLE, "reasoning_content": "Hm."}]},
            "messages[0].content",
        ),
        ({"messages": [USER, calling(name=UNPRINTABLE)]}, "messages[1].tool_calls[0].function.name"),
        (
            {"messages": [USER, calling(name="f", arguments={"x": UNPRINTABLE})]},
            "messages[1].tool_calls[0].function.arguments.x",
        ),
        (
            {"messages": [USER, calling(name="f", arguments={"x": [UNPRINTABLE]})]},
            "messages[1].tool_calls[0].function.arguments.x",
        ),
        ({"messages": [USER], "tools": [{}, {"name": UNPRINTABLE}]}, "tools[1].name"),
        ({"messages": [USER], "tools": [{"function": {"name": UNPRINTABLE}}]}, "tools[0].function.name"),
        ({"messages": [USER], "tools": [{"description": UNPRINTABLE}]}, "tools[0].description"),
        (
            {"messages": [USER], "tools": [{"parameters": {"title": UNPRINTABLE}}]},
            "tools[0].parameters.title",
        ),
        (
            {"messages": [USER], "tools": [{"parameters": {"required": [UNPRINTABLE]}}]},
            "tools[0].parameters.required",
        ),
        ({"messages": [USER], "tools": [{"function": {"strict": UNPRINTABLE}}]}, "tools[0].function.strict"),
    ],
)
def test_what_cannot_be_printed_is_refused(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)
