# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The text of tools that come again is remembered, by what they are, and nobody can tell but by the time.

That what is remembered is right, on tools of all kinds, the contract test asserts: it renders thrice.
"""

from __future__ import annotations

import copy
import itertools
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from typing import Any

import pytest

import chatformats
from chatformats import ChatFormatError, formatter
from chatformats.formatter import Sink

from . import oracle
from .benchmarks.workload import TOOLS
from .parsers.reading import tool

MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> dict[Any, str]:
    """Return the texts that are remembered, none to begin with."""
    texts: dict[Any, str] = {}
    monkeypatch.setattr(formatter, "_TOOL_TEXTS", texts)
    monkeypatch.setattr(formatter, "_SEEN", set())
    return texts


@pytest.fixture(params=oracle.NAMES)
def render(request: pytest.FixtureRequest) -> Callable[[Any], str]:
    return lambda tools: chatformats.get(request.param).render(MESSAGES, tools)


@pytest.fixture(params=oracle.NAMES)
def both(request: pytest.FixtureRequest) -> Callable[[Any], tuple[str, str]]:
    """Return a function that renders tools natively and by the reference."""
    native = chatformats.get(request.param).render
    return lambda tools: (native(MESSAGES, tools), oracle.render(request.param, MESSAGES, tools))


def with_default(value: object) -> list[dict[str, Any]]:
    """Return tools that hold a value where every format prints it."""
    return [tool("f", x={"type": "string", "default": value})]


def test_the_third_time_nothing_is_written(render: Callable[[Any], str], remembered: dict[Any, str]) -> None:
    # As a server reads them, from each request anew.
    request = json.dumps(TOOLS)
    first = render(json.loads(request))
    assert not remembered
    assert render(json.loads(request)) == first
    (text,) = remembered.values()
    assert text in first
    remembered.update(dict.fromkeys(remembered, "remembered"))
    assert render(json.loads(request)) == first.replace(text, "remembered")


def test_what_else_refers_to_the_tools_makes_no_difference(
    both: Callable[[Any], tuple[str, str]], remembered: dict[Any, str]
) -> None:
    tools = json.loads(json.dumps(TOOLS))
    references: list[Any] = []
    for _ in range(4):
        for _ in range(3):
            native, reference = both(tools)
            assert native == reference
        references += [tools[0], tools[1]["function"], *tools[2]["function"].values()]
    assert remembered


def test_tools_that_are_changed_are_other_tools(both: Callable[[Any], tuple[str, str]]) -> None:
    tools = copy.deepcopy(TOOLS)
    for _ in range(3):
        both(tools)
    tools[0]["function"]["description"] = "Changed."
    native, reference = both(tools)
    assert native == reference
    assert "Changed." in native


@pytest.mark.parametrize(
    "values",
    [
        (1, True, 1.0, "1"),
        (0.0, -0.0, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], (1,)),
        (float("nan"), float("inf"), None, "NaN"),
        ("\ud800", "\ufffd"),
    ],
    ids=str,
)
def test_what_is_equal_may_be_written_otherwise(
    both: Callable[[Any], tuple[str, str]], values: tuple[Any, ...]
) -> None:
    for _, value in itertools.product(range(3), values):
        native, reference = both(with_default(value))
        assert native == reference


class Small(IntEnum):
    ONE = 1


@pytest.mark.parametrize("name", ["hebatron", "joyai-llm-flash"])
@pytest.mark.parametrize(
    "values",
    [
        (b"x", bytearray(b"x"), memoryview(b"x").toreadonly()),
        ({"a", "b", "c"}, frozenset("abc"), frozenset("cba")),
        (Small.ONE, 1),
        (OrderedDict(a=1), {"a": 1}),
        (1j, ...),
    ],
    ids=["buffers", "sets", "enumerations", "mappings", "rest"],
)
def test_what_is_not_of_json_is_not_kept(
    name: str, values: tuple[Any, ...], remembered: dict[Any, str]
) -> None:
    # These formats print a value that is no container by Python's str().
    for _, value in itertools.product(range(3), values):
        tools = with_default(value)
        render: Callable[..., str] = chatformats.get(name).render
        try:
            reference = oracle.render(name, MESSAGES, tools)
        except TypeError:
            with pytest.raises(ChatFormatError):
                render(MESSAGES, tools)
        else:
            assert render(MESSAGES, tools) == reference
    assert len(remembered) == sum(type(value) in (int, dict) for value in values)


def test_refused_tools_are_refused_again(render: Callable[[Any], str], remembered: dict[Any, str]) -> None:
    messages = set()
    for _ in range(4):
        with pytest.raises(ChatFormatError) as caught:
            render([*TOOLS, {"type": "function", "function": {"name": "f", "parameters": {"x": [{1}]}}}])
        messages.add(str(caught.value))
    assert len(messages) == 1
    assert not remembered


@pytest.mark.parametrize(
    ("old", "new"),
    [("old", "new"), (1, 2), (1, True), (1.0, 2.0), ([1], [1, 2]), ({"a": 1}, {"a": 1, "b": 2})],
    ids=str,
)
def test_tools_that_change_while_they_are_written_are_not_kept(
    old: object, new: object, remembered: dict[Any, str]
) -> None:
    tools: list[dict[str, object]] = [{}]

    def write(out: Sink, tools: Any) -> None:
        # What another thread may do.
        tools[0]["name"] = new
        out.content(str(new))

    for _ in range(3):
        tools[0]["name"] = old
        Sink().tools(write, tools)
    assert not remembered


def doubled(depth: int) -> list[Any]:
    """Return what is small, and 2 to the power of the depth elements when it is written."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value, value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.extend([value, value])
    return value


