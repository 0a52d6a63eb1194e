# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Ministral 3: the reference, the stored prompt and the formatter are one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chatformats import TemplateRaisedError
from chatformats.formats.ministral_3 import Ministral3Formatter

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

FORMATTER: Final = Ministral3Formatter()

# The conversations that the template refuses, each with the place at fault.
REFUSED: Final = {
    "answer_after_answer_with_tool_calls": "messages[4].role",
    "answer_as_mapping": "messages[1].content[0].type",
    "answer_as_number": "messages[1].content",
    "answer_empty_list": "messages[1].content",
    "answer_empty_with_empty_tool_calls": "messages[1].content",
    "answer_first": "messages[0].role",
    "answer_missing_with_null_tool_calls": "messages[1].content",
    "audio_part": "messages[0].content[1].type",
    "developer_role": "messages[0].role",
    "empty_answer": "messages[1].content",
    "empty_list_of_parts": "messages[0].content",
    "image_in_answer": "messages[1].content[1].type",
    "image_in_system_message": "messages[0].content[1].type",
    "message_is_a_string": "messages[0].role",
    "message_is_null": "messages[1].role",
    "missing_answer": "messages[1].content",
    "missing_role": "messages[0].role",
    "missing_user_content": "messages[0].content",
    "no_messages": "messages",
    "no_messages_with_generation_prompt": "messages",
    "null_answer": "messages[1].content",
    "null_role": "messages[0].role",
    "null_system_content": "messages[0].content",
    "null_user_content": "messages[0].content",
    "part_is_a_string": "messages[0].content[0].type",
    "second_system_message": "messages[3].role",
    "sorting_missing_type": "messages[0].content",
    "sorting_null_types": "messages[0].content[0].type",
    "sorting_numbers_and_strings": "messages[0].content",
    "sorting_two_missing_types": "messages[0].content[0].type",
    "system_content_as_mapping": "messages[0].content[0].type",
    "system_message_last": "messages[2].role",
    "tool_call_of_null_function": "messages[1].tool_calls[0].function.name",
    "tool_call_with_null_content": "messages[1].content",
    "tool_call_without_arguments": "messages[1].tool_calls[0].function.arguments",
    "tool_call_without_function_wrapper": "messages[1].tool_calls[0].function",
    "tool_call_without_name": "messages[1].tool_calls[0].function.name",
    "tool_calls_as_mapping": "messages[1].tool_calls[0].function",
    "tool_calls_as_number": "messages[1].tool_calls",
    "tool_calls_as_string": "messages[1].tool_calls[0].function",
    "tool_name_null": "messages[1].tool_calls[0].function.name",
    "tool_results_between_other_roles": "messages[4].role",
    "two_answers_in_a_row": "messages[2].role",
    "two_parts_are_strings": "messages[0].content[0].type",
    "two_user_messages_in_a_row": "messages[1].role",
    "unknown_role_with_number": "messages[1].role",
    "user_content_as_mapping": "messages[0].content[0].type",
    "user_content_as_number": "messages[0].content",
    "user_content_empty_mapping": "messages[0].content",
}


