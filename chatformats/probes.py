# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Conversations that tell one template from another."""

from __future__ import annotations

import itertools
import random
from inspect import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final, TypeAlias

    from .formatter import ChatFormatter

    # Arguments of ``render``, by name.
    Case: TypeAlias = dict[str, Any]

_CALL: Final = {"type": "function", "id": "call00001", "function": {"name": "f", "arguments": {}}}
_CALLS: Final = [
    {
        "function": {
            "name": "g<h",
            "arguments": {"a": "x & y", "n": 1.5, "on": True, "l": [None], "d": {"k": "é"}},
        }
    },
    {"type": "function", "function": {"name": "g", "arguments": '{"a": ["<b>"]}'}},
]
_ODD_CALLS: Final = [
    {"name": "h"},
    {"name": "h", "arguments": {"a": ""}},
    {"function": {"name": "h", "arguments": ""}},
]
# One message of each shape that templates treat in a way of its own.
_MESSAGES: Final[list[Case]] = [
    {"role": "system", "content": " Be brief.\n"},
    {"role": "system", "content": [{"type": "text", "text": "Be brief. /no_think"}]},
    {"role": "system", "content": ""},
    {"role": "system", "content": [{"type": "image"}]},
    {"role": "system", "content": []},
    {"role": "user", "content": "Hi <b>&'\" é /think\n"},
    {"role": "user", "content": "/no_think " + " Hi"},
    {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image"}]},
    {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "a"}, {"type": "video"}]},
    {"role": "user", "content": ""},
    {"role": "assistant", "content": " Hello.\n"},
    {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nHello.", "tool_calls": []},
    {"role": "assistant", "content": "Hello.", "reasoning_content": "Hm.\n", "tool_calls": None},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"type": "image"}],
        "tool_calls": _CALLS,
    },
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": None, "reasoning_content": " ", "tool_calls": None},
    {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": []},
    {"role": "assistant", "content": "a</think>", "reasoning_content": ["Hm."]},
    {"role": "assistant", "content": "<think>a"},
    {"role": "assistant", "content": "a<think>b", "tool_calls": [_CALL]},
    {"role": "assistant", "content": "<think>a</think>", "tool_calls": _ODD_CALLS[:1]},
    {"role": "assistant", "content": "", "tool_calls": _ODD_CALLS[1:2]},
    {"role": "assistant", "content": "", "tool_calls": _ODD_CALLS[2:]},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "assistant", "content": "Wait.</think> So", "reasoning_content": "Hm.", "tool_calls": _CALLS},
    {"role": "assistant", "tool_calls": _CALLS[:1]},
    {"role": "tool", "content": '{"a": 1}', "tool_call_id": "call00001", "name": "f"},
    {"role": "tool", "content": [{"type": "text", "text": "b"}]},
    {"role": "developer", "content": "Be kind."},
    {"role": "user"},
]
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "description": " é <b>\n", "enum": ["x", None], "default": {"k": 1}},
        "n": {"type": ["number", "null"], "minimum": 0.5, "nullable": True, "title": "N"},
        "o": {},
    },
    "required": ["a"],
    "strict": True,
}
_TOOLS: Final[list[list[Case] | None]] = [
    None,
    [],
    [
        {"type": "function", "function": {"name": "f", "description": " F.\n", "parameters": _SCHEMA}},
        {"name": "g<h", "parameters": {"type": "object", "properties": {}}, "extra": [1]},
        {"name": "h", "parameters": {"type": "object"}},
        {"name": "i", "parameters": {"type": "object", "properties": []}},
        {"name": "j", "parameters": {}},
        {"name": "k", "parameters": []},
    ],
    [{"type": "function", "function": {"name": "f"}}],
]
# The roles of longer ones, by their first letters.
_PATTERNS: Final = ("su", "ua", "sua", "uau", "suau", "uatu", "uatau", "suattau", "uauatau", "usua", "uaduu")
_LONGER: Final = 1_000


def probes(formatter: ChatFormatter) -> Iterator[Case]:
    """Yield the conversations for a format, the same at every run: all of one and two messages, and longer."""
    chance = random.Random(0)
    sequences = [list(few) for count in (0, 1, 2) for few in itertools.product(_MESSAGES, repeat=count)]
    for _ in range(_LONGER):
        pattern = chance.choice(_PATTERNS)
        sequences.append([chance.choice([m for m in _MESSAGES if m["role"][0] == role]) for role in pattern])
    values = {key: _values(default) for key, default in defaults(formatter).items()}
    for messages in sequences:
        for tools in _TOOLS if len(messages) == 1 else [chance.choice(_TOOLS)]:
            for prompt in (False, True):
                chosen = {key: chance.choice(options) for key, options in values.items()}
                variables = {key: value for key, value in chosen.items() if value is not None}
                yield {"messages": messages, "tools": tools, "add_generation_prompt": prompt, **variables}


def defaults(formatter: ChatFormatter) -> dict[str, object]:
    """Return the format's variables with their defaults."""
    parameters = signature(formatter.render).parameters
    return {key: parameters[key].default for key in formatter.variables}


def _values(default: object) -> list[object]:
    # A text is always given, as a host does; where a flag is not, the template has its own default.
    return [default, "<t>", ""] if isinstance(default, str) else [None, True, False]


def smaller_cases(formatter: ChatFormatter, case: Case) -> Iterator[Case]:
    """Yield conversations one step smaller than another."""
    usual = defaults(formatter)
    for key, default in usual.items():
        if isinstance(default, str) and case[key] != default:
            yield {**case, key: default}
    for key in ("add_generation_prompt", "tools", *usual):
        # A text is always given, see above.
        if key in case and not isinstance(usual.get(key), str):
            yield {other: case[other] for other in case if other != key}
    for key in ("messages", "tools"):
        yield from ({**case, key: smaller} for smaller in _smaller(case.get(key)))


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if not isinstance(value.get("content", ""), str):
            yield {**value, "content": ""}
        kept = ("role", "type", "content", "function", "name", "arguments")
        yield from ({k: value[k] for k in value if k != key} for key in value if key not in kept)
        for key in value:
            if key not in ("role", "type"):
                yield from ({**value, key: smaller} for smaller in _smaller(value[key]))
    elif isinstance(value, list):
        yield from (value[:index] + value[index + 1 :] for index in range(len(value)))
        for index, item in enumerate(value):
            yield from (value[:index] + [smaller] + value[index + 1 :] for smaller in _smaller(item))
    elif isinstance(value, str) and value:
        half = len(value) // 2
        yield from dict.fromkeys(("", value[:half], value[half:])) if half else ("",)
