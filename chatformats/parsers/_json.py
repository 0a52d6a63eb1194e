# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What the grammars share in which JSON decides where arguments end: a marker inside a string is text."""

from __future__ import annotations

import re

from ..parsing import END, Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_STRUCTURE: Final = re.compile(r'["{}\[\],]').search
_IN_STRING: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL).match


class JSONParser(Parser):
    """Go through JSON as it comes, from one character that matters to the next."""

    # The markers that end JSON, broken, where they stand outside of a string.
    json_ends: tuple[str, ...] = ()

    _in_string = _escaped = False
    _waiting: list[str]

    def _json(self, token: str, marker: bool) -> None:
        """Be the state in JSON."""
        if marker and self._in_string and token in self.stop:
            # The end of the turn if nothing follows, else text of the string.
            self._waiting = [token]
            self._state = self._after_stop
        elif marker and (
            token == END or (not self._in_string and (token in self.stop or token in self.json_ends))
        ):
            self._break_off(token)
            self._state(token, marker)
        else:
            self._scan(token)

    def _after_stop(self, token: str, marker: bool) -> None:
        if not marker and token.isspace():
            self._waiting.append(token)
            return
        self._state = self._json
        if token == END:
            self._break_off(token)
            for waiting in self._waiting:
                self._state(waiting, waiting in self.stop)
        else:
            text = "".join(self._waiting)
            self._at -= len(text)
            self._scan(text)
            self._at += len(text)
        self._state(token, marker)

    def _start_json(self) -> None:
        self._in_string = self._escaped = False
        self._state = self._json

    def _scan(self, text: str) -> None:
        """Read more JSON."""
        raise NotImplementedError

    def _break_off(self, token: str) -> None:
        """End what is being read, since a marker or the end follows that JSON does not have there."""
        raise NotImplementedError

    def _next(self, text: str, position: int) -> tuple[str, int]:
        """Return the next character of structure, or a quote that opens or closes a string, and its end."""
        if self._escaped and text:
            self._escaped = False
            position += 1
        if self._in_string:
            match = _IN_STRING(text, position)
            position = match.end() if match else position
            if position < len(text) and text[position] == '"':
                self._in_string = False
                return '"', position + 1
            self._escaped = position < len(text)
            return "", len(text)
        match = _STRUCTURE(text, position)
        if match is None:
            return "", len(text)
        self._in_string = match[0] == '"'
        return match[0], match.end()
