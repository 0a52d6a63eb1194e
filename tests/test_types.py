# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The package is typed, strictly, and says so to those who use it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import chatformats
from chatformats import messages

ROOT = Path(__file__).parent.parent
CONSUMER = ROOT / "tests" / "typing" / "check_public_api.py"


def mypy(*paths: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, paths)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_package_and_a_program_that_uses_it() -> None:
    mypy(ROOT / "chatformats", CONSUMER)


def test_openai_message_types_are_accepted() -> None:
    if importlib.util.find_spec("openai") is None:
        pytest.skip("the OpenAI SDK is not installed (extra: peers)")
    mypy(ROOT / "tests" / "typing" / "check_openai.py")


def test_the_program_uses_every_public_name() -> None:
    program = CONSUMER.read_text(encoding="utf-8")
    assert [name for name in (*chatformats.__all__, *public(messages)) if name not in program] == []


def test_package_tells_checkers_that_it_is_typed() -> None:
    assert (ROOT / "chatformats" / "py.typed").is_file()


def test_message_types_are_read_at_run_time() -> None:
    # Libraries that validate by annotations do so (pydantic, msgspec): a checker would not notice.
    for name in public(messages):
        typed = getattr(messages, name)
        if typing.is_typeddict(typed):
            assert typing.get_type_hints(typed), name


def public(module: object) -> list[str]:
    """Return the names that a module defines for others."""
    imported = {"Literal", "Mapping", "Sequence", "TypedDict"}
    return sorted(name for name in vars(module) if name[0].isupper() and name not in imported)
