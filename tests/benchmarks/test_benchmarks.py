# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The benchmark runs and what it times is equal; how fast anything is, is nowhere asserted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import chatformats

from . import __main__ as benchmark


def test_table_has_every_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--repeats", "1", "--json", str(tmp_path / "table.json")])
    monkeypatch.setattr(benchmark, "SAMPLE_NS", 0)
    benchmark.main()
    report = json.loads((tmp_path / "table.json").read_bytes())
    cells = {(row["format"], row["rounds"], row["tools"]) for row in report["rows"]}
    assert cells == {
        (name, rounds, tools) for name in chatformats.names() for rounds in (1, 10, 50) for tools in (0, 8)
    }
    assert not any(row["faults"] for row in report["rows"])
    assert capsys.readouterr().out.count("\n| ") == 30 + 2 + len(report["summary"])
