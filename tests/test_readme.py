# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The README's commands and examples, run as they are pasted."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import chatformats
from chatformats import registry

from . import cases, oracle

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_examples_run_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # One of them registers a format.
    monkeypatch.setattr(registry, "_REGISTERED", {})
    names: dict[str, object] = {}
    for block in _blocks("python"):
        exec(block, names)  # noqa: S102  # to run them is the point


def test_first_command_prints_the_reference() -> None:
    command = shlex.split(_blocks("sh")[0])
    assert command[0] == "python3"
    run = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True, check=True)
    name, file = command[-2:]
    assert Path(file).parent == Path("tests/conversations/shared")
    case = cases.conversations(name)[Path(file).stem]
    assert run.stdout.decode() == oracle.render(name, **case)


@pytest.mark.parametrize("name", chatformats.names())
def test_table_of_formats_says_what_the_code_says(name: str) -> None:
    fmt = chatformats.get(name)
    (row,) = re.findall(rf"^\| `{name}` \| `{type(fmt).__name__}` \|.*$", README, re.MULTILINE)
    for variable in fmt.variables:
        assert f"`{variable}=" in row
