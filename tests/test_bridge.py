# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""From a prompt and what the model wrote behind it to the next prompt, without writing either again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chatformats
from chatformats import ChatFormatError

from . import oracle
from .strategies import Conversation, texts, well_formed

USER = {"role": "user", "content": "What is 2+2?"}
NEXT = {"role": "user", "content": "And 3+3?"}
TOOL = {"role": "tool", "content": "4"}
CALL = {"function": {"name": "add", "arguments": '{"a": 2, "b": 2}'}}
CALL_OF_MAPPING = {"function": {"name": "add", "arguments": {"a": 2}}}
MARKERS = {
    "hebatron": "<|im_end|>",
    "glm4-tools": "",
    "nemotron-nano-v2": "<SPECIAL_12>",
    "joyai-llm-flash": "<|end▁of▁sentence|>",
    "ministral-3": "</s>",
}
# name, variables, what the model wrote, as a message, what comes next.
KEPT: dict[str, tuple[str, dict[str, Any], str, dict[str, Any], list[Any]]] = {
    "glm4_answer": ("glm4-tools", {}, "4", {"content": "4"}, [NEXT]),
    "joyai_answer": ("joyai-llm-flash", {}, "4", {"content": "4"}, [NEXT]),
    "joyai_call": (
        "joyai-llm-flash",
        {},
        "\n<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>",
        {"content": "", "tool_calls": [CALL_OF_MAPPING]},
        [TOOL],
    ),
    "ministral_answer": ("ministral-3", {}, "4", {"content": "4"}, [NEXT]),
    "ministral_call": (
        "ministral-3",
        {},
        'Let me add.[TOOL_CALLS]add[ARGS]{"a": 2, "b": 2}',
        {"content": "Let me add.", "tool_calls": [CALL]},
        [TOOL],
    ),
    "ministral_call_without_content": (
        "ministral-3",
        {"eos_token": "<eos>"},
        '[TOOL_CALLS]add[ARGS]{"a": 2, "b": 2}[TOOL_CALLS]add[ARGS]{"a": 2, "b": 2}',
        {"content": "", "tool_calls": [CALL, CALL]},
        [TOOL, TOOL],
    ),
    "hebatron_thought_before_a_tool_result": (
        "hebatron",
        {},
        "I add.\n</think>\n<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n</function>\n</tool_call>\n",
        {"content": "", "reasoning_content": "I add.", "tool_calls": [CALL_OF_MAPPING]},
        [TOOL],
    ),
    "hebatron_thought_kept": (
        "hebatron",
        {"truncate_history_thinking": False},
        "2+2\n</think>\n4",
        {"content": "4", "reasoning_content": "2+2"},
        [NEXT],
    ),
    "hebatron_without_thinking": ("hebatron", {"enable_thinking": False}, "4", {"content": "4"}, [NEXT]),
}


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "cut_off"])
@pytest.mark.parametrize(("name", "variables", "completion", "message", "then"), KEPT.values(), ids=KEPT)
def test_bridge_leads_to_the_next_prompt(
    name: str,
    variables: dict[str, Any],
    completion: str,
    message: dict[str, Any],
    then: list[Any],
    closed: bool,
) -> None:
    formatter: Any = chatformats.get(name)
    if closed:
        completion += variables.get("eos_token", MARKERS[name])
    prompt = formatter.render([USER], add_generation_prompt=True, **variables)
    text = formatter.bridge([USER], completion, then, **variables)
    grown = [USER, {"role": "assistant", **message}, *then]
    assert prompt + completion + text == oracle.render(name, grown, add_generation_prompt=True, **variables)


REWRITTEN: dict[str, tuple[str, dict[str, Any], list[Any], str, list[Any]]] = {
    "hebatron_thought_before_a_user_message": ("hebatron", {}, [USER], "2+2\n</think>\n4<|im_end|>", [NEXT]),
    "hebatron_earlier_thought": (
        "hebatron",
        {"enable_thinking": False},
        [
            USER,
            {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [CALL_OF_MAPPING]},
            TOOL,
        ],
        "4<|im_end|>",
        [NEXT],
    ),
    "nemotron_thought": ("nemotron-nano-v2", {}, [USER], "2+2\n</think>\n\n4\n<SPECIAL_12>", [NEXT]),
    "nemotron_without_thinking": (
        "nemotron-nano-v2",
        {},
        [{"role": "user", "content": "2+2? /no_think"}],
        "4\n<SPECIAL_12>",
        [NEXT],
    ),
    "joyai_late_system_message": (
        "joyai-llm-flash",
        {},
        [USER],
        "4<|end▁of▁sentence|>",
        [{"role": "system", "content": "Be brief."}, NEXT],
    ),
    "joyai_two_turns_in_a_row": (
        "joyai-llm-flash",
        {},
        [USER, {"role": "assistant", "content": "4"}],
        "Or 5.<|end▁of▁sentence|>",
        [NEXT],
    ),
    "line_break_behind_the_marker": ("ministral-3", {}, [USER], "4</s>\n", [NEXT]),
}


