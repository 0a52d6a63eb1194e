# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""JoyAI-LLM-Flash: the reference, the stored prompt and the formatter are one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chatformats import ChatFormatError
from chatformats.formats.joyai_llm_flash import JoyAILLMFlashFormatter

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

FORMATTER: Final = JoyAILLMFlashFormatter()

# The conversations that the template refuses, each with the place at fault.
REFUSED: Final = {
    "answer_as_list": "messages[1].content",
    "answer_as_number": "messages[1].content",
    "arguments_as_array": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_broken_json": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_empty_string": "messages[1].tool_calls[0].function.arguments",
    "arguments_as_json_string_of_an_array": "messages[1].tool_calls[0].function.arguments",
    "arguments_null": "messages[1].tool_calls[0].function.arguments",
    "empty_list_of_parts": "messages[0].content",
    "first_of_two_system_contents_of_another_kind": "messages[0].content",
    "missing_tool_result": "messages[2].content",
    "missing_user_content": "messages[0].content",
    "null_tool_result": "messages[2].content",
    "null_user_content": "messages[0].content",
    "second_system_content_of_another_kind": "messages[2].content",
    "text_and_image": "messages[0].content",
    "text_parts": "messages[1].content",
    "tool_call_without_name": "messages[1].tool_calls[0].function.name",
    "tool_calls_as_mapping": "messages[1].tool_calls[0].name",
    "tool_calls_as_number": "messages[1].tool_calls",
    "tool_calls_as_string": "messages[1].tool_calls[0].name",
    "tool_name_null": "messages[1].tool_calls[0].function.name",
    "tool_result_as_mapping": "messages[2].content",
}


@accepted(FORMATTER.name, REFUSED)
def test_prompt(case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    check_prompt(FORMATTER, case, prompt_file)


@refused(FORMATTER.name, REFUSED)
def test_refusal(case: dict[str, Any], path: str) -> None:
    check_refusal(FORMATTER, case, path)


def prompt(*messages: object, **case: Any) -> str:
    return both(FORMATTER, *messages, **case)


def called(arguments: object) -> str:
    """Return how a tool call with some arguments is printed."""
    call = {"function": {"name": "f", "arguments": arguments}}
    text = prompt(USER, {"role": "assistant", "content": "", "tool_calls": [call]})
    return text.split("<function=f>\n")[1].split("</function>")[0]


def test_without_a_system_message_the_default_is_printed() -> None:
    assert prompt(USER).startswith("You are JoyAI , a large language model trained by JD（京东）that can ")


def test_system_messages_are_gathered_at_the_top() -> None:
    first, second = ({"role": "system", "content": text} for text in ("Be brief.", "Be kind."))
    assert prompt(first, USER, second) == "Be brief.\n\nBe kind.<|User|>What's up?"


def test_an_empty_system_message_replaces_the_default() -> None:
    assert prompt({"role": "system", "content": ""}, USER) == "<|User|>What's up?"


def test_one_system_content_may_be_anything_several_must_be_strings() -> None:
    system = {"role": "system", "content": None}
    assert prompt(system, USER) == "None<|User|>What's up?"
    with pytest.raises(ChatFormatError, match=r"^messages\[0\]\.content: expected a string, got None$"):
        FORMATTER.render([system, USER, {"role": "system", "content": "Be kind."}])


def test_the_beginning_of_the_sequence_is_what_the_host_passes() -> None:
    assert prompt(USER, bos_token="<bos>") == "<bos>" + prompt(USER)


def test_answers_in_a_row_share_one_marker() -> None:
    assert prompt(USER, ASSISTANT, ASSISTANT).count("<|Assistant|>") == 1
    assert prompt(ASSISTANT).count("<|Assistant|>") == 0


def test_missing_null_and_empty_answers_are_the_same() -> None:
    empty = prompt(USER, {"role": "assistant", "content": ""})
    assert prompt(USER, {"role": "assistant", "content": None}) == empty
    assert prompt(USER, {"role": "assistant"}) == empty


def test_reasoning_content_is_never_printed() -> None:
    assert prompt(USER, {**ASSISTANT, "reasoning_content": "Hm."}) == prompt(USER, ASSISTANT)


def test_arguments_in_a_json_string_are_read() -> None:
    assert called('{"a": [1, "é"], "b": true}') == called({"a": [1, "é"], "b": True})


def test_arguments_are_json_where_they_are_containers_and_str_elsewhere() -> None:
    assert called({"a": True, "b": [True]}) == (
        "<parameter=a>\nTrue\n</parameter>\n<parameter=b>\n[true]\n</parameter>\n"
    )


def test_enum_and_required_are_keys_like_any_other() -> None:
    parameters = {"required": "x", "properties": {"x": {"enum": ["é"], "title": None}}, "title": "T"}
    assert (
        '<name>x</name>\n<enum>["é"]</enum>\n<title>None</title>\n</parameter>'
        "\n<required>x</required>\n<title>T</title>\n</parameters>"
    ) in prompt(USER, tools=[{"name": "f", "parameters": parameters}])


def test_a_missing_description_is_left_out_and_a_null_one_is_not() -> None:
    assert "<description>" not in prompt(USER, tools=[{"name": "f"}])
    assert "<description>None</description>" in prompt(USER, tools=[{"name": "f", "description": None}])


def test_a_message_of_an_unknown_role_is_skipped() -> None:
    assert prompt({"role": "developer", "content": "Be brief."}, USER, {}) == prompt(USER)


def test_tools_in_a_mapping_are_its_keys() -> None:
    assert prompt(USER, tools={"f": {"name": "f"}}) == prompt(USER, tools=["f"])
    assert "<function>\n<name></name>\n<parameters>\n</parameters>" in prompt(USER, tools=["f"])


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ({"messages": [{"role": "system", "content": UNPRINTABLE}, USER]}, "messages[0].content"),
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
