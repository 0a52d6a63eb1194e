# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Chat templates in plain Python: each formatter writes the prompt that one Jinja template does."""

from .control_tokens import find_control_tokens
from .errors import ChatFormatError, TemplateRaisedError
from .formatter import ChatFormatter
from .registry import get, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .encoder import PromptEncoder

__all__ = (
    "ChatFormatError",
    "ChatFormatter",
    "PromptEncoder",
    "TemplateRaisedError",
    "find_control_tokens",
    "get",
    "names",
)


def __getattr__(name: str) -> object:
    if name == "PromptEncoder":
        # Not before: it brings the modules json and re.
        from .encoder import PromptEncoder

        return PromptEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
