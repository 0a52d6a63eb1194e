# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The stored conversations take every way through every template, or it is said why they cannot."""

from __future__ import annotations

from typing import Any, Final

import pytest

from . import oracle
from .cases import conversations

_TOOLS: Final = "`tools` is always passed, None where there are none"
_LENGTH: Final = "the length was tested before the loop"
_IDENTITY: Final = "the identity makes a system message, never empty, of whatever was passed"
_THOUGHT: Final = "a content that is a string has a think tag by now, and is not blank"
_CONTENT: Final = "an empty content was replaced when it was read"
_SET: Final = "the template has set it itself"

# The ways that no conversation takes, each with the reason.
UNREACHED: Final[dict[str, dict[str, str]]] = {
    "glm4-tools": {
        "line 2, test 1: false": _TOOLS,
    },
    "hebatron": {
        "line 54, test 1: false": _TOOLS,
        "line 66, test 1: false": _IDENTITY,
        "line 69, test 1: false": _IDENTITY,
        "line 69, test 1: true": _IDENTITY,
        "line 69, test 2: false": _IDENTITY,
        "line 69, test 2: true": _IDENTITY,
        "line 75, test 1: false": _IDENTITY,
        "line 75, test 2: false": _IDENTITY,
        "line 80, loop 1: empty": _LENGTH,
        "line 121, test 1: false": _IDENTITY,
        "line 124, test 1: false": _IDENTITY,
        "line 124, test 1: true": _IDENTITY,
        "line 124, test 2: false": _IDENTITY,
        "line 124, test 2: true": _IDENTITY,
        "line 150, test 2: false": _THOUGHT,
        "line 158, test 1: false": _THOUGHT,
        "line 163, test 1: false": "the text begins with a pair of think tags",
        "line 171, loop 1: empty": _LENGTH,
        "line 190, test 1: false": _CONTENT,
        "line 192, test 1: false": _CONTENT,
        "line 197, test 1: false": _THOUGHT,
    },
    "joyai-llm-flash": {
        "line 13, test 1: false": "`add_generation_prompt` is always passed",
        "line 34, loop 1: empty": _LENGTH,
    },
    "ministral-3": {
        "line 26, test 1: false": "the default system message is a constant",
        "line 35, test 1: false": _TOOLS,
        "line 66, loop 1: empty": _LENGTH,
        "line 89, loop 1: empty": _LENGTH,
        "line 99, loop 1: empty": _LENGTH,
    },
    "nemotron-nano-v2": {
        "line 24, test 1: false": _SET,
        "line 32, loop 1: empty": "tools that are true have elements",
        "line 90, loop 1: empty": "tool calls that are true have elements",
        "line 111, test 1: false": _SET,
        "line 124, test 1: false": _SET,
        "line 147, loop 1: empty": _LENGTH,
    },
}


@pytest.mark.parametrize("name", oracle.NAMES)
def test_conversations_take_every_branch(name: str) -> None:
    trace = oracle.BranchTrace(name)
    for case in conversations(name).values():
        assert _outcome(trace.render, case) == _outcome(lambda **case: oracle.render(name, **case), case)
    lines = oracle.source(name).splitlines()
    unreached = {
        branch: lines[int(branch.split(",")[0].removeprefix("line ")) - 1].strip()
        for branch in trace.possible - trace.taken
    }
    assert unreached.keys() - UNREACHED[name].keys() == set(), unreached
    assert UNREACHED[name].keys() - unreached.keys() == set(), "listed, but reached"


def _outcome(render: Any, case: dict[str, Any]) -> object:
    # The trace must not change what it looks at.
    try:
        return render(**case)
    except Exception as error:  # noqa: BLE001  # a template may raise anything
        return type(error), str(error)
