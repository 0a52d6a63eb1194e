# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The command ``parse``; it is given the program's argument parser, and writes UTF-8 whatever the locale."""

from __future__ import annotations

import json
import re

from .errors import ChatFormatError
from .registry import get, names
from .streams import read_bytes, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from .messages import Tools


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``run`` reads."""
    parser.add_argument("name", metavar="NAME", help=f"the format: {', '.join(names())}")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help='what the model wrote; "-", or none, is standard input',
    )
    parser.add_argument(
        "--stream",
        type=int,
        metavar="N",
        help="feed it N characters at a time and print the events, one a line",
    )
    parser.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the end of the prompt, which says whether reasoning is open; \\n is a line break",
    )
    parser.add_argument("--tools", metavar="FILE", help="JSON: the tools, which give the arguments' types")


def run(args: argparse.Namespace) -> None:
    """Read what a model wrote and print it as JSON: content, reasoning, tool calls and what was malformed."""
    if args.stream is not None and args.stream < 1:
        raise ChatFormatError("expected a number of characters, at least 1", "--stream")
    fmt = get(args.name)
    # A shell's quotes have no escape for a line break, in which most prompts end.
    prompt = None if args.prompt is None else args.prompt.replace("\\n", "\n")
    tools = None if args.tools is None else _tools(args.tools)
    completion = _text(args.file)
    if args.stream is None:
        _write(
            json.dumps(
                _plain(fmt.parse(completion, prompt=prompt, tools=tools)), ensure_ascii=False, indent=2
            )
        )
        return
    for event in _events(fmt.parser(prompt, tools), completion, args.stream):
        _write(json.dumps(event, ensure_ascii=False))


def _events(parser: Any, completion: str, size: int) -> Iterator[dict[str, object]]:
    for start in range(0, len(completion), size):
        for event in parser.feed(completion[start : start + size]):
            yield _named(event)
    parser.close()
    for event in parser.final_events:
        yield _named(event)


def _named(event: object) -> dict[str, object]:
    name = re.sub("(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()
    return {"event": name, **_plain(event)}


def _plain(record: Any) -> dict[str, Any]:
    """Return a record as a dict; of a message without the pieces, which say everything once more."""
    found: dict[str, Any] = {}
    for key in record.__match_args__:
        value = getattr(record, key)
        if key == "pieces":
            continue
        if isinstance(value, list):
            value = [_plain(item) for item in value]
        found[key] = _plain(value) if hasattr(value, "__match_args__") else value
    return found


def _tools(file: str) -> Tools:
    try:
        tools = json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise ChatFormatError(f"expected JSON: {error}", file) from error
    if isinstance(tools, dict):
        tools = tools.get("tools")
    if not isinstance(tools, list):
        raise ChatFormatError("expected a list of tools, or an object that has one", file)
    return tools


def _text(file: str) -> str:
    # A model's text may be cut in a character: what is no UTF-8 is printed as an escape.
    return read_bytes(file).decode("utf-8", "surrogateescape")


def _write(line: str) -> None:
    write_bytes(line.encode("utf-8", "backslashreplace") + b"\n")
