# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What the grammars share whose arguments are bare text between tags.

A value may hold any text, tags included. So a tag in it ends it only where the tags that follow are those
that the grammar has there, white space between them aside; otherwise it is text.

The text is typed by the tool's schema: a declared integer, number, boolean, null, array or object is read
as JSON, and ``True``, ``False`` and ``None`` as the templates write them. Where the schema allows a string
the text is the value, save for ``null`` and ``None`` where it allows null as well. Anything undeclared or
unreadable is the string that the model wrote.
"""

from __future__ import annotations

from json import encoder

from ..parsing import END, ArgumentsDelta, Parser, decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from ..messages import Tools
    from ..parsing import Call

_LITERALS: Final[Mapping[str, tuple[str, object]]] = {
    "True": ("true", True),
    "False": ("false", False),
    "None": ("null", None),
}
_NULL: Final = ("null", "None")
# With a line break at each end; what is longer is no null, and can be streamed.
_LONGEST_NULL: Final = 6
_TYPES: Final[Mapping[type, tuple[str, ...]]] = {
    bool: ("boolean",),
    dict: ("object",),
    float: ("number",),
    int: ("integer", "number"),
    list: ("array",),
    type(None): ("null",),
    str: ("string",),
}
quote: Final = encoder.encode_basestring
# In a path, any of the strings at which the model stops.
STOP: Final = "stop"


class TaggedParser(Parser):
    """Read calls whose arguments are text between tags."""

    # What may follow a tag in a value if the value ends there: by what was read so far, the next tag and
    # what then was read, or nothing where that settles it.
    paths: Mapping[str, Mapping[str, str]]
    # The tags in a value that may be the first of what ends it, and the one that should be.
    value_ends: tuple[str, ...]
    value_closer: str
    call_closer = "</tool_call>"

    def __init__(self, stop: tuple[str, ...], prompt: str | None = None, tools: Tools | None = None) -> None:
        super().__init__(stop, prompt, tools)
        self._call: Call
        self._arguments: dict[str, object] = {}
        self._name: list[str] = []
        self._key = self._lead = ""
        self._value: list[str] = []
        self._size = 0
        self._types: frozenset[str] | None = None
        self._streams = self._whole = self._opened_quote = False
        self._trial: list[tuple[str, bool]] = []
        self._path = ""

    def _start(self, opener: str, tentative: bool) -> None:
        self._call = self._begin(opener, tentative)
        self._arguments = {}
        self._name = []

    # In a call, outside of values.

    def _body(self, token: str, marker: bool) -> None:
        """Read what stands between arguments."""
        raise NotImplementedError

    def _break_off(self, token: str, marker: bool) -> None:
        """Meet what the grammar does not have here."""
        call = self._call
        if self._cut and not marker:
            call.parts.append(token)
        elif call.tentative and (token != END or call.name is None):
            self._abandon(call)
            self._state(token, marker)
        elif marker and self._ends(token):
            self._end(call, None, "unclosed")
            self._state(token, marker)
        else:
            self._state = self._broken
            self._broken(token, marker)

    def _broken(self, token: str, marker: bool) -> None:
        if marker and self._ends(token):
            self._end(self._call, None, "malformed")
            self._state(token, marker)
            return
        self._call.parts.append(token)
        if token == self.call_closer:
            self._end(self._call, None, "malformed")

    def _ends(self, marker: str) -> bool:
        return marker == END or marker == self.call_openers[0] or marker in self.stop

    def _close_arguments(self) -> None:
        if self._call.tentative:
            self._confirm(self._call)
        self._argue("}" if self._arguments else "{}")

    def _argue(self, json: str) -> None:
        self._events.append(ArgumentsDelta(self._call.index, json))

    # In a value.

    def _begin_value(self, key: str) -> None:
        if self._call.tentative:
            self._confirm(self._call)
        if key in self._arguments:
            self._problem("an argument that the call has already", self._call.at)
        # Told with the first of the value: fewer events, and the same text.
        self._lead = f"{', ' if self._arguments else '{'}{quote(key)}: "
        self._key = key
        self._value = []
        self._size = 0
        self._types = types = self._declared(key)
        self._streams = types is None or ("string" in types and "null" not in types)
        self._whole = self._opened_quote = False
        self._state = self._in_value

    def _in_value(self, token: str, marker: bool) -> None:
        if marker and (token in self.value_ends or token in self.stop):
            self._trial = [(token, True)]
            self._path = STOP if token in self.stop else token
            self._state = self._in_trial
        elif marker and token == END:
            self._end(self._call, None, "unclosed")
        else:
            self._add(token)

    def _in_trial(self, token: str, marker: bool) -> None:
        path = None
        if marker:
            path = self.paths[self._path].get(STOP if token in self.stop else token)
        elif token.isspace():
            path = self._path
        if path is None:
            self._add("".join(text for text, _ in self._trial))
            self._state = self._in_value
            self._state(token, marker)
            return
        self._trial.append((token, marker))
        if path:
            self._path = path
            return
        self._end_value()
        tokens = self._trial
        if tokens[0][0] == self.value_closer:
            self._call.parts.append(self.value_closer)
            tokens = tokens[1:]
        else:
            self._problem("an argument without its closing tag", self._call.at)
        self._state = self._body
        for text, is_marker in tokens:
            self._state(text, is_marker)

    def _add(self, text: str) -> None:
        self._call.parts.append(text)
        first = not self._size
        self._size += len(text)
        if first:
            text = self._cut_start(text)
        if not text:
            return
        self._value.append(text)
        if self._streams:
            self._stream(text)
        elif self._size > _LONGEST_NULL and self._types and "string" in self._types and not self._whole:
            self._streams = True
            self._stream("".join(self._value))

    def _stream(self, text: str) -> None:
        if not self._opened_quote:
            self._opened_quote = True
            self._lead += '"'
        if text:
            self._argue(self._lead + quote(text)[1:-1])
            self._lead = ""

    def _cut_start(self, text: str) -> str:
        raise NotImplementedError

    def _cut_end(self, text: str) -> str:
        raise NotImplementedError

    def _end_value(self) -> None:
        text = self._cut_end("".join(self._value))
        json, value = ('"', text) if self._opened_quote else _read(text, self._types)
        self._argue(self._lead + json)
        self._arguments[self._key] = value

    def _declared(self, key: str) -> frozenset[str] | None:
        """Return the types that the tool's schema declares of an argument, or None."""
        parameters = (self.tools or {}).get(self._call.name or "", {})
        properties = parameters.get("properties")
        schema = properties.get(key) if isinstance(properties, dict) else None
        return frozenset(_schema_types(schema, parameters, 0)) or None


