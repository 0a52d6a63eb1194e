# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What a growing conversation costs.

Three tables: a delta late in a conversation against one early in it; a conversation grown to 1,000 messages,
prompted for after each, against rendering it anew each time; and the token ids of the next prompt, from a
cache, against rendering with Jinja2 and encoding the whole. What is compared is timed in turn, and checked to
be equal first; a figure is the median. Processor time is taken: it is nobody else's.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import chatformats

from .. import oracle
from .workload import TOOLS, conversation

LENGTH = 1_000
EARLY, LATE = 20, 2_000
TURNS = 7
# Prompts of all lengths are rendered anew at this step only; the lengths between lie on a line.
STEP = 100

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in chatformats.names()},
    "hebatron, keeping reasoning": ("hebatron", {"truncate_history_thinking": False}),
}


def messages_of(count: int) -> list[dict[str, Any]]:
    """Return the workload's messages, with a call and its result each round."""
    return conversation(count // 4 + 1, tools=True)[:count]


def delta_costs(name: str, variables: dict[str, Any]) -> dict[str, float]:
    """Return the microseconds of a message appended and its delta, early and late."""
    steps = 40
    make: Any = chatformats.get(name).conversation
    samples: dict[int, list[float]] = {EARLY: [], LATE: []}
    for _ in range(TURNS * 3):
        for length, times in samples.items():
            messages = messages_of(length + steps)
            chat = make(messages[:length], TOOLS, **variables)
            chat.delta(add_generation_prompt=True)
            start = process_time()
            for message in messages[length:]:
                chat.append(message)
                chat.delta(add_generation_prompt=True)
            times.append((process_time() - start) / steps * 1e6)
    return {"early": statistics.median(samples[EARLY]), "late": statistics.median(samples[LATE])}


def growth(name: str, variables: dict[str, Any], tools: Any) -> dict[str, float]:
    """Return the milliseconds of growing to the length, by deltas and by rendering anew."""
    messages = messages_of(LENGTH)
    formatter: Any = chatformats.get(name)
    # An agent's first prompt follows a question: before it, one of the formats has nothing to render.
    lengths = range(2, LENGTH + 1)

    def deltas() -> str:
        chat = formatter.conversation(messages[:1], tools, **variables)
        for message in messages[1:]:
            chat.append(message)
            chat.delta(add_generation_prompt=True)
        text: str = chat.render(add_generation_prompt=True)
        return text

    def native(length: int) -> Any:
        return formatter.render(messages[:length], tools, add_generation_prompt=True, **variables)

    def jinja2(length: int) -> str:
        text: str = oracle.render(name, messages[:length], tools, add_generation_prompt=True, **variables)
        return text

    if not deltas() == native(LENGTH) == jinja2(LENGTH):
        raise SystemExit(f"{name}: the texts differ")

    rendered = range(STEP // 2, LENGTH, STEP)

    def anew(render: Callable[[int], object]) -> None:
        for length in rendered:
            render(length)

    def seconds(run: Callable[[], object], times: int) -> float:
        start = process_time()
        for _ in range(times):
            run()
        return (process_time() - start) / times

    samples: dict[str, list[float]] = {"deltas": [], "native": [], "jinja2": []}
    for _ in range(TURNS):
        samples["deltas"].append(seconds(deltas, 3))
        samples["native"].append(seconds(lambda: anew(native), 10) * len(lengths) / len(rendered))
        samples["jinja2"].append(seconds(lambda: anew(jinja2), 1) * len(lengths) / len(rendered))
    return {way: statistics.median(times) * 1e3 for way, times in samples.items()}


def tokenizer_of(formatter: Any) -> Any:
    """Return a byte-level tokenizer as Llama 3 has it, trained on the workload, or ``None``."""
    try:
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    except ImportError:
        return None
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=4_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([formatter.render(messages_of(40), TOOLS)], trainer)
    tokenizer.add_special_tokens(list(formatter.control_tokens))
    return tokenizer


def next_prompt(name: str) -> dict[str, Any] | None:
    """Return the milliseconds of the next prompt's ids, at 200 messages and with eight tools."""
    formatter: Any = chatformats.get(name)
    tokenizer = tokenizer_of(formatter)
    if tokenizer is None:
        return None
    encoder = chatformats.PromptEncoder(formatter, tokenizer)
    earlier = messages_of(199)
    while earlier[-1]["role"] != "assistant" or "tool_calls" in earlier[-1]:
        earlier.pop()

    chat = formatter.conversation(earlier, TOOLS, segments=True)

    def cached(message: dict[str, Any]) -> list[int]:
        branch = chat.fork()
        branch.append(message)
        return encoder.encode(branch.render_segments(add_generation_prompt=True))

    def whole(message: dict[str, Any]) -> list[int]:
        text = oracle.render(name, [*earlier, message], TOOLS, add_generation_prompt=True)
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    cached({"role": "user", "content": "And now?"})
    times: dict[str, list[float]] = {"cached": [], "whole": []}
    for turn in range(TURNS * 3):
        # Never seen before, as the next message is.
        message = {"role": "user", "content": f"Number {turn}: and what if it snows? " * 5}
        results = []
        for way, ids_of in (("cached", cached), ("whole", whole)):
            start = process_time()
            results.append(ids_of(message))
            times[way].append((process_time() - start) * 1e3)
        if results[0] != results[1]:
            raise SystemExit(f"{name}: the ids differ")
    return {"tokens": len(results[0]), **{way: statistics.median(values) for way, values in times.items()}}


def summary_lines(report: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the ratios as Markdown."""
    lines = [
        f"| | a delta at {LATE:,} messages ÷ at {EARLY} | {LENGTH:,} messages anew ÷ by deltas "
        + "| with Jinja2 ÷ by deltas | next ids, Jinja2 and the whole ÷ the cache |",
        "|---|--:|--:|--:|--:|",
    ]
    tokens = {row["format"]: f"{row['whole'] / row['cached']:.0f}" for row in report["tokens"]}
    for row in report["deltas"]:
        name, costs = row["format"], row["microseconds"]
        growths = [growth["milliseconds"] for growth in report["growth"] if growth["format"] == name]
        columns = [name, f"{costs['late'] / costs['early']:.2f}"]
        for way in ("native", "jinja2"):
            ratios = sorted(times[way] / times["deltas"] for times in growths)
            columns.append(f"{ratios[0]:.0f} to {ratios[-1]:.0f}")
        lines.append(f"| {' | '.join([*columns, tokens.get(name, '')])} |")
    return lines


def run(names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Print the tables as they are measured, and return them."""
    chosen = {title: setting for title, setting in SETTINGS.items() if setting[0] in names}
    report: dict[str, list[dict[str, Any]]] = {"deltas": [], "growth": [], "tokens": []}

    print(f"\n| format | µs a delta at {EARLY} messages | at {LATE:,} | ratio |\n|---|--:|--:|--:|")
    for title, (name, variables) in chosen.items():
        costs = delta_costs(name, variables)
        report["deltas"].append({"format": title, "microseconds": costs})
        early, late = costs["early"], costs["late"]
        print(f"| {title} | {early:.1f} | {late:.1f} | {late / early:.2f} |", flush=True)

    print(
        f"\n| format, grown to {LENGTH:,} messages | tools | ms by deltas | native anew | ratio | Jinja2 anew "
        "| ratio |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for title, (name, variables) in chosen.items():
        for tools in (None, TOOLS):
            row = growth(name, variables, tools)
            report["growth"].append({"format": title, "tools": len(tools or ()), "milliseconds": row})
            print(
                f"| {title} | {len(tools or ()) or 'no'} | {row['deltas']:.1f} | {row['native']:.0f} "
                f"| {row['native'] / row['deltas']:.1f} | {row['jinja2']:.0f} "
                f"| {row['jinja2'] / row['deltas']:.0f} |",
                flush=True,
            )

    print(
        "\n| format, 200 messages and eight tools | tokens | ms from the cache | Jinja2 and the whole | ratio |"
    )
    print("|---|--:|--:|--:|--:|")
    for name in dict.fromkeys(name for name, _ in chosen.values()):
        ids = next_prompt(name)
        if ids is None:
            print("tokenizers is not installed")
            break
        report["tokens"].append({"format": name, **ids})
        print(
            f"| {name} | {ids['tokens']:,} | {ids['cached']:.2f} | {ids['whole']:.1f} "
            f"| {ids['whole'] / ids['cached']:.1f} |",
            flush=True,
        )
    print("", *summary_lines(report), sep="\n")
    return report
