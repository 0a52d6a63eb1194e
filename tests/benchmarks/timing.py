# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""How the benchmarks measure: in turn, in one process, medians; and on what machine."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from time import perf_counter_ns

# What one sample takes at least: the clock's steps disappear in it, and few samples are interrupted.
SAMPLE_NS = 500_000


def sample(run: Callable[[], object], loops: int) -> int:
    """Return the nanoseconds of so many runs."""
    start = perf_counter_ns()
    for _ in range(loops):
        run()
    return perf_counter_ns() - start


def measure(runs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the microseconds of each run: the median of samples taken in turn.

    So a slow second of the machine slows all of them.
    """
    loops = dict.fromkeys(runs, 1)
    for name, run in runs.items():
        # The best of three: one that was interrupted would leave this one with too few loops.
        while min(sample(run, loops[name]) for _ in range(3)) < SAMPLE_NS:
            loops[name] *= 2
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            samples[name].append(sample(run, loops[name]) / loops[name] / 1000)
    return {name: statistics.median(values) for name, values in samples.items()}


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return what times are multiplied by on the whole."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def machine() -> str:
    """Describe the processor, the interpreter and what is compared with."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = models[0].partition(":")[2].strip() if models else processor
    versions = [f"{platform.python_implementation()} {platform.python_version()}"]
    for package in ("jinja2", "transformers", "minijinja", "mistral-common"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    if hasattr(os, "getloadavg"):  # not on Windows; on a busy machine the figures are worth little
        versions.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return ", ".join([f"{processor} ({platform.system()} {platform.machine()})", *versions])