def _schema_types(schema: object, root: Mapping[str, object], depth: int) -> set[str]:
    """Return the types that a schema allows, as far as it says so."""
    if not isinstance(schema, dict) or depth > 8:
        return set()
    declared = schema.get("type")
    if isinstance(declared, str):
        return {declared}
    types = {name for name in declared if isinstance(name, str)} if isinstance(declared, list) else set()
    for key in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            for branch in branches:
                types |= _schema_types(branch, root, depth + 1)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: object = root
        for name in reference[2:].split("/"):
            target = target.get(name) if isinstance(target, dict) else None
        types |= _schema_types(target, root, depth + 1)
    if not types:
        values = schema["enum"] if isinstance(schema.get("enum"), list) else []
        for value in [*values, schema["const"]] if "const" in schema else values:
            types.update(_TYPES.get(type(value), ()))
    return types


def _read(text: str, types: frozenset[str] | None) -> tuple[str, object]:
    """Return a value as JSON text, and the value."""
    if types and "string" not in types:
        bare = text.strip()
        json, value = _LITERALS.get(bare, (bare, END))
        if value is END:
            try:
                value = decode(bare)
            except ValueError:
                return quote(text), text
        whole = isinstance(value, float) and value.is_integer() and "integer" in types
        if whole or types.intersection(_TYPES[type(value)]):
            return json, value
    elif types and "null" in types and text in _NULL:
        return "null", None
    return quote(text), text
