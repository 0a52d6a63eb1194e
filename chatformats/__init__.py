# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Chat templates in plain Python: each formatter writes the prompt that one Jinja template does."""

from .control_tokens import find_control_tokens
from .errors import ChatFormatError, TemplateRaisedError
from .formatter import ChatFormatter
from .registry import get, names

__all__ = (
    "ChatFormatError",
    "ChatFormatter",
    "TemplateRaisedError",
    "find_control_tokens",
    "get",
    "names",
)
