# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Print the speed table: ``python -m tests.benchmarks [--repeats N] [--json FILE] [NAME …]``.

Each format against the same template under Jinja2 and under minijinja, both compiled and warm, in one
process. The three are timed in turn, so that a slow second of the machine slows all of them; a figure is
the median over the turns. Outputs are compared first: what differs is not timed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import chatformats

from .. import oracle
from .workload import TOOLS, conversation

ROUNDS = (1, 10, 50)
# What one sample takes at least: the clock's steps disappear in it, and few samples are interrupted.
SAMPLE_NS = 500_000

Render = Callable[[], str]


def minijinja_environment() -> Any | None:
    """Return minijinja's environment, set up as the reference's; ``None`` if it is not installed."""
    try:
        import minijinja
    except ImportError:
        return None

    def raise_exception(message: str) -> None:
        raise ValueError(message)

    def tojson(value: object, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    env = minijinja.Environment(trim_blocks=True, lstrip_blocks=True, pycompat=True)
    env.add_filter("tojson", tojson)  # minijinja's own escapes HTML
    env.add_filter("from_json", json.loads)
    env.add_global("raise_exception", raise_exception)
    for name in oracle.NAMES:
        env.add_template(name, oracle.source(name))
    return env


def engines(name: str, rounds: int, tools: bool, minijinja: Any | None) -> dict[str, Render]:
    """Return what is timed, for one cell of the table."""
    messages = conversation(rounds, tools=tools)
    definitions = TOOLS if tools else None
    formatter = chatformats.get(name)
    template = oracle.template(name)
    context: dict[str, Any] = {
        "messages": messages,
        "add_generation_prompt": True,
        **oracle.DEFAULTS.get(name, {}),
    }
    renders: dict[str, Render] = {
        "native": lambda: formatter.render(messages, definitions, add_generation_prompt=True),
        "jinja2": lambda: template.render(tools=definitions, **context),
    }
    if minijinja is not None:
        # minijinja takes None for iterable: without tools the variable is left out.
        variables = context | {"tools": definitions} if tools else context
        renders["minijinja"] = lambda: minijinja.render_template(name, **variables)
    return renders


def fault(render: Render, expected: str) -> str | None:
    """Say what is wrong with an engine's output, if anything."""
    try:
        return None if render() == expected else "differs"
    except Exception as error:  # noqa: BLE001  # an engine may raise what it likes
        return f"raises {type(error).__name__}"


def sample(render: Render, loops: int) -> int:
    """Return the nanoseconds of so many renders."""
    start = perf_counter_ns()
    for _ in range(loops):
        render()
    return perf_counter_ns() - start


def measure(renders: dict[str, Render], repeats: int) -> dict[str, float]:
    """Return each engine's microseconds a render, from samples taken in turn."""
    loops = {engine: 1 for engine in renders}
    for engine, render in renders.items():
        # The best of three: one that was interrupted would leave the engine with too few loops.
        while min(sample(render, loops[engine]) for _ in range(3)) < SAMPLE_NS:
            loops[engine] *= 2
    samples: dict[str, list[float]] = {engine: [] for engine in renders}
    for _ in range(repeats):
        for engine, render in renders.items():
            samples[engine].append(sample(render, loops[engine]) / loops[engine] / 1000)
    return {engine: statistics.median(values) for engine, values in samples.items()}


def cell(name: str, rounds: int, tools: bool, minijinja: Any | None, repeats: int) -> dict[str, Any]:
    """Return one row of the table."""
    renders = engines(name, rounds, tools, minijinja)
    expected = renders["jinja2"]()
    faults = {engine: what for engine, render in renders.items() if (what := fault(render, expected))}
    if "native" in faults:
        raise SystemExit(f"{name}, {rounds} rounds, tools {tools}: the native text {faults['native']}")
    sound = {engine: render for engine, render in renders.items() if engine not in faults}
    row = {"format": name, "rounds": rounds, "tools": len(TOOLS) if tools else 0, "characters": len(expected)}
    return {**row, "microseconds": measure(sound, repeats), "faults": faults}


def ratio(row: dict[str, Any], engine: str) -> float | None:
    times: dict[str, float] = row["microseconds"]
    return times[engine] / times["native"] if engine in times else None


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometric mean and the worst of the ratios, without and with tools."""
    result = []
    for tools in (0, len(TOOLS)):
        for engine in ("jinja2", "minijinja"):
            chosen = [(r, row) for row in rows if row["tools"] == tools and (r := ratio(row, engine))]
            if chosen:
                worst, where = min(chosen, key=lambda pair: pair[0])
                mean = math.exp(statistics.fmean(math.log(r) for r, _ in chosen))
                place = f"{where['format']}, rounds {where['rounds']}"
                entry = {"tools": tools, "engine": engine, "mean": mean, "worst": worst}
                result.append({**entry, "worst_at": place})
    return result


def machine() -> str:
    """Describe the processor, the interpreter and the engines."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = models[0].partition(":")[2].strip() if models else processor
    versions = [f"{platform.python_implementation()} {platform.python_version()}"]
    for package in ("jinja2", "minijinja"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    if hasattr(os, "getloadavg"):  # not on Windows; on a busy machine the table is worth little
        versions.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return ", ".join([f"{processor} ({platform.system()} {platform.machine()})", *versions])


def line(row: dict[str, Any]) -> str:
    """Return a row as Markdown."""
    columns = [row["format"], str(row["rounds"]), str(row["tools"] or "no")]
    columns.append(f"{row['microseconds']['native']:.1f}")
    for engine in ("jinja2", "minijinja"):
        found = ratio(row, engine)
        columns.append(
            f"{row['microseconds'][engine]:.1f} | {found:.1f}"
            if found
            else f"{row['faults'].get(engine, 'not installed')} |"
        )
    return f"| {' | '.join(columns)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="formats to time; all if none is named")
    parser.add_argument("--repeats", type=int, default=51, help="turns that a median is taken over (51)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file as well")
    options = parser.parse_args()

    minijinja = minijinja_environment()
    print(machine())
    print("\n| format | rounds | tools | native µs | Jinja2 µs | ratio | minijinja µs | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    rows = []
    for tools in (False, True):
        for name in options.names or chatformats.names():
            for rounds in ROUNDS:
                rows.append(cell(name, rounds, tools, minijinja, options.repeats))
                print(line(rows[-1]), flush=True)
    print("\n| tools | against | geometric mean | worst | at |\n|--:|---|--:|--:|---|")
    for entry in summary(rows):
        figures = f"{entry['mean']:.1f} | {entry['worst']:.1f} | {entry['worst_at']}"
        print(f"| {entry['tools'] or 'no'} | {entry['engine']} | {figures} |")
    if options.json:
        report = {"machine": machine(), "rows": rows, "summary": summary(rows)}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
