# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The benchmarks run, and what they time is equal; how fast anything is, is nowhere asserted."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import chatformats

from . import __main__ as benchmarks
from . import growing, rendering, timing

ROOT = Path(__file__).parents[2]
FORMATS = chatformats.names()


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Return what the benchmarks find, run on little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "SAMPLE_NS", 0)
        patch.setattr(rendering, "ROUNDS", (1, 3))
        for name, value in {"LENGTH": 12, "STEP": 4, "TURNS": 1, "LATE": 40}.items():
            patch.setattr(growing, name, value)
        return {"machine": "", "rendering": rendering.run(FORMATS, 1), "growing": growing.run(FORMATS)}


def test_rendering_has_every_cell(report: dict[str, Any]) -> None:
    rows = report["rendering"]["rows"]
    cells = [(row["text"], row["tools"], row["format"], row["rounds"]) for row in rows]
    assert cells == [*itertools.product(rendering.TEXTS, rendering.KINDS_OF_TOOLS, FORMATS, (1, 3))]
    faults = {(row["format"], *fault) for row in rows for fault in row["faults"].items()}
    assert {fault for fault in faults if fault[2] != "not installed"} == set()
    for row in rows:
        engines = {"native", *rendering.ENGINES} - set(row["faults"])
        if row["format"] != "ministral-3":
            engines.remove("mistral-common")
        assert set(row["microseconds"]) == engines


def test_summary_is_of_the_cells(report: dict[str, Any]) -> None:
    rows = report["rendering"]["rows"]
    for entry in report["rendering"]["summary"]:
        chosen = [row for row in rows if (row["text"], row["tools"]) == (entry["text"], entry["tools"])]
        times = [row["microseconds"] for row in chosen if entry["engine"] in row["microseconds"]]
        ratios = sorted(each[entry["engine"]] / each["native"] for each in times)
        assert entry["worst"] == ratios[0]
        assert ratios[0] <= entry["mean"] <= ratios[-1]


def test_growing_has_every_format(report: dict[str, Any]) -> None:
    found = report["growing"]
    assert [row["format"] for row in found["deltas"]] == list(growing.SETTINGS)
    settings = itertools.product(growing.SETTINGS, (0, 8))
    assert [(row["format"], row["tools"]) for row in found["growth"]] == [*settings]


def test_chart_is_the_same_for_the_same_figures(report: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: peers)")
    from . import chart

    charts = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in charts:
        chart.draw(report, path)
    assert charts[0].read_bytes() == charts[1].read_bytes()
    drawn = "".join(ElementTree.parse(charts[0]).getroot().itertext())
    for name in (*FORMATS, *rendering.ENGINES.values()):
        assert name in drawn


def test_command_writes_figures_and_chart(
    report: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: peers)")
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(rendering, "run", lambda names, repeats: report["rendering"])
    monkeypatch.setattr(growing, "run", lambda names: report["growing"])
    for arguments, files in (([], []), (["--write"], ["results.json", "results.svg"])):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        benchmarks.main()
        assert sorted(path.name for path in tmp_path.iterdir()) == files
    written = json.loads((tmp_path / "results.json").read_bytes())
    assert written == {**report, "machine": written["machine"]}


def test_readme_has_the_figures_that_were_measured() -> None:
    report = json.loads(benchmarks.RESULTS.read_bytes())
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert report["machine"] in readme
    assert "\n".join(rendering.summary_lines(report["rendering"]["summary"])) in readme
    assert "\n".join(growing.summary_lines(report["growing"])) in readme
    chart = benchmarks.RESULTS.with_suffix(".svg")
    assert chart.exists()
    assert f"({chart.relative_to(ROOT).as_posix()})" in readme