@pytest.mark.parametrize(
    ("name", "variables", "messages", "completion", "then"), REWRITTEN.values(), ids=REWRITTEN
)
def test_no_bridge_where_the_template_rewrites(
    name: str, variables: dict[str, Any], messages: list[Any], completion: str, then: list[Any]
) -> None:
    assert chatformats.get(name).bridge(messages, completion, then, **variables) is None


def test_white_space_that_the_template_trims_is_left() -> None:
    formatter = chatformats.get("hebatron")
    completion = "Hm.\n</think>\n4 \n\n"
    assert formatter.bridge([USER], completion + "<|im_end|>", [TOOL]) == (
        "\n<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )
    text = formatter.bridge([USER], completion, [TOOL])
    assert text is not None
    assert text.startswith("<|im_end|>\n<|im_start|>user\n")


def test_what_the_model_wrote_behind_its_marker_is_not_written_again() -> None:
    formatter = chatformats.get("hebatron")
    one = formatter.bridge([USER], "Hm.\n</think>\n4<|im_end|>", [TOOL])
    other = formatter.bridge([USER], "Hm.\n</think>\n4<|im_end|>\n", [TOOL])
    assert one is not None
    assert other is not None
    assert one == "\n" + other


def test_thought_that_was_cut_off_is_closed_as_it_is() -> None:
    formatter = chatformats.get("nemotron-nano-v2")
    assert formatter.bridge([USER], "Let me", [NEXT]) == (
        "\n<SPECIAL_12>\n<SPECIAL_11>User\nAnd 3+3?\n<SPECIAL_11>Assistant\n<think>\n"
    )


def test_conversation_bridges_without_growing() -> None:
    formatter = chatformats.get("ministral-3")
    chat = formatter.conversation([USER])
    given = chat.delta().text
    assert chat.bridge("4</s>", [NEXT]) == "[INST]And 3+3?[/INST]"
    assert len(chat) == 1
    assert chat.delta() == (len(given), "")


def test_bad_new_messages_are_refused() -> None:
    formatter = chatformats.get("ministral-3")
    with pytest.raises(ChatFormatError, match=r"^messages\[2\]\.role: Only user"):
        formatter.bridge([USER], "4</s>", [{"role": "developer", "content": "x"}])
    with pytest.raises(ChatFormatError, match=r"^messages\[0\]\.content: "):
        formatter.bridge([{"role": "user", "content": 5}], "4</s>", [NEXT])


@pytest.mark.parametrize("name", ["glm4-tools", "joyai-llm-flash", "ministral-3"])
def test_bridges_of_generated_conversations(name: str, conversations: int, derandomize: bool) -> None:
    formatter: Any = chatformats.get(name)
    bridged = 0

    @settings(
        max_examples=conversations // 4,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(well_formed(name), texts, st.booleans())
    def examine(one: Conversation, completion: str, closed: bool) -> None:
        nonlocal bridged
        one.variables.pop("add_generation_prompt", None)
        tools, variables = one.tools, one.variables
        marker = variables.get("eos_token", MARKERS[name])
        if (marker and marker in completion) or "[TOOL_CALLS]" in completion:
            return
        grown = [*one.messages, {"role": "assistant", "content": completion}, NEXT]
        sampled = completion + marker if closed else completion
        try:
            prompt = formatter.render(one.messages, tools, add_generation_prompt=True, **variables)
            text = formatter.bridge(one.messages, sampled, [NEXT], tools, **variables)
        except ChatFormatError:
            return
        wanted = oracle.render(name, grown, tools, add_generation_prompt=True, **variables)
        if text is None:
            assert not wanted.startswith(prompt + sampled)
        else:
            assert prompt + sampled + text == wanted
            bridged += 1

    examine()
    assert bridged > conversations // 50
