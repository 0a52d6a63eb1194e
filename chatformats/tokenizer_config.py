# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Which formatter stands for a tokenizer's template: read from its configuration, as transformers does."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from .bound import BoundFormatter
from .errors import ChatFormatError, expected
from .fingerprint import for_template
from .registry import get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from .formatter import ChatFormatter

# Tokenizer classes that have no tokens but those of their configuration.
_WITHOUT_DEFAULTS: Final = (None, "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend")


def for_tokenizer_config(
    config: Mapping[str, object] | str | os.PathLike[str], *, template: str | None = None
) -> ChatFormatter | None:
    """Return the formatter for a tokenizer's chat template, with the tokenizer's bos and eos, or None.

    ``config`` is the content of a ``tokenizer_config.json``, or the path of one or of its directory; there,
    ``chat_template.jinja`` and ``additional_chat_templates/`` win over what the file says, as in
    transformers. Of several templates transformers takes "default", and "tool_use", if there is one, for
    a conversation with tools: both must be the same format then, unless ``template`` names the one to take.

    A token that is null or missing is the empty string, which is what the template prints of it; where it is
    missing and the tokenizer's class may know one, the answer is None. Raises ChatFormatError for a
    configuration that cannot be read.

    >>> for_tokenizer_config({"chat_template": "{{ messages }}", "bos_token": "<s>"}) is None
    True
    """
    if isinstance(config, Mapping):
        templates = _templates(config.get("chat_template"))
    else:
        config, templates = _read(Path(config))
    wanted = [template] if template is not None else ["default", "tool_use"]
    used = [templates[name] for name in wanted if name in templates]
    if not used or (template is None and "default" not in templates):
        return None
    formatters = {fmt.name if (fmt := for_template(source)) else None for source in used}
    name = formatters.pop()
    if name is None or formatters:
        return None
    formatter = get(name)
    options = {}
    for key in ("bos_token", "eos_token"):
        if key in formatter.variables:
            if key not in config and config.get("tokenizer_class") not in _WITHOUT_DEFAULTS:
                return None
            options[key] = _token(config.get(key), key)
    return BoundFormatter(formatter, **options) if options else formatter


def _templates(value: object) -> dict[str, str]:
    """Return the templates of a configuration by name: one is "default", or a list names them."""
    place = ("chat_template",)
    if value is None or isinstance(value, str):
        return {} if value is None else {"default": value}
    if not isinstance(value, (Mapping, list)):
        raise expected("a string or a list of named templates", value, place)
    templates = {}
    pairs = value.items() if isinstance(value, Mapping) else map(_pair, value)
    for name, source in pairs:
        if not isinstance(name, str) or not isinstance(source, str):
            raise ChatFormatError("expected a name and a template's text in each", "chat_template")
        templates[name] = source
    return templates


def _pair(entry: object) -> tuple[object, object]:
    return (entry.get("name"), entry.get("template")) if isinstance(entry, Mapping) else (None, None)


def _token(value: object, key: str) -> str:
    content = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(content, str) and value is not None:
        raise expected("a string, or an object with its content", value, (key,))
    return content if isinstance(content, str) else ""


def _read(path: Path) -> tuple[Mapping[str, object], dict[str, str]]:
    file = path / "tokenizer_config.json" if path.is_dir() else path
    config = _read_object(file)
    tokens = file.with_name("special_tokens_map.json")
    if "added_tokens_decoder" not in config and tokens.is_file():
        config = {**config, **_read_object(tokens)}  # as tokenizers were once saved
    extra = sorted(file.with_name("additional_chat_templates").glob("*.jinja"))
    templates = {file.stem: read_text(file) for file in extra}
    default = file.with_name("chat_template.jinja")
    if default.is_file():
        templates["default"] = read_text(default)
    return config, templates or _templates(config.get("chat_template"))


def _read_object(file: Path) -> Mapping[str, object]:
    try:
        value = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ChatFormatError):
            raise
        raise ChatFormatError(f"not JSON: {error}", str(file)) from error
    if not isinstance(value, dict):
        raise ChatFormatError("expected an object", str(file))
    return value


def read_text(file: str | os.PathLike[str]) -> str:
    """Return a file's text, line ends as they are; raises ChatFormatError where that fails."""
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        raise ChatFormatError(f"cannot be read: {error.strerror}", str(file)) from error
    except UnicodeDecodeError as error:
        raise ChatFormatError("not UTF-8", str(file)) from error
