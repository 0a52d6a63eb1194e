# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""From a name to its formatter, whose module is loaded when it is asked for."""

from __future__ import annotations

from .errors import ChatFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, Literal, overload

    from .formats.glm4_tools import GLM4ToolsFormatter
    from .formats.hebatron import HebatronFormatter
    from .formats.joyai_llm_flash import JoyAILLMFlashFormatter
    from .formats.ministral_3 import Ministral3Formatter
    from .formats.nemotron_nano_v2 import NemotronNanoV2Formatter
    from .formatter import ChatFormatter

_CLASSES: Final = {
    "glm4-tools": ("glm4_tools", "GLM4ToolsFormatter"),
    "hebatron": ("hebatron", "HebatronFormatter"),
    "joyai-llm-flash": ("joyai_llm_flash", "JoyAILLMFlashFormatter"),
    "ministral-3": ("ministral_3", "Ministral3Formatter"),
    "nemotron-nano-v2": ("nemotron_nano_v2", "NemotronNanoV2Formatter"),
}
# Formats of others, each factory in a tuple of its own: see register.
_REGISTERED: Final[dict[str, tuple[Callable[[], ChatFormatter]]]] = {}


def names() -> tuple[str, ...]:
    """Return the names of all formats, in alphabetical order.

    >>> names()[:2]
    ('glm4-tools', 'hebatron')
    """
    return tuple(sorted({*_CLASSES, *_REGISTERED}))


if TYPE_CHECKING:

    @overload
    def get(name: Literal["glm4-tools"]) -> GLM4ToolsFormatter: ...
    @overload
    def get(name: Literal["hebatron"]) -> HebatronFormatter: ...
    @overload
    def get(name: Literal["joyai-llm-flash"]) -> JoyAILLMFlashFormatter: ...
    @overload
    def get(name: Literal["ministral-3"]) -> Ministral3Formatter: ...
    @overload
    def get(name: Literal["nemotron-nano-v2"]) -> NemotronNanoV2Formatter: ...
    @overload
    def get(name: str) -> ChatFormatter: ...


def get(name: str) -> ChatFormatter:
    """Return the formatter of a template, by the template's name.

    Raises ChatFormatError for a name that there is not. A name stands for a template, never for a
    checkpoint: repositories change their templates.

    >>> get("ministral-3").name
    'ministral-3'
    """
    if isinstance(name, str) and name in _REGISTERED:
        return _REGISTERED[name][0]()
    # At the first call only: it costs as much as the whole package.
    from importlib import import_module

    try:
        module, class_name = _CLASSES[name]
    except (KeyError, TypeError) as error:
        known = ", ".join(names())
        raise ChatFormatError(f"no format is named {name!r}; there are {known}") from error
    formatter: ChatFormatter = getattr(import_module(f".formats.{module}", __package__), class_name)()
    return formatter


def register(name: str, factory: Callable[[], ChatFormatter]) -> None:
    """Let ``get`` find a format of one's own: it returns what ``factory``, often its class, does.

    Raises ChatFormatError where the name is taken already.

    >>> register("hebatron", lambda: get("hebatron"))
    Traceback (most recent call last):
    chatformats.errors.ChatFormatError: a format is already named 'hebatron'
    """
    if not isinstance(name, str) or not callable(factory):
        raise ChatFormatError("expected a name and what makes a formatter when it is called")
    entry = (factory,)
    # Of two threads, one sets its own tuple: that is what setdefault answers, and atomic.
    if name in _CLASSES or _REGISTERED.setdefault(name, entry) is not entry:
        raise ChatFormatError(f"a format is already named {name!r}")
