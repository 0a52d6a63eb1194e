# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Print the speed of parsing: ``python -m tests.benchmarks.parsing [--repeats N]``.

Completions of some thousand characters, whole and streamed four characters at a time (a token, about),
each by this package and by the peers that are installed: SGLang's parsers (llm-router-utils) and
transformers' response parsing. All are timed in turn in one process; a figure is the median. Then the growth:
time a character, fed one at a time, of 1 MB against 10 kB.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter_ns
from typing import Any

import chatformats

from ..parsers.reading import tool
from .timing import measure

CHUNK = 4
TOOLS = [tool("write_file", path={"type": "string"}, content={"type": "string"}, mode={"type": "integer"})]
CODE = (
    'def greet(name: str) -> str:\n    """Say hi."""\n    return f"Hello, {name}!" if name < "x" else "-"\n'
    * 20
)
THOUGHT = "The user wants a file, so I write it; first I think about its name. " * 10
ANSWER = "I write the file now."
JSON = (CODE.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"),)
COMPLETIONS = {
    "hebatron": f"<think>\n{THOUGHT}\n</think>\n{ANSWER}\n<tool_call>\n<function=write_file>\n<parameter=path>\n"
    f"greet.py\n</parameter>\n<parameter=content>\n{CODE}\n</parameter>\n<parameter=mode>\n420\n</parameter>\n"
    "</function>\n</tool_call>",
    "glm4-tools": f"<think>{THOUGHT}</think>\n{ANSWER}\n<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>"
    f"greet.py</arg_value>\n<arg_key>content</arg_key>\n<arg_value>{CODE}</arg_value>\n<arg_key>mode</arg_key>\n"
    "<arg_value>420</arg_value>\n</tool_call>",
    "ministral-3": f"[THINK]{THOUGHT}[/THINK]{ANSWER}[TOOL_CALLS]write_file[ARGS]"
    f'{{"path": "greet.py", "content": "{JSON[0]}", "mode": 420}}',
    "nemotron-nano-v2": f"<think>\n{THOUGHT}\n</think>\n{ANSWER}\n<TOOLCALL>"
    f'[{{"name": "write_file", "arguments": {{"path": "greet.py", "content": "{JSON[0]}", "mode": 420}}}}]</TOOLCALL>',
    "joyai-llm-flash": f"{ANSWER}\n<tool_call>\n<function=write_file>\n<parameter=path>\ngreet.py\n</parameter>\n"
    f"<parameter=content>\n{CODE}\n</parameter>\n</function>\n</tool_call>",
}
SGLANG = {
    "hebatron": ("qwen3", "qwen3_coder"),
    "glm4-tools": ("glm45", "glm45"),
    "ministral-3": ("mistral",) * 2,
}
Read = Callable[[list[str]], object]


def native(name: str) -> Read:
    fmt = chatformats.get(name)

    def read(chunks: list[str]) -> object:
        parser = fmt.parser(None, TOOLS)
        for chunk in chunks:
            parser.feed(chunk)
        return [(call.name, call.arguments) for call in parser.close().tool_calls]

    return read


def sglang(name: str) -> Read | None:
    try:
        package = "llm_router_utils.sglang.srt"
        calling: Any = importlib.import_module(f"{package}.function_call.function_call_parser")
        thinking: Any = importlib.import_module(f"{package}.parser.reasoning_parser")
        protocol: Any = importlib.import_module(f"{package}.entrypoints.openai.protocol")
    except ImportError:
        return None
    thinker, caller = SGLANG[name]
    tools = [protocol.Tool(**definition) for definition in TOOLS]

    def read(chunks: list[str]) -> object:
        import json

        reasoner = thinking.ReasoningParser(thinker)
        parser = calling.FunctionCallParser(tools, caller)
        if len(chunks) == 1:
            _, text = reasoner.parse_non_stream(chunks[0])
            _, found = parser.parse_non_stream(text)
            return [(call.name, json.loads(call.parameters)) for call in found]
        called, arguments = "", ""
        for chunk in chunks:
            _, text = reasoner.parse_stream_chunk(chunk)
            if text:
                for item in parser.parse_stream_chunk(text)[1]:
                    called = item.name or called
                    arguments += item.parameters or ""
        return [(called, json.loads(arguments))]

    return read


def transformers(name: str) -> Read | None:
    if name != "hebatron":
        return None
    try:
        parsing: Any = importlib.import_module("transformers.utils.chat_parsing")
        serving: Any = importlib.import_module("transformers.cli.serving.utils")
    except ImportError:
        return None
    templates = serving._RESPONSE_TEMPLATE_FALLBACKS
    template = next(spec for models, spec in templates.items() if "qwen3_5" in models)

    def read(chunks: list[str]) -> object:
        parser = parsing.ResponseParser(template, prefix="<|im_start|>assistant\n", tools=TOOLS)
        for chunk in chunks:
            parser.feed(chunk)
        message, _ = parser.finalize()
        return [(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]]

    return read


def growth(name: str) -> tuple[float, float]:
    """Return the microseconds a character of 10 kB and of 1 MB, in single characters: medians of five."""
    start = COMPLETIONS[name].replace("\n</think>", "").replace(CODE[:20], CODE[:20], 1)
    times = []
    for size in (10_000, 1_000_000):
        text = (start * (size // len(start) + 1))[:size]
        samples = []
        for _ in range(5):
            parser = chatformats.get(name).parser()
            began = perf_counter_ns()
            for character in text:
                parser.feed(character)
            parser.close()
            samples.append((perf_counter_ns() - began) / size / 1000)
        times.append(median(samples))
    return times[0], times[1]


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks.parsing", description=__doc__)
    options.add_argument("--repeats", type=int, default=21, help="turns that a median is taken over (21)")
    repeats = options.parse_args().repeats
    print("| format | characters | fed | native µs | SGLang µs | ratio | transformers µs | ratio |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for name, completion in COMPLETIONS.items():
        reads: dict[str, Read] = {"native": native(name)}
        for peer, make in (("SGLang", sglang if name in SGLANG else None), ("transformers", transformers)):
            read = make(name) if make else None
            if read is not None:
                reads[peer] = read
        for fed, chunks in (
            ("whole", [completion]),
            (f"by {CHUNK}", [completion[i : i + CHUNK] for i in range(0, len(completion), CHUNK)]),
        ):
            expected = reads["native"](chunks)
            same = {
                # transformers trims values: the calls' names are compared.
                peer: read
                for peer, read in reads.items()
                if [call[0] for call in read(chunks)] == [call[0] for call in expected]  # type: ignore[attr-defined]
            }
            times = measure({peer: partial(read, chunks) for peer, read in same.items()}, repeats)
            cells = [
                f"{times[peer]:.0f} | {times[peer] / times['native']:.1f}" if peer in times else "|"
                for peer in ("SGLang", "transformers")
            ]
            print(
                f"| {name} | {len(completion)} | {fed} | {times['native']:.0f} | {' | '.join(cells)} |",
                flush=True,
            )
    print("\n| format | µs a character, 10 kB | 1 MB | ratio |\n|---|--:|--:|--:|")
    for name in COMPLETIONS:
        small, large = growth(name)
        print(f"| {name} | {small:.2f} | {large:.2f} | {large / small:.2f} |", flush=True)


if __name__ == "__main__":
    main()
