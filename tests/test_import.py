# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What an import loads: counted in modules, which is what takes the time, and is the same every time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import chatformats

ROOT = Path(__file__).parent.parent
MODULES = {name: type(chatformats.get(name)).__module__ for name in chatformats.names()}
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
exec(sys.argv[2])
loaded = sorted(set(sys.modules) - before)
import json
print(json.dumps(loaded))
"""


def loaded(statement: str) -> set[str]:
    """Return the modules that a statement loads in an interpreter that has only started."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(ROOT), statement]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def formatters(modules: set[str]) -> set[str]:
    return modules & set(MODULES.values())


def test_package_loads_a_few_small_modules_and_no_formatter() -> None:
    parts = {
        "chatformats",
        "chatformats.control_tokens",
        "chatformats.errors",
        "chatformats.formatter",
        "chatformats.registry",
        "chatformats.undefined",
    }
    # No typing, json, re or collections.abc: any one would take longer than all of these.
    assert loaded("import chatformats") == parts | {"__future__"}


def test_names_load_no_formatter() -> None:
    assert formatters(loaded("import chatformats; chatformats.names()")) == set()


@pytest.mark.parametrize("name", MODULES)
def test_get_loads_one_formatter(name: str) -> None:
    modules = loaded(f"import chatformats; chatformats.get({name!r})")
    assert formatters(modules) == {MODULES[name]}
    assert "typing" not in modules


@pytest.mark.parametrize("name", MODULES)
def test_formatter_loads_no_other(name: str) -> None:
    modules = loaded(f"import {MODULES[name]}")
    assert formatters(modules) == {MODULES[name]}
    assert modules.isdisjoint({"typing", "chatformats.messages", "chatformats.cli"})
