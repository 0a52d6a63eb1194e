# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A chart of the benchmarks' figures, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .rendering import ENGINES, KINDS_OF_TOOLS, ratio
from .timing import geometric_mean

COLOURS = {
    "native": "#5a5a5a",
    "minijinja": "#d98e04",
    "jinja2": "#b3362d",
    "transformers": "#7b3f94",
    "mistral-common": "#2f6db3",
}
# One format's bars, the shortest first.
ORDER = ("minijinja", "jinja2", "transformers", "mistral-common")


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw times as multiples of ours: renders without and with tools, and growing conversations."""
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    matplotlib.use("svg")
    # The same figures make the same file; text stays text.
    style: dict[Any, Any] = {
        "svg.hashsalt": "chatformats",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.axisbelow": True,
    }
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(1, 3, figsize=(11, 4.6), layout="constrained", sharey=True)
        rows = report["rendering"]["rows"]
        formats = list(dict.fromkeys(row["format"] for row in rows))
        for plot, kind, title in zip(
            axes, KINDS_OF_TOOLS[:2], ("render, no tools", "render, eight tools"), strict=False
        ):
            bars(plot, formats, ORDER, lambda name, engine, kind=kind: ratios_of(rows, name, kind, engine))
            plot.set_title(title)
        bars(axes[2], formats, ("native", "jinja2"), lambda name, way: growth_of(report, name, way))
        axes[2].set_title("grown to 1,000 messages, by deltas")

        for plot in axes:
            plot.set_xscale("log")
            plot.set_xlim(left=1)
            plot.set_xticks([1, 3, 10, 30, 100, 300])
            plot.minorticks_off()
            plot.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
            plot.grid(axis="x", color="#dddddd")
            for side in ("top", "right", "left"):
                plot.spines[side].set_visible(False)
            plot.tick_params(axis="y", length=0)
        axes[0].set_yticks(range(len(formats)), formats)
        axes[0].invert_yaxis()
        names = {"native": "chatformats, anew", **ENGINES}
        legend = [Patch(color=colour, label=names[key]) for key, colour in COLOURS.items()]
        figure.legend(handles=legend, loc="outside lower center", ncols=5)
        figure.suptitle(
            "Times as long as chatformats: geometric mean, least and most, over rounds and lengths of text"
        )
        figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")
        pyplot.close(figure)
    # matplotlib leaves white space at the ends of lines.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")


def ratios_of(rows: list[dict[str, Any]], name: str, kind: str, engine: str) -> list[float]:
    return [
        found
        for row in rows
        if row["format"] == name and row["tools"] == kind and (found := ratio(row, engine))
    ]


def growth_of(report: dict[str, Any], name: str, way: str) -> list[float]:
    return [
        row["milliseconds"][way] / row["milliseconds"]["deltas"]
        for row in report["growing"]["growth"]
        if row["format"] == name
    ]


def bars(plot: Any, formats: list[str], keys: tuple[str, ...], ratios_for: Any) -> None:
    """Draw a bar for each format and key that there are ratios for, with a line from least to most."""
    for position, name in enumerate(formats):
        found = {key: ratios for key in keys if (ratios := ratios_for(name, key))}
        height = 0.8 / max(len(found), 1)
        for number, (key, ratios) in enumerate(found.items()):
            mean = geometric_mean(ratios)
            place = position + (number - (len(found) - 1) / 2) * height
            plot.barh(place, mean, height * 0.9, color=COLOURS[key])
            plot.plot([min(ratios), max(ratios)], [place, place], color="black", linewidth=0.8)
            plot.annotate(
                f"{mean:.0f}" if mean >= 9.5 else f"{mean:.1f}",
                (max(mean, *ratios), place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
