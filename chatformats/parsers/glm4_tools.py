# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The calls that GLM-4's template tells the model to write: a name, then ``<arg_key>`` and ``<arg_value>``.

The template: ``reference/glm4-tools.jinja``, which never writes a call. Differs from what one would expect:

- white space in a value is the value's, as the instruction has none round it; a line break at each end,
  both there, is layout;
- white space round calls and reasoning is layout, that of a plain answer is content;
- the template knows no reasoning; ``<think>`` at the start of a completion is read, since GLM models
  that reason write it.

A missing ``</arg_value>`` is read, with a problem noted, where ``</tool_call>`` stands at the end.
"""

from __future__ import annotations

from ..parsing import END
from ._tagged import STOP, TaggedParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_CALL: Final = "<tool_call>"
_END_CALL: Final = "</tool_call>"
_KEY: Final = "<arg_key>"
_END_KEY: Final = "</arg_key>"
_VALUE: Final = "<arg_value>"
_END_VALUE: Final = "</arg_value>"
_PATHS: Final = {
    _END_VALUE: {_KEY: "", _END_CALL: ""},
    _END_CALL: {STOP: STOP, END: ""},
    STOP: {END: ""},
}


class GLM4ToolsParser(TaggedParser):
    """Read GLM-4's completions."""

    turns = ("答：", "<|assistant|>")
    trims = None
    call_openers = (_CALL,)
    call_markers = (_KEY, _END_KEY, _VALUE, _END_VALUE, _END_CALL)
    value_ends = (_END_VALUE, _END_CALL)
    value_closer = _END_VALUE
    paths = _PATHS

    def _open(self, opener: str) -> None:
        self._start(opener, tentative=self._thinking)
        self._state = self._in_name

    def _in_name(self, token: str, marker: bool) -> None:
        if not marker:
            self._name.append(token)
            self._call.parts.append(token)
            return
        name = "".join(self._name).strip("\r\n")
        # What has white space or is JSON is no name, but prose about calls or a call of another format.
        if token not in (_KEY, _END_CALL) or len(name.split()) > 1 or name != name.strip() or "{" in name:
            self._break_off(token, marker)
            return
        self._named(self._call, name)
        self._state = self._body
        self._state(token, marker)

    def _body(self, token: str, marker: bool) -> None:
        call = self._call
        if token == _END_CALL:
            call.parts.append(token)
            self._close_arguments()
            self._end(call, self._arguments)
        elif token == _KEY:
            call.parts.append(token)
            self._name = []
            self._state = self._in_key
        elif marker or not token.isspace():
            self._break_off(token, marker)
        else:
            call.parts.append(token)

    def _in_key(self, token: str, marker: bool) -> None:
        if marker and token != _END_KEY:
            self._break_off(token, marker)
            return
        self._call.parts.append(token)
        if marker:
            self._state = self._after_key
        else:
            self._name.append(token)

    def _after_key(self, token: str, marker: bool) -> None:
        if token != _VALUE and (marker or not token.isspace()):
            self._break_off(token, marker)
            return
        self._call.parts.append(token)
        if marker:
            self._begin_value("".join(self._name).strip())

    def _cut_start(self, text: str) -> str:
        if text[0] == "\n":
            # Whether it is cut, the end of the value tells.
            self._whole = True
            self._streams = False
        return text

    def _cut_end(self, text: str) -> str:
        return text[1:-1] if text.startswith("\n") and text.endswith("\n") else text
