# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""From what OpenAI-compatible clients send to what chat templates expect."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping

from .errors import ChatFormatError, expected, path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TypeAlias

    from .errors import Place
    from .formatter import ChatFormatter

    Message: TypeAlias = dict[str, object]

# In transformers' order: the first that has a value is the one.
_REASONING: Final = ("reasoning_content", "thinking", "reasoning")
# Each stands for a call's result, and is not to be mixed with another.
_NEVER_MERGED: Final = ("tool", "function")


class Normalized(list[dict[str, object]]):
    """Messages as templates expect them, and ``problems``: what could not be made so, each with its place."""

    def __init__(self, messages: Iterable[dict[str, object]], problems: Iterable[ChatFormatError]) -> None:
        super().__init__(messages)
        self.problems = list(problems)


def normalize(
    messages: Iterable[object],
    formatter: ChatFormatter | None = None,
    *,
    objects: bool = True,
    drop_none: bool = True,
    alias_reasoning: bool = True,
    parse_arguments: bool = True,
    join_text: str | None = "\n",
    developer_as_system: bool = True,
    merge_consecutive: bool = False,
    fold_system: bool = False,
) -> Normalized:
    r"""Return the messages as templates expect them, in new mappings: the input is left alone.

    - ``objects``: pydantic models and dataclasses, however deep, become mappings.
    - ``drop_none``: a message's keys whose value is ``None`` are left out.
    - ``alias_reasoning``: ``thinking`` and ``reasoning`` are read as ``reasoning_content``.
    - ``parse_arguments``: a tool call's arguments, a JSON object in a string, become a mapping; of a blank
      string, an empty one. Any other string stays, and is one of the result's ``problems``.
    - ``join_text``: content that is a list of text parts becomes one string, joined by this; ``None`` leaves
      it. Roles whose parts the ``formatter`` reads itself are left out.
    - ``developer_as_system``: the role ``developer`` becomes ``system``.

    Off until asked for, since they change what a conversation says:

    - ``merge_consecutive``: consecutive messages of one role, but tool results, become one, with an empty
      line between their texts.
    - ``fold_system``: a system message that is not the first goes into the user message that follows it.

    Raises ChatFormatError for what is no sequence of mappings.

    >>> normalize([{"role": "developer", "content": [{"type": "text", "text": "Be brief."}], "name": None}])
    [{'role': 'system', 'content': 'Be brief.'}]
    >>> call = {"function": {"name": "f", "arguments": '{"a": '}}
    >>> print(*normalize([{"role": "assistant", "tool_calls": [call]}]).problems)
    messages[0].tool_calls[0].function.arguments: not JSON: Expecting value: line 1 column 7 (char 6)
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        raise expected("a sequence of messages", messages, ("messages",))
    problems: list[ChatFormatError] = []
    result = []
    for index, given in enumerate(messages):
        value = _plain(given) if objects else given
        if not isinstance(value, Mapping):
            raise expected("a mapping", value, ("messages", index))
        message = {key: value[key] for key in value if not (drop_none and value[key] is None)}
        if developer_as_system and message.get("role") == "developer":
            message["role"] = "system"
        if alias_reasoning:
            reasoning = [message[key] for key in _REASONING if message.get(key) is not None]
            if reasoning:
                message["reasoning_content"] = reasoning[0]
        read_as_parts = formatter is not None and message.get("role") in formatter.content_parts
        if join_text is not None and not read_as_parts:
            texts = _texts(message.get("content"))
            if texts is not None:
                message["content"] = join_text.join(texts)
        if parse_arguments and isinstance(message.get("tool_calls"), (list, tuple)):
            message["tool_calls"] = _parsed(message["tool_calls"], ("messages", index), problems)
        result.append(message)
    if merge_consecutive:
        result = _merged(result)
    if fold_system:
        result = _folded(result)
        if merge_consecutive:
            result = _merged(result)
    return Normalized(result, problems)


def _plain(value: object) -> object:
    """Return a value with its models and dataclasses as mappings; every container is a new one."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _plain(dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Not asdict(), which copies what is in the fields, images too.
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _texts(content: object) -> list[str] | None:
    """Return the texts of a list of text parts, or None for anything else."""
    if not isinstance(content, (list, tuple)):
        return None
    texts = []
    for part in content:
        if (
            not isinstance(part, Mapping)
            or part.get("type") != "text"
            or not isinstance(part.get("text"), str)
        ):
            return None
        texts.append(part["text"])
    return texts


def _parsed(calls: Any, place: Place, problems: list[ChatFormatError]) -> list[object]:
    """Return tool calls with their arguments read as JSON; note those that are none."""
    parsed: list[object] = []
    for index, call in enumerate(calls):
        wrapped = isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)
        function = call["function"] if wrapped else call
        if isinstance(function, Mapping) and isinstance(function.get("arguments"), str):
            path: Place = (*place, "tool_calls", index, *(("function",) if wrapped else ()), "arguments")
            function = {**function, "arguments": _read(function["arguments"], path, problems)}
            call = {**call, "function": function} if wrapped else function
        parsed.append(call)
    return parsed


def _read(arguments: str, place: Place, problems: list[ChatFormatError]) -> object:
    try:
        value = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        problems.append(ChatFormatError(f"not JSON: {reason}", path_of(place)))
        return arguments
    if not isinstance(value, dict):
        problems.append(expected("a JSON object in the string", value, place))
        return arguments
    return value


def _merged(messages: list[Message]) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        role = message.get("role")
        if not merged or role != merged[-1].get("role") or role in _NEVER_MERGED:
            merged.append(dict(message))
            continue
        before = merged[-1]
        for key, value in message.items():
            if key in ("content", "reasoning_content", "tool_calls"):
                before[key] = _together(before.get(key), value)
            else:
                before.setdefault(key, value)
    return merged


def _folded(messages: list[Message]) -> list[Message]:
    folded: list[Message] = []
    for message in messages:
        while message.get("role") == "user" and len(folded) > 1 and folded[-1].get("role") == "system":
            system = folded.pop()
            message = {**message, "content": _together(system.get("content"), message.get("content"))}
        folded.append(message)
    return folded


def _together(first: object, second: object) -> object:
    """Return two contents as one: texts with an empty line between them, lists one after the other."""
    if not first or not second:
        return first if second is None or first else second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_list(first), *_as_list(second)]


def _as_list(content: object) -> list[object]:
    return list(content) if isinstance(content, (list, tuple)) else [{"type": "text", "text": content}]
