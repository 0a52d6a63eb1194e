# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Nemotron Nano v2: the reference, the stored prompt and the formatter are one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chatformats import ChatFormatError
from chatformats.formats.nemotron_nano_v2 import NemotronNanoV2Formatter

from ..cases import (
    ASSISTANT,
    UNPRINTABLE,
    USER,
    accepted,
    both,
    calling,
    check_prompt,
    check_refusal,
    refused,
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FORMATTER: Final = NemotronNanoV2Formatter()

# The conversations that the template refuses, each with the place at fault.
REFUSED: Final = {
    "answer_list_in_history": "messages[1].content",
    "answer_list_with_end_tag_in_history": "messages[1].content",
    "answer_number_at_the_end": "messages[1].content",
    "last_tool_calls_as_mapping": "messages[1].tool_calls[0].name",
    "last_tool_calls_as_number": "messages[1].tool_calls",
    "last_tool_calls_null": "messages[1].tool_calls",
    "last_tool_calls_without_arguments": "messages[1].tool_calls[0].function.arguments",
    "last_tool_calls_without_name": "messages[1].tool_calls[0].function.name",
    "no_messages": "messages",
    "no_messages_with_generation_prompt": "messages",
    "null_system_content": "messages[0].content",
    "null_user_content": "messages[0].content",
    "only_a_system_message": "messages",
    "only_a_system_message_with_generation_prompt": "messages",
    "system_content_list": "messages[0].content",
    "text_and_image": "messages[0].content",
    "text_parts": "messages[0].content",
    "tool_call_without_arguments": "messages[1].tool_calls[0].function.arguments",
    "user_content_list_with_switch": "messages[0].content",
}


@accepted(FORMATTER.name, REFUSED)
def test_prompt(case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    check_prompt(FORMATTER, case, prompt_file)


@refused(FORMATTER.name, REFUSED)
def test_refusal(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)


def prompt(*messages: object, **case: Any) -> str:
    return both(FORMATTER, *messages, **case)


CALLS: Final = [{"function": {"name": "f", "arguments": {}}}]


def user(text: object) -> dict[str, object]:
    return {"role": "user", "content": text}


def assistant(text: object, **keys: object) -> dict[str, object]:
    return {"role": "assistant", "content": text, **keys}


def thinks(*messages: object) -> bool:
    """Say whether the generation prompt opens a thought."""
    text = prompt(*messages, add_generation_prompt=True)
    assert text.endswith(("<SPECIAL_11>Assistant\n<think>\n", "<SPECIAL_11>Assistant\n<think></think>"))
    return text.endswith("\n")


def test_the_last_switch_found_wins() -> None:
    assert thinks(user("Hi"))
    assert not thinks(user("Hi /no_think"))
    assert not thinks(user("Hi /no_think"), ASSISTANT, user("Hi"))
    assert thinks(user("Hi /no_think"), ASSISTANT, user("Hi /think"))
    assert not thinks({"role": "system", "content": "/no_think"}, user("Hi"))


def test_of_two_switches_in_one_message_thinking_wins() -> None:
    assert thinks(user("/think /no_think"))
    assert thinks(user("/no_think /think"))


def test_switches_are_cut_out_of_the_text() -> None:
    assert "User\nand/or a  b\n" in prompt(user(" and/or a /no_think b/think "))
    # "/think" is cut out first: what it leaves of another switch stays.
    assert "User\n/no_think\n" not in prompt(user("/no_/thinkthink"))


def test_a_switch_in_an_answer_is_text() -> None:
    assert thinks(user("Hi"), assistant("/no_think"), user("Hi"))
    assert "Assistant\n/no_think\n" in prompt(user("Hi"), assistant("/no_think"), user("Hi"))


def test_a_switch_in_a_list_is_an_element() -> None:
    # The list is then refused, but only where its text is needed.
    text = prompt(user("Hi"), {"role": "system", "content": ["a", "/no_think"]}, add_generation_prompt=True)
    assert text.endswith("<think></think>")
    assert thinks(user("Hi"), {"role": "system", "content": ["a /no_think"]})


def test_missing_and_null_content_differ() -> None:
    assert prompt({"role": "user"}).endswith("<SPECIAL_11>User\n\n")
    with pytest.raises(ChatFormatError, match=r"^messages\[0\]\.content: expected a string, got None \("):
        FORMATTER.render([user(None)])


def test_an_answer_in_history_has_no_think_tag() -> None:
    assert "<SPECIAL_11>Assistant\nNot much.\n<SPECIAL_12>\n" in prompt(USER, ASSISTANT, USER)


def test_of_history_the_text_between_two_ends_of_thought_is_kept() -> None:
    assert "Assistant\nb\n<SPECIAL_12>" in prompt(USER, assistant("a</think> b </think>c"), USER)


def test_the_last_answer_opens_with_a_think_tag_and_keeps_its_own() -> None:
    assert prompt(USER, assistant(" a</think>b ")).endswith(
        "<SPECIAL_11>Assistant\n<think>\na</think>b\n<SPECIAL_12>\n"
    )
    assert prompt(user("/no_think"), ASSISTANT).endswith(
        "Assistant\n<think></think>Not much.\n<SPECIAL_12>\n"
    )


def test_the_last_answer_may_stay_open() -> None:
    closed = prompt(USER, ASSISTANT)
    assert closed == prompt(USER, ASSISTANT, continue_final_message=True) + "\n<SPECIAL_12>\n"
    assert closed == prompt(USER, ASSISTANT, continue_final_message=False)


def test_the_last_tool_calls_stand_in_a_turn_of_their_own() -> None:
    assert prompt(USER, assistant("a", tool_calls=CALLS)).endswith(
        "<SPECIAL_11>Assistant\n<think>\na\n<SPECIAL_12>\n"
        '<SPECIAL_11>Assistant\n<TOOLCALL>[{"name": "f", "arguments": {}}]</TOOLCALL><SPECIAL_12>\n\n'
    )


def test_with_a_generation_prompt_the_last_tool_calls_disappear() -> None:
    text = prompt(USER, assistant("a", tool_calls=CALLS), add_generation_prompt=True)
    assert text == prompt(USER, assistant("a"), add_generation_prompt=True)
    assert text.endswith("<SPECIAL_11>Assistant\n<think>\na")


def test_braces_in_the_tool_instructions_are_doubled() -> None:
    text = prompt(USER, tools=[{"name": "f"}])
    assert '<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, {{"name": "tool_name2",' in text


def test_an_empty_list_of_tools_is_none() -> None:
    assert prompt(USER, tools=[]) == prompt(USER)


def test_tool_results_are_printed_bare_and_neighbours_in_one_list() -> None:
    results = [{"role": "tool", "content": content} for content in ('"a"', None, {"b": True})]
    assert prompt(USER, *results).endswith(
        "<SPECIAL_11>User\n<TOOL_RESPONSE>[\"a\", None, {'b': True}]</TOOL_RESPONSE>"
    )


def test_a_string_of_arguments_is_printed_as_it_is() -> None:
    calls = [{"name": 'f"', "arguments": '{"a": '}]
    assert '<TOOLCALL>[{"name": "f"", "arguments": {"a": }]</TOOLCALL>' in prompt(
        USER, assistant("", tool_calls=calls)
    )


def test_tools_in_a_mapping_are_its_keys_and_zero_is_none() -> None:
    assert '<AVAILABLE_TOOLS>["f", "g"]</AVAILABLE_TOOLS>' in prompt(USER, tools={"f": 1, "g": 2})
    assert prompt(USER, tools=0) == prompt(USER)
    check_refusal(FORMATTER, {"messages": [USER], "tools": 5}, "tools")


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ({"messages": [USER, {"role": "tool", "content": UNPRINTABLE}]}, "messages[1].content"),
        (
            {"messages": [USER, calling(name="f", arguments={"x": UNPRINTABLE}), USER]},
            "messages[1].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [USER, calling(name="f", arguments={"x": UNPRINTABLE})]},
            "messages[1].tool_calls[0].function.arguments",
        ),
        ({"messages": [USER], "tools": [{}, {"a": UNPRINTABLE}]}, "tools[1]"),
    ],
)
def test_what_cannot_be_printed_is_refused(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)
