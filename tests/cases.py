# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The conversations that the tests share, and what is asserted of each.

``tests/conversations/shared`` holds conversations that every format is asked to render, and
``tests/conversations/<format>`` those of one format. Each is a JSON object in the shape of an OpenAI
chat-completions request: ``messages``, and where they matter ``tools``, ``add_generation_prompt``
and ``chat_template_kwargs``.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chatformats import ChatFormatError, ChatFormatter, TemplateRaisedError

from . import oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from syrupy.assertion import SnapshotAssertion

CONVERSATIONS = Path(__file__).parent / "conversations"

USER = {"role": "user", "content": "What's up?"}
ASSISTANT = {"role": "assistant", "content": "Not much."}

# More digits than Python turns into text: neither str() nor JSON takes it.
UNPRINTABLE = 10**5000


def calling(**function: object) -> dict[str, object]:
    """Return an assistant message that calls a function."""
    return {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}


def conversations(name: str) -> dict[str, dict[str, Any]]:
    """Return the arguments of ``render`` for every conversation that a format is asked to render."""
    loaded: dict[str, dict[str, Any]] = {}
    for folder in ("shared", name):
        for path in sorted((CONVERSATIONS / folder).glob("*.json")):
            assert path.stem not in loaded, f"two conversations are named {path.stem}"
            loaded[path.stem] = _arguments(json.loads(path.read_bytes()))
    return loaded


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    variables = request.pop("chat_template_kwargs", {})
    assert request.keys() <= {"messages", "tools", "add_generation_prompt"}
    return {**request, **variables}


def accepted(name: str, refused: Mapping[str, str]) -> pytest.MarkDecorator:
    """Parametrize a test's ``case`` by the conversations that a format renders."""
    cases = {case: kwargs for case, kwargs in conversations(name).items() if case not in refused}
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def refused(name: str, paths: Mapping[str, str]) -> pytest.MarkDecorator:
    """Parametrize a test's ``case`` and ``path`` by the conversations that a format refuses."""
    cases = conversations(name)
    return pytest.mark.parametrize(
        ("case", "path"), [(cases[case], path) for case, path in paths.items()], ids=paths
    )


def check_prompt(formatter: ChatFormatter, case: dict[str, Any], prompt_file: SnapshotAssertion) -> None:
    """Assert that the reference, the stored file and the formatter are one text."""
    prompt = oracle.render(formatter.name, **case)
    assert prompt == prompt_file
    assert native(formatter, **case) == prompt


def check_refusal(formatter: ChatFormatter, case: dict[str, Any], path: str) -> None:
    """Assert that reference and formatter raise, and that the formatter names the place."""
    with pytest.raises(Exception) as reference_info:  # a template may raise anything
        oracle.render(formatter.name, **case)
    with pytest.raises(ChatFormatError) as info:
        native(formatter, **case)
    assert info.value.path == path
    sentence = oracle.raised_sentence(reference_info.value)
    if sentence is None:
        assert type(info.value) is ChatFormatError
    else:
        assert type(info.value) is TemplateRaisedError
        assert info.value.problem == sentence


def native(formatter: ChatFormatter, **case: Any) -> str:
    """Render with a formatter, and assert that it leaves its input alone."""
    before = copy.deepcopy(case)
    try:
        return formatter.render(**case)
    finally:
        assert case == before


def both(formatter: ChatFormatter, *messages: object, **case: Any) -> str:
    """Return what the reference makes of some messages, once the formatter makes the same of them."""
    prompt = oracle.render(formatter.name, messages=list(messages), **case)
    assert native(formatter, messages=list(messages), **case) == prompt
    return prompt
