# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Which prompts begin those of longer conversations: a witness for each that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chatformats

from . import oracle
from .strategies import Conversation, well_formed

STABLE = ("glm4-tools", "ministral-3")


def user(content: str = "What is 2+2?") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str = "4", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def calling(**more: Any) -> dict[str, Any]:
    return assistant("", tool_calls=[{"function": {"name": "f", "arguments": {"a": 1}}}], **more)


def tool(content: str = "r") -> dict[str, Any]:
    return {"role": "tool", "content": content}


def system(content: str = "Be brief.") -> dict[str, Any]:
    return {"role": "system", "content": content}


# What follows the characters that both prompts have in common, in the shorter one and in the longer one.
WITNESSES: dict[str, tuple[str, list[Any], list[Any], dict[str, Any], str, str]] = {
    "hebatron_cuts_reasoning_out": (
        "hebatron",
        [user(), assistant(reasoning_content="2+2")],
        [user()],
        {},
        "\n2+2\n</think>\n4<|im_end|>\n",
        "</think>\n4<|im_end|>\n<|im_start|>user\nWhat is 2+2?<|im_end|>\n",
    ),
    "hebatron_cuts_it_out_before_tool_results_too": (
        "hebatron",
        [user(), calling(reasoning_content="2+2"), tool()],
        [assistant(), user()],
        {},
        "\n2+2\n</think>\n<tool_call>",
        "</think>\n<tool_call>",
    ),
    "hebatron_moves_the_end_of_a_tool_turn": (
        "hebatron",
        [user(), calling(), tool()],
        [tool("s")],
        {"truncate_history_thinking": False},
        "|im_end|>\n",
        "tool_response>\ns\n</tool_response>\n<|im_end|>\n",
    ),
    "nemotron_takes_the_think_tag_away": (
        "nemotron-nano-v2",
        [user(), assistant()],
        [user()],
        {},
        "<think>\n4\n<SPECIAL_12>\n",
        "4\n<SPECIAL_12>\n<SPECIAL_11>User\nWhat is 2+2?\n",
    ),
    "nemotron_moves_line_breaks_behind_tool_calls": (
        "nemotron-nano-v2",
        [user(), calling()],
        [tool()],
        {},
        "<SPECIAL_12>\n\n",
        "\n<SPECIAL_12>\n<SPECIAL_11>User\n<TOOL_RESPONSE>[r]</TOOL_RESPONSE>",
    ),
    "nemotron_lists_tool_results_together": (
        "nemotron-nano-v2",
        [user(), calling(), tool()],
        [tool("s")],
        {},
        "]</TOOL_RESPONSE>",
        ", s]</TOOL_RESPONSE>",
    ),
    "nemotron_switches_the_last_turn": (
        "nemotron-nano-v2",
        [user("x"), assistant("y")],
        [user("/no_think"), assistant("z")],
        {},
        "<think>\ny\n<SPECIAL_12>\n",
        "y\n<SPECIAL_12>\n<SPECIAL_11>User\n\n<SPECIAL_11>Assistant\n<think></think>z\n<SPECIAL_12>\n",
    ),
    "joyai_moves_a_system_message_to_the_top": (
        "joyai-llm-flash",
        [system("Be"), user()],
        [system("brief.")],
        {},
        "<|User|>What is 2+2?",
        "\n\nbrief.<|User|>What is 2+2?",
    ),
    "joyai_takes_its_default_away": (
        "joyai-llm-flash",
        [user()],
        [system("You are brief.")],
        {},
        "JoyAI , a large",
        "brief.<|User|>",
    ),
}


@pytest.mark.parametrize(
    ("name", "before", "after", "variables", "old", "new"), WITNESSES.values(), ids=WITNESSES
)
def test_witness(
    name: str, before: list[Any], after: list[Any], variables: dict[str, Any], old: str, new: str
) -> None:
    shorter = oracle.render(name, before, **variables)
    longer = oracle.render(name, [*before, *after], **variables)
    formatter: Any = chatformats.get(name)
    chat = formatter.conversation(before, **variables)
    assert chat.delta() == (0, shorter)
    chat.extend(after)
    keep, text = chat.delta()
    assert shorter[:keep] + text == longer
    assert shorter[keep:].startswith(old)
    assert text.startswith(new)
    assert not formatter.is_prefix_stable(**variables)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_every_no_has_a_witness(name: str) -> None:
    formatter: Any = chatformats.get(name)
    assert formatter.is_prefix_stable() == (name in STABLE)
    assert formatter.is_prefix_stable() != any(witness[0] == name for witness in WITNESSES.values())


@pytest.mark.parametrize("name", STABLE)
def test_a_stable_prompt_begins_every_longer_one(name: str, conversations: int, derandomize: bool) -> None:
    render: Callable[..., str] = chatformats.get(name).render
    grown = 0

    @settings(
        max_examples=conversations // 2,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(well_formed(name), st.integers(0, 100))
    def examine(one: Conversation, cut: int) -> None:
        nonlocal grown
        one.variables.pop("add_generation_prompt", None)
        try:
            longer = render(one.messages, one.tools, **one.variables)
            shorter = render(one.messages[: cut % len(one.messages)], one.tools, **one.variables)
        except chatformats.ChatFormatError:
            return
        # Without a message there is no system message yet: the head is not there.
        if cut % len(one.messages):
            assert longer.startswith(shorter)
            grown += 1

    examine()
    assert grown > conversations // 20


# A generation prompt and the reply that follows it, as the last message and in history.
REPLIES: dict[str, tuple[bool, bool]] = {
    "hebatron": (False, False),
    "glm4-tools": (True, True),
    "nemotron-nano-v2": (True, False),
    "joyai-llm-flash": (True, True),
    "ministral-3": (True, True),
}


@pytest.mark.parametrize("name", oracle.NAMES)
def test_reply_continues_the_generation_prompt(name: str) -> None:
    render = chatformats.get(name).render
    prompt = render([user()], add_generation_prompt=True)
    last, history = render([user(), assistant()]), render([user(), assistant(), user()])
    assert (last.startswith(prompt), history.startswith(prompt)) == REPLIES[name]


def test_hebatrons_reply_continues_a_prompt_without_thinking() -> None:
    render = chatformats.get("hebatron").render
    prompt = render([user()], add_generation_prompt=True, enable_thinking=False)
    assert render([user(), assistant()]).startswith(prompt)
    assert render([user(), assistant(), user()]).startswith(prompt)
