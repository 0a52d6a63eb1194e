# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Which formatter stands for a template: asked of the template's text, never of a model's name.

A fingerprint is the hash of what Jinja reads in a template when transformers sets it up: its tokens, after
comments, the white space inside tags, and the white space that ``-``, ``trim_blocks`` and
``lstrip_blocks`` remove are gone. Literals count by value. Two sources with one fingerprint are the same
program to Jinja's parser. The reverse does not hold, on purpose: ``none`` and ``None`` have two.
"""

from __future__ import annotations

import re
from hashlib import sha256

from .errors import expected
from .registry import get, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from .formatter import ChatFormatter

    Token: TypeAlias = tuple[str, object]

# The fingerprints of the templates under reference/.
_FORMATS: Final = {
    "44eca86efc69b29efc2e2f46e25a9f207c3d588788b1922f4c85d89568252485": "glm4-tools",
    "89b93e644013e5541da67493db9fb1e47f427376ddc7b1337a0fefeb4df700cb": "hebatron",
    "79d0da1153b5b6862356da48f08028dd150f3e19766181cc044ec9a7803ebaf5": "joyai-llm-flash",
    "6069026f7c599f7045a56a9dedae43dc9462ac5ad194145414643772292c4add": "ministral-3",
    "ae7f3eafaa8a1f2eadea27e988c03bb3a0d5215e0da4a7385d22c26b8a94584b": "nemotron-nano-v2",
}

# Jinja's own expressions, in its order, but for digits and names that are not ASCII: those end in None.
_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<float>(?<!\.)(?:[0-9]+_)*[0-9]+
        (?:(?:\.(?:[0-9]+_)*[0-9]+)?e[+-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+))
    | (?P<integer>0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[0-9a-f])+|[1-9](?:_?[0-9])*|0(?:_?0)*)
    | (?P<name>\w+)
    | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<operator>//|\*\*|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_BEGIN: Final = re.compile(r"\{([%{#])([-+]?)")
_RAW: Final = re.compile(r"\s*raw\b")
_END: Final = {
    "%": re.compile(r"\+%\}|-%\}\s*|%\}\n?"),
    "{": re.compile(r"-\}\}\s*|\}\}"),
    "#": re.compile(r"\+\#\}|-\#\}\s*|\#\}\n?"),
}
# With other escapes than these, a string is not understood.
_ESCAPED: Final = re.compile(
    r"""[^\\]*(?:\\(?:[\n\\'"abfnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})[^\\]*)*"""
)
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


def for_template(source: str) -> ChatFormatter | None:
    """Return the formatter that writes what a Jinja chat template does, or None if there is none.

    Comments, line ends, the layout inside tags and white space that Jinja removes make no difference;
    whatever could change a prompt does, so that other revisions of a template are not recognised.

    >>> for_template("{{ messages }}") is None
    True
    """
    if not isinstance(source, str):
        raise expected("a template's text", source, ("source",))
    name = _FORMATS.get(fingerprint(source) or "")
    return get(name) if name in names() else None


def fingerprint(source: str) -> str | None:
    """Return the hash of what Jinja reads in a template, or None if it is not understood.

    >>> fingerprint("{# a #}{{ 'x' }}") == fingerprint('{{- "\\\\x78" -}}') != fingerprint("{{ 'y' }}")
    True
    """
    try:
        tokens = _tokens(source)
    except ValueError:  # of a number or an escape, too
        return None
    return sha256(ascii(tokens).encode()).hexdigest()


def _tokens(source: str) -> list[Token]:
    source = re.sub(r"\r\n?", "\n", source).removesuffix("\n")
    tokens: list[Token] = []
    position = 0
    while begin := _BEGIN.search(source, position):
        kind, sign = begin.groups()
        text = source[position : begin.start()]
        if sign == "-":
            text = text.rstrip()
        elif sign != "+" and kind != "{":
            line = text.rfind("\n") + 1
            if (line or position == 0 or source[position - 1] == "\n") and text[line:].isspace():
                text = text[:line]
        _add_text(tokens, text)
        position = begin.end()
        if kind == "#":
            end = _END[kind].search(source, position)
            if end is None:
                raise ValueError("a comment without an end")
            position = end.end()
        elif kind == "%" and _RAW.match(source, position):
            raise ValueError("raw text")
        else:
            tokens.append(("begin", kind))
            position = _add_tag(tokens, source, position, _END[kind])
            tokens.append(("end", kind))
    _add_text(tokens, source[position:])
    return tokens


def _add_text(tokens: list[Token], text: str) -> None:
    # Text on both sides of a comment is one.
    if tokens and tokens[-1][0] == "text":
        text = f"{tokens.pop()[1]}{text}"
    if text:
        tokens.append(("text", text))


def _add_tag(tokens: list[Token], source: str, position: int, end: re.Pattern[str]) -> int:
    """Add the tokens of a tag; return where the template goes on."""
    closing: list[str] = []
    while True:
        # Inside brackets, "}}" closes two of them.
        if not closing and (ended := end.match(source, position)):
            return ended.end()
        match = _TOKEN.match(source, position)
        if match is None:
            raise ValueError("unknown syntax")
        position = match.end()
        kind, text = str(match.lastgroup), match.group()
        value: object = text
        if kind == "float":
            value = float(text.replace("_", ""))
        elif kind == "integer":
            value = int(text.replace("_", ""), 0)
        elif kind == "name" and not text.isidentifier():
            raise ValueError("a name that is none")
        elif kind == "string":
            value = _unescaped(text[1:-1])
        elif text in _CLOSING:
            closing.append(_CLOSING[text])
        elif text in ")]}" and (not closing or closing.pop() != text):
            raise ValueError("unbalanced brackets")
        if kind != "space":
            tokens.append((kind, value))


def _unescaped(text: str) -> str:
    if not _ESCAPED.fullmatch(text):
        raise ValueError("an escape that is none")
    return text.encode("ascii", "backslashreplace").decode("unicode-escape")
