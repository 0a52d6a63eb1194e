# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Nemotron's calls: ``<TOOLCALL>[{"name": …, "arguments": …}, …]</TOOLCALL>``, a list in JSON.

The template: ``reference/nemotron-nano-v2.jinja``. Differs from what one would expect:

- it trims the content, so white space at its ends is layout;
- its instructions double the braces (``{{"name": …}}``): both are read, in either form;
- arguments may be a string of JSON, as in the instructions;
- each element of the list is a call, also one that is no object; a call without arguments has none;
- a call's arguments are streamed where its name stands before them, as the template writes it; others
  come at once, when the call is read.
"""

from __future__ import annotations

import re
from json import JSONEncoder

from ..parsing import END, ArgumentsDelta, Call, decode
from ._json import JSONParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from ..messages import Tools
    from ..parsing import Status

_CALLS: Final = "<TOOLCALL>"
_END_CALLS: Final = "</TOOLCALL>"
_encode: Final = JSONEncoder(ensure_ascii=False).encode
_HEAD: Final = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*', re.DOTALL)


class NemotronNanoV2Parser(JSONParser):
    """Read Nemotron's completions."""

    turns = ("<SPECIAL_11>",)
    call_openers = (_CALLS,)
    call_markers = (_END_CALLS,)
    call_closer = _END_CALLS
    json_ends = (_CALLS, _END_CALLS)

    def __init__(self, stop: tuple[str, ...], prompt: str | None = None, tools: Tools | None = None) -> None:
        super().__init__(stop, prompt, tools)
        # The list's beginning: layout, once a call or the list's end follows.
        self._opening: list[str] = []
        self._opened_at = 0
        self._bracket = False
        # How many brackets are open, and how many of them outside of an element.
        self._depth = self._level = 0
        self._call: Call | None = None
        # What stands between elements, and may be one that is no object.
        self._loose: list[str] = []
        self._loose_at = 0
        self._doubled = self._streams = False
        self._head = True
        self._streamed: list[str] = []

    def _open(self, opener: str) -> None:
        self._opening = [opener]
        self._opened_at = self._at
        self._bracket = False
        self._state = self._before_list

    def _before_list(self, token: str, marker: bool) -> None:
        """Read up to the first element: in reasoning, only a list of objects is one of calls."""
        text = "" if marker else token.lstrip()
        if text[:1] == "[" and not self._bracket:
            self._bracket = True
            text = text[1:].lstrip()
        if not marker and (not text or self._cut):
            self._opening.append(token)
        elif text[:1] == "{" or (self._bracket and not self._thinking):
            self._mark_off()
            start = "".join(self._opening[1:])
            self._opening = self._opening[:1]
            self._depth = 0
            self._level = int(self._bracket)
            self._call = None
            self._start_json()
            if start:
                at, self._at = self._at, self._opened_at + len(_CALLS)
                self._scan(start)
                self._at = at
            self._state(token, marker)
        elif self._thinking:
            self._resume()
            self._text("".join(self._opening))
            self._state(token, marker)
        else:
            self._call = Call(len(self._calls), self._opened_at, self._opening)
            self._confirm(self._call)
            self._state = self._no_list
            self._state(token, marker)

    def _no_list(self, token: str, marker: bool) -> None:
        call = self._call
        assert call
        if marker and (token == END or token == _CALLS or token in self.stop):
            bare = "".join(call.parts).strip() == _CALLS
            self._end(call, None, "unclosed" if bare else "malformed")
            self._state(token, marker)
            return
        call.parts.append(token)
        if marker and token == _END_CALLS:
            self._end(call, None, "malformed")

    def _scan(self, text: str) -> None:
        character, position, taken = "", 0, 0
        while True:
            character, position = self._next(text, position)
            if not character:
                break
            if self._call is None:
                outside = self._depth == self._level
                if character in "{[":
                    if character == "{" and outside:
                        self._lose(text[taken : position - 1], taken)
                        self._begin_element(position - 1)
                        taken = position
                    self._depth += 1
                    if self._depth == self._level and character == "[":
                        self._opening += [*self._loose, text[:position]]
                        self._loose = []
                        taken = position
                elif character in "]}" and not outside:
                    self._depth -= 1
                elif character == "]":
                    self._lose(text[taken : position - 1], taken)
                    self._end_list(character, text[position:])
                    return
                elif character == "," and outside:
                    self._lose(text[taken : position - 1], taken)
                    self._put("markup", ",")
                    taken = position
            elif character in "{[":
                if character == "{" and self._head and self._depth == self._level + 1 + self._doubled:
                    taken = self._try_head(text, taken, position - 1)
                self._depth += 1
            elif character in "]}":
                self._depth -= 1
                if self._streams and self._depth == self._level + 1 + self._doubled:
                    self._take(text[taken:position])
                    taken = position
                    self._streams = False
                elif self._depth == self._level:
                    self._take(text[taken:position])
                    taken = position
                    self._end_element(self._call)
                    if not self._level:
                        self._end_list("", text[position:])
                        return
        if self._call is not None:
            self._take(text[taken:])
        elif taken < len(text):
            if not self._loose:
                self._loose_at = self._at + taken
            self._loose.append(text[taken:])

    def _take(self, text: str) -> None:
        assert self._call
        if text:
            self._call.parts.append(text)
            if self._streams:
                self._streamed.append(text)
                self._events.append(ArgumentsDelta(self._call.index, text))

    def _begin_element(self, offset: int) -> None:
        self._flush_opening()
        call = Call(len(self._calls), self._at + offset, ["{"])
        self._confirm(call)
        self._call = call
        self._head = True
        self._doubled = self._streams = False
        self._streamed = []

    def _try_head(self, text: str, taken: int, position: int) -> int:
        """At an object in the element: see whether it is the arguments, their name known."""
        call = self._call
        assert call
        self._take(text[taken:position])
        head = "".join(call.parts)
        if head.strip() == "{" and not self._doubled:
            self._doubled = True
            return position
        self._head = False
        match = _HEAD.fullmatch(head, head.index("{", 1) if self._doubled else 0)
        if match:
            try:
                name = decode(match[1])
            except ValueError:
                return position
            self._named(call, str(name))
            self._streams = True
        return position

    def _end_element(self, call: Call) -> None:
        text = "".join(call.parts)
        self._call = None
        status: Status = "ok"
        arguments: object = None
        name: object = None
        try:
            element = decode(text.strip()[1:-1] if self._doubled else text)
            # What begins and ends with a brace is an object.
            name = element.get("name")  # type: ignore[attr-defined]
            arguments = json = element.get("arguments", {})  # type: ignore[attr-defined]
            if isinstance(json, str):
                arguments = decode(json)
        except ValueError:
            status = "invalid_json"
        if status == "ok":
            given = "".join(self._streamed)
            if not isinstance(arguments, dict) or (
                # Keys that stand twice: what was streamed is not what JSON reads.
                given and (name != call.name or decode(given) != arguments)
            ):
                status = "malformed"
            elif not given:
                self._named(call, name if isinstance(name, str) else "")
                json_text = json if isinstance(json, str) else _encode(json)
                self._events.append(ArgumentsDelta(call.index, json_text))
        elif call.name is None and isinstance(name, str):
            self._named(call, name)
        read = arguments if status == "ok" and isinstance(arguments, dict) else None
        self._end(call, read, status)
        self._start_json()

    def _lose(self, text: str, offset: int) -> None:
        """Take what stood between elements: white space, or a call that is no object."""
        if not self._loose:
            self._loose_at = self._at + offset
        loose = "".join(self._loose) + text
        self._loose = []
        if not loose.strip():
            self._flush_opening()
            if loose:
                self._put("markup", loose)
            return
        self._flush_opening()
        call = Call(len(self._calls), self._loose_at, [loose])
        self._confirm(call)
        self._end(call, None, "malformed")
        self._start_json()

    def _flush_opening(self) -> None:
        if self._opening:
            self._put("markup", "".join(self._opening))
            self._opening = []

    def _end_list(self, bracket: str, left: str) -> None:
        if bracket:
            self._put("markup", bracket)
        self._state = self._after_list
        if left:
            self._state(left, False)

    def _after_list(self, token: str, marker: bool) -> None:
        left = token if marker else token.lstrip()
        if len(left) < len(token):
            self._put("markup", token[: len(token) - len(left)])
        if self._cut and not marker:
            self._put("markup", left)
        elif marker and token == _END_CALLS:
            self._put("markup", token)
            self._resume()
            self._quiet = True
        elif left or marker:
            self._problem("a list of tool calls without its end", self._opened_at)
            self._resume()
            self._state(left, marker)

    def _break_off(self, token: str) -> None:
        call = self._call
        if call is not None:
            self._end(call, None, "invalid_json" if token in self.json_ends else "unclosed")
        elif self._opening and not "".join(self._loose).strip():
            # Nothing but the beginning of a list.
            text = "".join(self._opening) + "".join(self._loose)
            self._loose = []
            self._opening = []
            call = Call(len(self._calls), self._opened_at, [text])
            self._confirm(call)
            self._end(call, None, "malformed" if token in self.json_ends else "unclosed")
        else:
            self._lose("", 0)
        self._call = None
        self._state = self._after_list
