# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What goes wrong, and where: every exception that a formatter raises."""

from __future__ import annotations

from .undefined import UNDEFINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # The steps that lead to a value: keys and indices.
    Place: TypeAlias = tuple[object, ...]


class ChatFormatError(ValueError):
    """Say what was wrong with the input, and at which place.

    ``path`` is the place, written as Python would reach it (``messages[3].content``), or empty where
    there is none; ``problem`` is the sentence without it. ``hint`` names the rule of ``normalize`` that
    prevents the error, or is empty.

    >>> str(ChatFormatError("expected a string, got None", "messages[3].content"))
    'messages[3].content: expected a string, got None'
    """

    def __init__(self, problem: str, path: str = "", hint: str = "") -> None:
        message = f"{path}: {problem}" if path else problem
        super().__init__(f"{message} ({hint})" if hint else message)
        self.problem = problem
        self.path = path
        self.hint = hint

    def __reduce__(self) -> tuple[type[ChatFormatError], tuple[str, str, str]]:
        # Exceptions are rebuilt from `args`, which holds the joined message: without this, a
        # pickled error (a process pool's) would lose its path.
        return type(self), (self.problem, self.path, self.hint)


class TemplateRaisedError(ChatFormatError):
    """The template itself refuses the input (``raise_exception``); ``problem`` is its sentence."""


def expected(what: str, value: object, place: Place, hint: str = "") -> ChatFormatError:
    """Return the error for a value of the wrong kind: it names the kind, never the value.

    >>> str(expected("a string", None, ("messages", 0, "content")))
    'messages[0].content: expected a string, got None'
    >>> str(expected("a mapping", '{"a": 1}', ("messages", 2, "tool_calls", 0, "function", "arguments")))
    'messages[2].tool_calls[0].function.arguments: expected a mapping, got a string (normalize() parses it)'
    """
    if value is UNDEFINED:
        return ChatFormatError(f"expected {what}, but it is missing", path_of(place))
    kind = "None" if value is None else "a string" if isinstance(value, str) else type(value).__name__
    return ChatFormatError(f"expected {what}, got {kind}", path_of(place), hint or _hint(what, value, place))


def _hint(what: str, value: object, place: Place) -> str:
    """Name the rule of ``normalize`` that turns a message's value into what was expected."""
    if place[0] != "messages" or len(place) < 2:
        return ""
    if what == "a mapping":
        if place[-1] == "arguments" and isinstance(value, str) and _holds_json_object(value):
            return "normalize() parses it"
        if hasattr(value, "model_dump") or hasattr(value, "__dataclass_fields__"):
            return "normalize() makes it one"
    if what == "a string" and place[-1] == "content" and _is_text_parts(value):
        return "normalize() joins its text parts"
    # Templates ask for a length or a loop, both of which a missing value has.
    return "normalize() drops it" if what == "a sequence" and value is None else ""


def _is_text_parts(value: object) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return all(
        isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in value
    )


def _holds_json_object(text: str) -> bool:
    # Here and not above: json takes ten times as long to load as this package.
    from json import loads

    try:
        return isinstance(loads(text), dict)
    except (ValueError, RecursionError):
        return False


def path_of(place: Place) -> str:
    """Return a place as Python would reach it.

    Places are tuples until something goes wrong: one costs a fifth of its text.

    >>> path_of(("tools", 0, "parameters", "properties", "max size"))
    "tools[0].parameters.properties['max size']"
    """
    path = ""
    for step in place:
        if isinstance(step, str) and (step.isidentifier() or not path):
            path += f".{step}" if path else step
        else:
            path += f"[{step!r}]"
    return path
