# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Print what renders and growing conversations cost: ``python -m tests.benchmarks [--write] [NAME …]``.

With ``--write`` the figures go to ``results.json`` beside this file as well, and a chart of them to
``results.svg``: the README shows both.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import chatformats

from . import growing, rendering
from .timing import machine

RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="formats to time; all if none is named")
    parser.add_argument("--repeats", type=int, default=21, help="turns that a median is taken over (21)")
    parser.add_argument("--write", action="store_true", help="write results.json and results.svg")
    options = parser.parse_args()
    names = options.names or chatformats.names()

    described = machine()
    print(described)
    report = {
        "machine": described,
        "rendering": rendering.run(names, options.repeats),
        "growing": growing.run(names),
    }
    if options.write:
        from . import chart

        RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        chart.draw(report, RESULTS.with_suffix(".svg"))


if __name__ == "__main__":
    main()
