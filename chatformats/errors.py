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
    there is none; ``problem`` is the sentence without it.

    >>> str(ChatFormatError("expected a string, got None", "messages[3].content"))
    'messages[3].content: expected a string, got None'
    """

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def __reduce__(self) -> tuple[type[ChatFormatError], tuple[str, str]]:
        # Exceptions are rebuilt from `args`, which holds the joined message: without this, a
        # pickled error (a process pool's) would lose its path.
        return type(self), (self.problem, self.path)


class TemplateRaisedError(ChatFormatError):
    """The template itself refuses the input (``raise_exception``); ``problem`` is its sentence."""


def expected(what: str, value: object, place: Place) -> ChatFormatError:
    """Return the error for a value of the wrong kind: it names the kind, never the value.

    >>> str(expected("a string", None, ("messages", 0, "content")))
    'messages[0].content: expected a string, got None'
    """
    if value is UNDEFINED:
        return ChatFormatError(f"expected {what}, but it is missing", path_of(place))
    kind = "None" if value is None else type(value).__name__
    return ChatFormatError(f"expected {what}, got {kind}", path_of(place))


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