@accepted(FORMATTER.name, REFUSED)
def test_prompt(case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    check_prompt(FORMATTER, case, prompt_file)


@refused(FORMATTER.name, REFUSED)
def test_refusal(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)


def prompt(*messages: object, **case: Any) -> str:
    return both(FORMATTER, *messages, **case)


SYSTEM: Final = {"role": "system", "content": ""}
TEXT: Final = {"type": "text", "text": "Look:"}
IMAGE: Final = {"type": "image"}


def asked(*parts: object) -> str:
    """Return how a user message of several parts is printed."""
    return prompt(SYSTEM, {"role": "user", "content": list(parts)}).partition("[/SYSTEM_PROMPT]")[2]


def called(name: str, arguments: object) -> str:
    """Return how a tool call is printed."""
    call = {"function": {"name": name, "arguments": arguments}}
    text = prompt(SYSTEM, USER, {"role": "assistant", "content": "", "tool_calls": [call]})
    return text.partition("[/INST]")[2].removesuffix("</s>")


def test_dates_in_the_default_system_prompt_are_left_to_the_host() -> None:
    assert prompt(USER).startswith("<s>[SYSTEM_PROMPT]You are Ministral-3-3B-Instruct-2512, ")
    assert "The current date is {today}." in prompt(USER)
    assert '(e.g. "yesterday" is {yesterday})' in prompt(USER)


def test_an_empty_system_message_replaces_the_default() -> None:
    assert prompt(SYSTEM, USER) == "<s>[SYSTEM_PROMPT][/SYSTEM_PROMPT][INST]What's up?[/INST]"


def test_two_parts_are_sorted_by_type() -> None:
    assert asked(TEXT, IMAGE) == asked(IMAGE, TEXT) == "[INST][IMG]Look:[/INST]"


def test_one_and_three_parts_keep_their_order() -> None:
    assert asked(TEXT) == "[INST]Look:[/INST]"
    assert asked(TEXT, IMAGE, TEXT) == "[INST]Look:[IMG]Look:[/INST]"
    assert asked(IMAGE, TEXT, TEXT) == "[INST][IMG]Look:Look:[/INST]"


def test_sorting_keeps_the_order_of_equal_types() -> None:
    assert asked({"type": "text", "text": "b"}, {"type": "text", "text": "a"}) == "[INST]ba[/INST]"


def test_a_tool_name_is_escaped_where_the_arguments_are_a_mapping() -> None:
    assert called("a<b>&\"'", {"x": "<&"}) == "[TOOL_CALLS]a&lt;b&gt;&amp;&#34;&#39;[ARGS]" + '{"x": "<&"}'


def test_a_tool_name_is_not_escaped_where_the_arguments_are_a_string() -> None:
    assert called("a<b>&\"'", '{"x": 1}') == "[TOOL_CALLS]a<b>&\"'[ARGS]" + '{"x": 1}'


def test_arguments_in_an_empty_string_become_an_empty_object() -> None:
    assert called("f", "") == "[TOOL_CALLS]f[ARGS]{}"
    assert called("f", " ") == "[TOOL_CALLS]f[ARGS] "


def test_null_arguments_are_json() -> None:
    assert called("f", None) == "[TOOL_CALLS]f[ARGS]null"


def test_missing_and_null_tool_results_differ() -> None:
    assert prompt({"role": "tool"}).endswith("[TOOL_RESULTS][/TOOL_RESULTS]")
    assert prompt({"role": "tool", "content": None}).endswith("[TOOL_RESULTS]None[/TOOL_RESULTS]")


def test_tokens_are_printed_by_str() -> None:
    text = prompt(SYSTEM, USER, ASSISTANT, bos_token=None, eos_token=None)
    assert text.startswith("None[SYSTEM_PROMPT]")
    assert text.endswith("Not much.None")


def test_a_generation_prompt_changes_nothing() -> None:
    assert prompt(USER, add_generation_prompt=True) == prompt(USER)


def test_an_empty_list_of_tools_is_none() -> None:
    assert prompt(USER, tools=[]) == prompt(USER)


def test_the_template_is_quoted_where_it_refuses() -> None:
    with pytest.raises(TemplateRaisedError) as info:
        FORMATTER.render([USER, ASSISTANT, ASSISTANT])
    assert str(info.value) == (
        "messages[2].role: After the optional system message, conversation roles must alternate user and "
        "assistant roles except for tool calls and results. (normalize(merge_consecutive=True) merges the two)"
    )


def test_tools_are_whatever_json_and_need_a_length_only() -> None:
    assert '[AVAILABLE_TOOLS]{"f": 1}[/AVAILABLE_TOOLS]' in prompt(USER, tools={"f": 1})
    check_refusal(FORMATTER, {"messages": [USER], "tools": 5}, "tools")


@pytest.mark.parametrize(
    ("case", "path"),
    [
        (
            {"messages": [{"role": "system", "content": [{"type": "text", "text": UNPRINTABLE}]}, USER]},
            "messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": UNPRINTABLE}]}]},
            "messages[0].content[0].text",
        ),
        (
            {"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": UNPRINTABLE}]}]},
            "messages[1].content[0].text",
        ),
        ({"messages": [{"role": "tool", "content": UNPRINTABLE}]}, "messages[0].content"),
        (
            {"messages": [USER, calling(name="f", arguments={"x": UNPRINTABLE})]},
            "messages[1].tool_calls[0].function.arguments",
        ),
        ({"messages": [USER], "tools": [{"a": UNPRINTABLE}]}, "tools"),
        ({"messages": [USER], "bos_token": UNPRINTABLE}, "bos_token"),
        ({"messages": [USER, ASSISTANT], "eos_token": UNPRINTABLE}, "eos_token"),
    ],
)
def test_what_cannot_be_printed_is_refused(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)
