# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""GLM-4 tool calling: the reference, the stored prompt and the formatter are one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chatformats.formats.glm4_tools import GLM4ToolsFormatter

from .. import oracle
from ..cases import ASSISTANT, UNPRINTABLE, USER, accepted, both, check_prompt, check_refusal, native, refused

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

FORMATTER: Final = GLM4ToolsFormatter()

# The conversations that the template refuses, each with the place at fault.
REFUSED: Final = {
    "empty_list_of_parts": "messages[0].content",
    "missing_answer": "messages[1].content",
    "missing_user_content": "messages[0].content",
    "no_messages_with_generation_prompt": "messages",
    "null_answer": "messages[1].content",
    "null_user_content": "messages[0].content",
    "only_a_system_message_with_generation_prompt": "messages",
    "text_and_image": "messages[0].content",
    "text_parts": "messages[1].content",
    "tool_call_with_null_content": "messages[1].content",
    "tool_call_without_content": "messages[1].content",
}


@accepted(FORMATTER.name, REFUSED)
def test_prompt(case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    check_prompt(FORMATTER, case, prompt_file)


@refused(FORMATTER.name, REFUSED)
def test_refusal(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)


def prompt(*messages: object, **case: Any) -> str:
    return both(FORMATTER, *messages, **case)


def test_a_system_message_is_read_and_never_printed() -> None:
    assert prompt({"role": "system", "content": "Be brief."}, USER) == prompt(USER)


def test_a_second_system_message_is_not_printed_either() -> None:
    system = {"role": "system", "content": "Be brief."}
    assert prompt(system, system, USER) == prompt(USER)


def test_rounds_count_from_zero_and_by_user_messages() -> None:
    assert prompt(USER, USER, ASSISTANT) == (
        "[Round 0]\n问：What's up?[Round 1]\n问：What's up?\n答：Not much."
    )


def test_no_tools_and_an_empty_list_of_tools_differ() -> None:
    assert prompt(USER, tools=None) == "[Round 0]\n问：What's up?"
    assert prompt(USER, tools=[]).startswith("You have access to the following tools. ")


def test_instructions_end_with_two_blank_lines_before_the_first_tool() -> None:
    assert 'Available tools:\n\n\n{\n    "a": 1\n}\n\n[Round 0]' in prompt(USER, tools=[{"a": 1}])


def test_indented_json_keeps_text_that_is_not_ascii_and_escapes_no_html() -> None:
    assert '"name": "météo<&>"' in prompt(USER, tools=[{"name": "météo<&>"}])


def test_tool_calls_and_tool_results_are_not_printed() -> None:
    called = {**ASSISTANT, "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    result = {"role": "tool", "content": "1"}
    assert prompt(USER, called, result, USER) == prompt(USER, ASSISTANT, result, USER)
    assert prompt(USER, called, result, USER) == prompt(USER, ASSISTANT, USER)


def test_generation_prompt_follows_an_answer_as_a_line_break_only() -> None:
    assert prompt(USER, ASSISTANT, add_generation_prompt=True) == prompt(USER, ASSISTANT) + "\n"
    assert prompt(USER, add_generation_prompt=True) == prompt(USER) + "\n答："


def test_no_messages_are_an_empty_prompt() -> None:
    assert prompt() == ""


def test_no_messages_may_be_an_empty_mapping() -> None:
    assert native(FORMATTER, messages={}) == oracle.render(FORMATTER.name, messages={}) == ""


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ({"messages": [{"role": "system", "content": UNPRINTABLE}, USER]}, "messages[0].content"),
        ({"messages": [USER], "tools": [{}, {"a": [UNPRINTABLE]}]}, "tools[1]"),
    ],
)
def test_what_cannot_be_printed_is_refused(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)
