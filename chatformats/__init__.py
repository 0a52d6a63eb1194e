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
    "PromptEncoder",
    "TemplateRaisedError",
    "find_control_tokens",
    "for_template",
    "for_tokenizer_config",
    "get",
    "names",
    "normalize",
    "register",
)
__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .encoder import PromptEncoder
    from .fingerprint import for_template
    from .normalization import normalize
    from .tokenizer_config import for_tokenizer_config
else:

    def __getattr__(name: str) -> object:
        # These load re, json and hashlib, which take several times as long as the package.
        if name == "PromptEncoder":
            from .encoder import PromptEncoder as value
        elif name == "for_template":
            from .fingerprint import for_template as value
        elif name == "for_tokenizer_config":
            from .tokenizer_config import for_tokenizer_config as value
        elif name == "normalize":
            from .normalization import normalize as value
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return value
