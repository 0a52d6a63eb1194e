# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""transformers makes the same prompts, but for what it does to a conversation before the template sees it.

``render_jinja_template`` is the part that renders; ``apply_chat_template`` edits the messages first.
"""

from __future__ import annotations

from typing import Any

import pytest

import chatformats

from .. import oracle
from ..cases import ASSISTANT, USER, conversations

transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: peers)")
from tokenizers import Tokenizer, models  # transformers depends on it
from transformers.utils.chat_template_utils import render_jinja_template

VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))
# JoyAI's template leaves this filter to its host, and transformers has none.
NO_FROM_JSON = "no filter from_json"
CASES = [
    pytest.param(name, case, id=f"{name}-{title}")
    for name in oracle.NAMES
    for title, case in conversations(name).items()
]


def outcome(render: Any, *arguments: Any, **case: Any) -> str | None:
    """Return the prompt, or None where anything is raised."""
    try:
        text: str = render(*arguments, **case)
    except Exception as error:  # noqa: BLE001  # a template may raise anything
        return NO_FROM_JSON if "No filter named 'from_json'" in str(error) else None
    return text


def is_dict_list(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, dict) for item in value)


def refused_by_transformers(case: dict[str, Any]) -> bool:
    """Say whether transformers refuses what a template takes.

    To a template, a message that is no mapping is one without a role, and a tool may be anything.
    """
    messages, tools = case["messages"], case.get("tools")
    return (VERSION >= (5, 22) and not is_dict_list(messages)) or (
        tools is not None and not is_dict_list(tools)
    )


def as_transformers_passes_it(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case without the variable that transformers keeps to itself."""
    # apply_chat_template's own continue_final_message cuts the prompt after the last message's text.
    return {key: value for key, value in case.items() if key != "continue_final_message"}


def edited(message: dict[str, Any]) -> dict[str, Any]:
    """Return what apply_chat_template makes of a message."""
    if VERSION >= (5, 23):
        message = {key: value for key, value in message.items() if value is not None}
    if VERSION >= (5, 22):
        fields = ("reasoning_content", "reasoning", "thinking")
        reasoning = next((message[key] for key in fields if message.get(key) is not None), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
    return message


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({}, unk_token=""))
    )


@pytest.mark.parametrize(("name", "case"), CASES)
def test_render_jinja_template(name: str, case: dict[str, Any]) -> None:
    case = as_transformers_passes_it(case)
    expected = outcome(oracle.render, name, **case)
    arguments = {**oracle.DEFAULTS.get(name, {}), "chat_template": oracle.source(name), **case}
    conversation = [arguments.pop("messages")]
    prompt = outcome(lambda: render_jinja_template(conversation, **arguments)[0][0])
    if refused_by_transformers(case):
        assert prompt is None
    elif prompt == NO_FROM_JSON:
        assert name == "joyai-llm-flash"
    else:
        assert prompt == expected
        assert outcome(chatformats.get(name).render, **case) == expected


@pytest.mark.parametrize(("name", "case"), CASES)
def test_apply_chat_template(tokenizer: Any, name: str, case: dict[str, Any]) -> None:
    case = as_transformers_passes_it(case)
    arguments = {**oracle.DEFAULTS.get(name, {}), "chat_template": oracle.source(name), **case}
    prompt = outcome(tokenizer.apply_chat_template, arguments.pop("messages"), tokenize=False, **arguments)
    if refused_by_transformers(case) or not case["messages"]:  # an empty conversation is refused, too
        assert prompt is None
    elif prompt == NO_FROM_JSON:
        assert name == "joyai-llm-flash"
    else:
        case["messages"] = [edited(message) for message in case["messages"]]
        assert prompt == outcome(oracle.render, name, **case)
        assert prompt == outcome(chatformats.get(name).render, **case)


CALLS = [{"function": {"name": "get_time", "arguments": {}}}]
NULL_CONTENT = {"role": "assistant", "content": None, "tool_calls": CALLS}
# The end of the raw template's text and of apply_chat_template's; None is an error.
EDITS: dict[str, tuple[str, list[dict[str, Any]], str | None, str | None]] = {
    "null_content_printed_or_empty": (
        "hebatron",
        [USER | {"content": None}],
        "<|im_start|>user\nNone<|im_end|>\n",
        "<|im_start|>user\n<|im_end|>\n",
    ),
    "null_content_with_tool_calls_refused_or_left_out": (
        "ministral-3",
        [USER, NULL_CONTENT],
        None,
        "[/INST][TOOL_CALLS]get_time[ARGS]{}</s>",
    ),
    "null_tool_calls_refused_or_left_out": (
        "nemotron-nano-v2",
        [USER, ASSISTANT | {"tool_calls": None}],
        None,
        "<think>\nNot much.\n<SPECIAL_12>\n",
    ),
    "null_system_content_printed_or_empty": (
        "joyai-llm-flash",
        [{"role": "system", "content": None}, USER],
        "None<|User|>What's up?",
        "<|User|>What's up?",
    ),
    "other_name_for_reasoning_ignored_or_read": (
        "hebatron",
        [USER, ASSISTANT | {"reasoning": "Hm."}],
        "<think></think>Not much.<|im_end|>\n",
        "<think>\nHm.\n</think>\nNot much.<|im_end|>\n",
    ),
}


@pytest.mark.parametrize(("name", "messages", "raw", "through_transformers"), EDITS.values(), ids=EDITS)
def test_edits_that_show(
    tokenizer: Any,
    name: str,
    messages: list[dict[str, Any]],
    raw: str | None,
    through_transformers: str | None,
) -> None:
    native = outcome(chatformats.get(name).render, messages)
    assert native == outcome(oracle.render, name, messages)
    assert ends_as(native, raw)
    arguments = {**oracle.DEFAULTS.get(name, {}), "chat_template": oracle.source(name)}
    prompt = outcome(tokenizer.apply_chat_template, messages, tokenize=False, **arguments)
    # Releases before 5.23, the newest for Python 3.10 among them, pass the messages on as they are.
    assert ends_as(prompt, through_transformers if VERSION >= (5, 23) else raw)


def ends_as(text: str | None, end: str | None) -> bool:
    return text is end if text is None or end is None else text.endswith(end)
