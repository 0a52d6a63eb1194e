# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""How the tests read a completion: in any chunks, with what a client makes of the events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import chatformats
from chatformats.parsing import (
    ArgumentsDelta,
    ContentDelta,
    Event,
    ParsedMessage,
    ReasoningDelta,
    ToolCallBegin,
    ToolCallDone,
)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """Return a tool whose parameters have these schemas."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def streamed(
    name: str, chunks: Iterable[str], prompt: str | None = None, tools: Any = None
) -> tuple[ParsedMessage, list[Event]]:
    """Read a completion in chunks; return the message and every event."""
    parser = chatformats.get(name).parser(prompt, tools)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    message = parser.close()
    return message, events + parser.final_events


def read(name: str, completion: str, prompt: str | None = None, tools: Any = None) -> ParsedMessage:
    """Read a completion whole, and check that it is the same in single characters."""
    message = chatformats.get(name).parse(completion, prompt=prompt, tools=tools)
    assert_kept(completion, message)
    for chunks in ([completion], completion):
        again, events = streamed(name, chunks, prompt, tools)
        assert again == message
        assert_events(events, message)
    return message


def calls(message: ParsedMessage) -> list[tuple[str, Any]]:
    """Return names and arguments, of calls that can be made."""
    assert all(call.status == "ok" for call in message.tool_calls), message
    return [(call.name, call.arguments) for call in message.tool_calls]


def statuses(message: ParsedMessage) -> list[str]:
    return [call.status for call in message.tool_calls]


def assert_kept(completion: str, message: ParsedMessage) -> None:
    """Nothing of a completion is lost, and each piece is part of what its kind says."""
    assert "".join(text for _, text in message.pieces) == completion
    kinds: dict[str, list[str]] = {}
    for kind, text in message.pieces:
        assert text
        kinds.setdefault(kind, []).append(text)
    assert "".join(kinds.get("content", [])) == message.content
    assert "".join(kinds.get("reasoning", [])) == (message.reasoning_content or "")
    assert kinds.get("tool_call", []) == [call.raw for call in message.tool_calls]
    assert kinds.keys() <= {"content", "reasoning", "tool_call", "markup", "rest"}
    assert (message.reasoning_content is None) == (message.reasoning_complete is None)
    for problem in message.problems:
        assert 0 <= problem.position <= len(completion)


def assert_events(events: list[Event], message: ParsedMessage) -> None:
    """The deltas joined are the message's fields, in the order in which a client may rely on."""
    assert "".join(e.text for e in events if isinstance(e, ContentDelta)) == message.content
    reasoning = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    assert reasoning == (message.reasoning_content or "")
    arguments = ["" for _ in message.tool_calls]
    begun = done = 0
    for event in events:
        if isinstance(event, ToolCallBegin):
            assert (event.index, event.name) == (begun, message.tool_calls[begun].name)
            begun += 1
        elif isinstance(event, ArgumentsDelta):
            assert event.text
            assert event.index == begun - 1 == done
            arguments[event.index] += event.text
        elif isinstance(event, ToolCallDone):
            assert event.index == done < begun
            assert event.call == message.tool_calls[done]
            done += 1
    assert begun == done == len(message.tool_calls)
    for call, text in zip(message.tool_calls, arguments, strict=True):
        if call.arguments is not None:
            assert json.loads(text) == call.arguments
