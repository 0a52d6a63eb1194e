# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Chat templates in plain Python: each formatter writes the prompt that one Jinja template does."""

from .control_tokens import find_control_tokens
from .errors import ChatFormatError, TemplateRaisedError
from .formatter import ChatFormatter
from .registry import get, names, register

__all__ = (
    "ChatFormatError",
    "ChatFormatter",
    "TemplateRaisedError",
    "find_control_tokens",
    "get",
    "names",
    "normalize",
    "register",
)
__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .normalization import normalize
else:

    def __getattr__(name: str) -> object:
        # It loads json, which takes several times as long as the package.
        if name == "normalize":
            from .normalization import normalize as value
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return value
