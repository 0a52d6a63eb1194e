# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The references are the files that their README lists, to the byte."""

from __future__ import annotations

import hashlib
import re

import chatformats

from .oracle import NAMES, REFERENCE


def test_references_have_not_changed() -> None:
    readme = (REFERENCE / "README.md").read_text(encoding="utf-8")
    listed = {file: digest for digest, file in re.findall(r"^([0-9a-f]{64})  (\S+)$", readme, re.MULTILINE)}
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in REFERENCE.iterdir()
        if path.name != "README.md"
    }
    assert found == listed


def test_every_format_has_its_reference() -> None:
    assert {path.name for path in REFERENCE.glob("*.jinja")} == {f"{name}.jinja" for name in NAMES}
    assert chatformats.names() == NAMES
