# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Ministral's calls: ``[TOOL_CALLS]name[ARGS]{…}``, repeated.

The template: ``reference/ministral-3.jinja``. Differs from what one would expect:

- nothing is layout: content is read as it is, save white space between calls and after the last;
- the template knows no reasoning; ``[THINK]`` at the start of a completion is read, since the models of
  the family that reason write it, and everything in it is reasoning, markers of calls included;
- ``[CALL_ID]`` after a name, as the family's earlier models have it, is kept in the raw text only;
- a call that is not written like this lasts to the next one or to the end of the turn.
"""

from __future__ import annotations

from ..parsing import END, ArgumentsDelta, decode
from ._json import JSONParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..messages import Tools
    from ..parsing import Call

_CALL = "[TOOL_CALLS]"
_ARGUMENTS = "[ARGS]"
_ID = "[CALL_ID]"


class Ministral3Parser(JSONParser):
    """Read Ministral's completions."""

    opening = "[THINK]"
    closing = "[/THINK]"
    turns = ("[/INST]", "[/TOOL_RESULTS]")
    call_openers = (_CALL,)
    call_markers = (_ARGUMENTS, _ID)
    json_ends = (_CALL,)
    calls_in_reasoning = False
    trims = False

    def __init__(self, stop: tuple[str, ...], prompt: str | None = None, tools: Tools | None = None) -> None:
        super().__init__(stop, prompt, tools)
        self._call: Call
        self._name: list[str] = []
        self._arguments: list[str] = []
        self._depth = 0

    def _open(self, opener: str) -> None:
        self._call = self._begin(opener)
        self._name = []
        self._state = self._in_name

    def _in_name(self, token: str, marker: bool) -> None:
        call = self._call
        if marker and self._ends(token):
            # So far it may have been a name.
            is_name = not "".join(self._name).lstrip("[{").strip("\n").count(" ")
            self._end(call, None, "unclosed" if token == END and is_name else "malformed")
            self._state(token, marker)
            return
        call.parts.append(token)
        if marker and token in self.call_markers:
            self._named(call, "".join(self._name))
            self._state = self._in_id if token == _ID else self._before_arguments
        else:
            self._name.append(token)

    def _in_id(self, token: str, marker: bool) -> None:
        if marker and self._ends(token):
            self._end(self._call, None, "unclosed" if token == END else "malformed")
            self._state(token, marker)
            return
        self._call.parts.append(token)
        if marker and token == _ARGUMENTS:
            self._state = self._before_arguments

    def _before_arguments(self, token: str, marker: bool) -> None:
        if marker and self._ends(token):
            self._end(self._call, None, "unclosed" if token == END else "invalid_json")
            self._state(token, marker)
            return
        text = token.lstrip()
        self._call.parts.append(token[: len(token) - len(text)])
        if text:
            self._arguments = []
            self._depth = 0
            self._start_json()
            if marker or text[0] != "{":
                self._state = self._no_object
            self._state(text, marker)

    def _no_object(self, token: str, marker: bool) -> None:
        if not (marker and self._ends(token)):
            self._call.parts.append(token)
            self._arguments.append(token)
            return
        try:
            decode("".join(self._arguments))
        except ValueError:
            self._end(self._call, None, "invalid_json")
        else:
            self._end(self._call, None, "malformed")
        self._state(token, marker)

    def _scan(self, text: str) -> None:
        character, position = "", 0
        while True:
            character, position = self._next(text, position)
            # Only braces: in an object, brackets that do not match are for JSON to find.
            if character == "{":
                self._depth += 1
            elif character == "}":
                self._depth -= 1
            if not character or not self._depth:
                break
        read, left = text[:position], text[position:]
        self._call.parts.append(read)
        self._arguments.append(read)
        self._events.append(ArgumentsDelta(self._call.index, read))
        if character:
            try:
                arguments = decode("".join(self._arguments))
            except ValueError:
                self._end(self._call, None, "invalid_json")
            else:
                # JSON that begins with a brace is an object.
                self._end(self._call, arguments)  # type: ignore[arg-type]
            if left:
                self._state(left, False)

    def _break_off(self, token: str) -> None:
        self._end(self._call, None, "unclosed" if token == END else "invalid_json")

    def _ends(self, marker: str) -> bool:
        return marker == END or marker == _CALL or marker in self.stop
