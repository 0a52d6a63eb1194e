# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The package works where it is copied: under any name, in any tree, in an archive."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import chatformats

from .cases import USER, conversations

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "chatformats"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# These are for what they import, and are loaded by nothing else: a copy does without them.
OPTIONAL = ("integrations", "testing")
COPIED = [path for path in SOURCES if not path.relative_to(PACKAGE).parts[0].startswith(OPTIONAL)]
HEADER = "# SPDX-License-Identifier: MIT\n# SPDX-FileCopyrightText: The chatformats authors\n"

# Isolated and without site packages (-I -S): an installed chatformats cannot help.
RENDER = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
assert importlib.util.find_spec("chatformats") is None
from thirdparty._vendor import cf
outcomes = []
for name, cases in json.load(sys.stdin).items():
    for case in cases:
        try:
            outcomes.append(cf.get(name).render(**case))
        except cf.ChatFormatError as error:
            outcomes.append(f"{type(error).__name__}: {error}")
json.dump(outcomes, sys.stdout)
assert not any(name.partition(".")[0] == "chatformats" for name in sys.modules)
"""
COMMAND_LINE = """
import runpy, sys
path, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, path)
runpy.run_module("thirdparty._vendor.cf", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(params=["directory", "archive"])
def vendored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy the package under another name; return what to put on the path."""
    tree = tmp_path / "tree"
    target = tree / "thirdparty" / "_vendor" / "cf"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    for package in (tree / "thirdparty", tree / "thirdparty" / "_vendor"):
        (package / "__init__.py").touch()
    if request.param == "directory":
        return tree
    archive = tmp_path / "tree.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(tree.rglob("*")):
            file.write(path, path.relative_to(tree))
    return archive


def run(program: str, *arguments: str, stdin: bytes = b"") -> str:
    command = [sys.executable, "-I", "-S", "-c", program, *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def outcome(name: str, case: dict[str, Any]) -> str:
    try:
        return chatformats.get(name).render(**case)
    except chatformats.ChatFormatError as error:
        return f"{type(error).__name__}: {error}"


def test_copy_under_another_name_renders_the_same(vendored: Path) -> None:
    cases = {name: list(conversations(name).values()) for name in chatformats.names()}
    assert all(cases.values())
    outcomes = json.loads(run(RENDER, str(vendored), stdin=json.dumps(cases).encode()))
    assert outcomes == [outcome(name, case) for name in cases for case in cases[name]]


def test_copy_has_its_command_line(vendored: Path) -> None:
    prompt = run(COMMAND_LINE, str(vendored), "render", "hebatron", stdin=json.dumps([USER]).encode())
    assert prompt == chatformats.get("hebatron").render([USER])


@pytest.mark.parametrize("path", COPIED, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_are_relative_or_of_the_standard_library(path: Path) -> None:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(node.module or "")
        elif isinstance(node, ast.ImportFrom):
            assert {(node.module or "").partition(".")[0], node.names[0].name}.isdisjoint(OPTIONAL)
    # verify.py asks for jinja2 where it is installed, and does without it.
    elsewhere = {"jinja2"} if path.name == "verify.py" else set()
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | elsewhere


def test_every_source_file_names_its_licence() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in [*SOURCES, *(ROOT / "tests").rglob("*.py")]}
    assert [str(path) for path, text in texts.items() if text and not text.startswith(HEADER)] == []