@pytest.mark.parametrize("make", [circular, lambda: doubled(100)])
def test_tools_are_serialized_whatever_their_shape(make: Callable[[], list[Any]]) -> None:
    # Nemotron's template prints nothing of a tool but its function: this has to cost nothing.
    tools = [{**tool("f"), "more": make()}]
    for _ in range(3):
        expected = oracle.render("nemotron-nano-v2", MESSAGES, tools)
        assert chatformats.get("nemotron-nano-v2").render(MESSAGES, tools) == expected


@pytest.mark.parametrize("name", oracle.NAMES)
def test_circular_tools_are_refused(name: str, remembered: dict[Any, str]) -> None:
    for _ in range(3):
        with pytest.raises(ChatFormatError):
            chatformats.get(name).render(MESSAGES, with_default(circular()))
    assert not remembered


def test_options_and_formats_are_told_apart() -> None:
    # HebaTron and JoyAI share the function that writes tools, and give it another option.
    for _, name in itertools.product(range(3), oracle.NAMES):
        tools = [tool("f", x={"type": "string", "enum": "a"})]
        assert chatformats.get(name).render(MESSAGES, tools) == oracle.render(name, MESSAGES, tools)


def test_no_more_is_kept_than_so_much(remembered: dict[Any, str]) -> None:
    render = chatformats.get("ministral-3").render
    for number in range(formatter._MOST + 10):
        for _ in range(2):
            render(MESSAGES, [tool(f"f{number}")])
    assert 0 < len(remembered) <= formatter._MOST
    assert 0 < len(formatter._SEEN) <= formatter._MOST
    remembered.clear()
    for _ in range(3):
        render(MESSAGES, [tool("f" * formatter._LONGEST)])
        # Short in memory, and long when it is written; and the other way round.
        render(MESSAGES, with_default(doubled(16)))
        long = [{**tool("f"), "not printed": "f" * formatter._LONGEST}]
        chatformats.get("nemotron-nano-v2").render(MESSAGES, long)
    assert not remembered


def test_threads(both: Callable[[Any], tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    # Few enough that they are thrown out all the time.
    monkeypatch.setattr(formatter, "_MOST", 5)
    start = threading.Barrier(8)

    def run(offset: int) -> Iterator[bool]:
        start.wait()
        for number in range(60):
            native, reference = both([tool(f"f{(number + offset) // 3 % 9}")])
            yield native == reference

    with ThreadPoolExecutor(8) as threads:
        assert all(all(found) for found in threads.map(lambda offset: list(run(offset)), range(8)))


def test_segments_are_written_each_time(remembered: dict[Any, str]) -> None:
    fmt = chatformats.get("hebatron")
    for _ in range(3):
        fmt.render(MESSAGES, TOOLS)
    remembered.update(dict.fromkeys(remembered, "remembered"))
    assert remembered
    assert "remembered" not in fmt.render_segments(MESSAGES, TOOLS).text
