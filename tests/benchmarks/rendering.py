# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What a render costs: each format against the same template under the engines that run templates.

Jinja2 and minijinja (Rust) are compiled and warm, transformers renders through a tokenizer's
``apply_chat_template(tokenize=False)``. mistral-common has no text to compare with: it goes from a request
to token ids, and is timed with a tokenizer that tokenizes nothing, so that what is left is what a template
does. Outputs are compared first: what differs is not timed.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import chatformats

from .. import oracle
from ..peers import mistral
from .timing import geometric_mean, measure
from .workload import TOOLS, conversation

ROUNDS = (1, 10, 50, 250)
ENGINES = {
    "jinja2": "Jinja2",
    "transformers": "transformers",
    "minijinja": "minijinja",
    "mistral-common": "mistral-common",
}
# Tools that come again are remembered: the last kind has another description at each render.
KINDS_OF_TOOLS = ("no", "8", "8, each time others")
TEXTS = ("short", "long")
# No two of all renders have the same.
NUMBERS = itertools.count()

Render = Callable[[], str]
Row = dict[str, Any]


def jinja2(name: str, context: dict[str, Any]) -> Render:
    template = oracle.template(name)
    return lambda: template.render(context)


def transformers(name: str, context: dict[str, Any]) -> Render:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()),
        chat_template=oracle.source(name),
        **oracle.DEFAULTS.get(name, {}),
    )
    messages, tools = context["messages"], context["tools"]
    return lambda: tokenizer.apply_chat_template(
        messages, tools=tools, tokenize=False, add_generation_prompt=True
    )


def minijinja(name: str, context: dict[str, Any]) -> Render:
    from minijinja import Environment

    def raise_exception(message: str) -> None:
        raise ValueError(message)

    def tojson(value: object, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    env: Any = Environment(trim_blocks=True, lstrip_blocks=True, pycompat=True)
    env.add_filter("tojson", tojson)  # minijinja's own escapes HTML
    env.add_filter("from_json", json.loads)
    env.add_global("raise_exception", raise_exception)
    env.add_template(name, oracle.source(name))
    # It takes None for iterable: without tools the variable is left out.
    variables = {key: value for key, value in context.items() if value is not None}
    return lambda: env.render_template(name, **variables)


def mistral_common(name: str, context: dict[str, Any]) -> Render | None:
    if name != "ministral-3":
        return None
    messages, tools = context["messages"], context["tools"]
    tokenizer = mistral.mistral_tokenizer()
    text = mistral.decode(tokenizer.encode_chat_completion(mistral.request(messages, tools)).tokens)
    tokenizes_nothing = mistral.mistral_tokenizer(mistral.tekken_of_nothing)

    def run() -> str:
        tokenizes_nothing.encode_chat_completion(mistral.request(messages, tools))
        return text

    return run


PEERS: dict[str, Callable[[str, dict[str, Any]], Render | None]] = {
    "jinja2": jinja2,
    "transformers": transformers,
    "minijinja": minijinja,
    "mistral-common": mistral_common,
}


def renew(run: Render, tools: list[dict[str, Any]]) -> Render:
    """Return what runs with tools that were never seen before."""
    function = tools[0]["function"]

    def renewed() -> str:
        function["description"] = f"Get the forecast for a city, as of minute {next(NUMBERS)}."
        return run()

    return renewed


def measured(name: str, rounds: int, kind: str, text: str, repeats: int) -> Row:
    """Return one row of the table: the microseconds of each engine."""
    tools = None if kind == "no" else copy.deepcopy(TOOLS)
    messages = conversation(rounds, tools=tools is not None, long=text == "long")
    formatter = chatformats.get(name)
    context = {
        "messages": messages,
        "tools": tools,
        "add_generation_prompt": True,
        **oracle.DEFAULTS.get(name, {}),
    }
    renders: dict[str, Render] = {
        "native": lambda: formatter.render(messages, tools, add_generation_prompt=True)
    }
    expected = oracle.template(name).render(context)
    if renders["native"]() != expected:
        raise SystemExit(f"{name}, {rounds} rounds, tools {kind}: the native text differs")
    faults = {}
    for engine, make in PEERS.items():
        try:
            render = make(name, context)
            if render is None:
                continue
            if render() == expected:
                renders[engine] = render
            else:
                faults[engine] = "differs"
        except ImportError:
            faults[engine] = "not installed"
        except Exception as error:  # noqa: BLE001  # an engine may raise what it likes
            faults[engine] = f"raises {type(error).__name__}"
    if kind == KINDS_OF_TOOLS[2] and tools:
        renders = {engine: renew(render, tools) for engine, render in renders.items()}
    row = {"format": name, "text": text, "tools": kind, "rounds": rounds, "characters": len(expected)}
    return {**row, "microseconds": measure(renders, repeats), "faults": faults}


def ratio(row: Row, engine: str) -> float | None:
    """Return how many times as long an engine takes as we do."""
    times: dict[str, float] = row["microseconds"]
    return times[engine] / times["native"] if engine in times else None


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return the geometric mean and the least of the ratios, for each kind of text and tools and engine."""
    result = []
    for text, kind, engine in itertools.product(TEXTS, KINDS_OF_TOOLS, ENGINES):
        cells = [row for row in rows if row["text"] == text and row["tools"] == kind]
        ratios = [(found, row) for row in cells if (found := ratio(row, engine))]
        if ratios:
            worst, where = min(ratios, key=lambda pair: pair[0])
            entry: Row = {"text": text, "tools": kind, "engine": engine}
            entry |= {"mean": geometric_mean(found for found, _ in ratios), "worst": worst}
            result.append({**entry, "worst_at": {key: where[key] for key in ("format", "rounds")}})
    return result


def summary_lines(entries: Sequence[Row]) -> list[str]:
    """Return the summary as Markdown."""
    lines = [f"| text | tools | {' | '.join(ENGINES.values())} |", f"|---|---|{'--:|' * len(ENGINES)}"]
    for text, kind in itertools.product(TEXTS, KINDS_OF_TOOLS):
        figures = {
            entry["engine"]: f"{entry['mean']:.1f} ({entry['worst']:.1f})"
            for entry in entries
            if entry["text"] == text and entry["tools"] == kind
        }
        lines.append(f"| {text} | {kind} | {' | '.join(figures.get(engine, '') for engine in ENGINES)} |")
    return lines


def line(row: Row) -> str:
    """Return a row as Markdown."""
    columns = [row["format"], row["text"], row["tools"], str(row["rounds"]), f"{row['characters']:,}"]
    columns.append(f"{row['microseconds']['native']:.1f}")
    for engine in ENGINES:
        found = ratio(row, engine)
        columns.append(f"{found:.1f}" if found else row["faults"].get(engine, ""))
    return f"| {' | '.join(columns)} |"


def run(names: Sequence[str], repeats: int) -> Row:
    """Print the table as it is measured, and return it."""
    print(f"\n| format | text | tools | rounds | characters | native µs | {' | '.join(ENGINES.values())} |")
    print(f"|---|---|---|--:|--:|--:|{'--:|' * len(ENGINES)}")
    rows = []
    for text, kind, name, rounds in itertools.product(TEXTS, KINDS_OF_TOOLS, names, ROUNDS):
        rows.append(measured(name, rounds, kind, text, repeats))
        print(line(rows[-1]), flush=True)
    entries = summary(rows)
    print("", *summary_lines(entries), sep="\n")
    return {"rows": rows, "summary": entries}
