# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The calls of HebaTron and JoyAI: ``<tool_call>`` with ``<function=…>`` and ``<parameter=…>`` inside.

The templates: ``reference/hebatron.jinja``, ``reference/joyai-llm-flash.jinja``. As they write a value, one
line break at each end of it is layout. Beyond the grammar these are read, with a problem noted, for models
write them:

- ``<function=…>`` at the start of a line, where a parameter or the function's end follows it;
- several functions in one ``<tool_call>``;
- a missing ``</parameter>`` or ``</function>`` where the rest of the call's end stands before the next call
  or the end of the turn, both where it stands before the end;
- a missing ``</parameter>`` before a line that opens a parameter that the tool has and the call has not yet.

A value that holds the very tags that end it, in their order, is read as ended there.
"""

from __future__ import annotations

from ..parsing import END
from ._tagged import STOP, TaggedParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_CALL: Final = "<tool_call>"
_END_CALL: Final = "</tool_call>"
_FUNCTION: Final = "<function="
_END_FUNCTION: Final = "</function>"
_PARAMETER: Final = "<parameter="
_END_PARAMETER: Final = "</parameter>"
# With the tag before it: what is longer is no parameter's name. A bound keeps the time linear.
_LONGEST_KEY: Final = 256
# The rest of a call's end, after which the value is taken for ended if a call or the end of the turn follows.
_CLOSED: Final = "closed"
_PATHS: Final = {
    _END_PARAMETER: {_PARAMETER: "", _END_FUNCTION: _END_FUNCTION + _END_PARAMETER, _END_CALL: _CLOSED},
    _END_FUNCTION + _END_PARAMETER: {_END_CALL: "", _FUNCTION: "", _CALL: _CALL, STOP: STOP, END: ""},
    _END_FUNCTION: {_END_CALL: _CLOSED},
    _CLOSED: {_CALL: _CALL, STOP: STOP, END: ""},
    _CALL: {_FUNCTION: ""},
    _END_CALL: {STOP: STOP, END: ""},
    STOP: {END: ""},
}


class FunctionTagsParser(TaggedParser):
    """Read ``<function=…>`` calls."""

    call_openers = (_CALL, _FUNCTION)
    call_markers = (_END_FUNCTION, _PARAMETER, _END_PARAMETER, _END_CALL)
    value_ends = (_END_PARAMETER, _END_FUNCTION, _END_CALL)
    value_closer = _END_PARAMETER
    paths = _PATHS

    _bare = _break_in_value = False

    def _open(self, opener: str) -> None:
        self._bare = opener == _FUNCTION
        if self._bare and self._last not in ("", "\n"):
            self._text(opener)
            return
        self._start(opener, tentative=self._bare or self._thinking)
        self._state = self._in_name if self._bare else self._opened

    def _opened(self, token: str, marker: bool) -> None:
        if token == _FUNCTION:
            self._state = self._in_name
        elif marker or not token.isspace():
            self._break_off(token, marker)
            return
        self._call.parts.append(token)

    def _in_name(self, token: str, marker: bool) -> None:
        left = self._read_name(token, marker)
        if left is not None:
            self._named(self._call, "".join(self._name))
            self._state = self._body
            if left:
                self._state(left, False)

    def _in_key(self, token: str, marker: bool) -> None:
        left = self._read_name(token, marker)
        if left is not None:
            self._begin_value("".join(self._name))
            if left:
                self._state(left, False)

    def _read_name(self, token: str, marker: bool) -> str | None:
        """Read up to a ``>``; return what follows it, or None before it is met."""
        name, end, left = token.partition(">")
        if marker or "\n" in name or "<" in name:
            self._break_off(token, marker)
            return None
        self._name.append(name)
        self._call.parts.append(name + end)
        return left if end else None

    def _body(self, token: str, marker: bool) -> None:
        call = self._call
        if token == _PARAMETER:
            call.parts.append(token)
            self._name = []
            self._state = self._in_key
        elif token == _END_FUNCTION:
            call.parts.append(token)
            self._close_arguments()
            if self._bare:
                self._problem("a function outside of a tool call", call.at)
                self._end(call, self._arguments)
            else:
                self._state = self._after_function
        elif token == _END_CALL and not call.tentative:
            self._problem("a tool call whose function does not end", call.at)
            call.parts.append(token)
            self._close_arguments()
            self._end(call, self._arguments)
        elif marker or not token.isspace():
            self._break_off(token, marker)
        else:
            call.parts.append(token)

    def _after_function(self, token: str, marker: bool) -> None:
        call = self._call
        if token == _END_CALL:
            call.parts.append(token)
            self._end(call, self._arguments)
        elif token == _FUNCTION:
            self._problem("a tool call of several functions", call.at)
            self._end(call, self._arguments)
            self._state(token, marker)
        else:
            left = token if marker else token.lstrip()
            call.parts.append(token[: len(token) - len(left)])
            if self._cut and not marker:
                call.parts.append(left)
            elif left or marker:
                self._end(call, None, "unclosed")
                self._state(left, marker)

    def _begin_value(self, key: str) -> None:
        super()._begin_value(key)
        self._break_in_value = False

    def _in_value(self, token: str, marker: bool) -> None:
        if token == _PARAMETER and self.tools and self._value and self._call.parts[-1].endswith("\n"):
            self._trial = [(token, True)]
            self._state = self._in_next_key
        else:
            super()._in_value(token, marker)

    def _in_next_key(self, token: str, marker: bool) -> None:
        """Read a line in a value that may open a parameter of the tool."""
        if not marker:
            self._trial.append((token, False))
        line = "".join(text for text, _ in self._trial)[len(_PARAMETER) : _LONGEST_KEY]
        key, _, left = line.partition(">")
        if not marker and len(line) < _LONGEST_KEY - len(_PARAMETER) and not left and "\n" not in line:
            return
        if left[:1] == "\n" and key != self._key and key not in self._arguments and self._declared(key):
            self._end_value()
            self._problem("an argument without its closing tag", self._call.at)
            self._state = self._body
            for text, is_marker in self._trial:
                self._state(text, is_marker)
        else:
            self._add("".join(text for text, _ in self._trial))
            self._state = self._in_value
        if marker:
            self._state(token, marker)

    def _cut_start(self, text: str) -> str:
        return text[1:] if text[0] == "\n" else text

    def _cut_end(self, text: str) -> str:
        return text.removesuffix("\n")

    def _stream(self, text: str) -> None:
        # The last line break may be the one before the closing tag.
        if self._break_in_value:
            text = "\n" + text
        self._break_in_value = text[-1] == "\n"
        super()._stream(text[:-1] if self._break_in_value else text)


class HebatronParser(FunctionTagsParser):
    """Read HebaTron's completions; the template trims the content, so white space at its ends is layout."""

    turns = ("<|im_start|>",)


class JoyAILLMFlashParser(FunctionTagsParser):
    """Read JoyAI's completions: the content as it is, but for the line break before a call.

    Reasoning has no opening tag. It is open after a prompt that ends its turn's beginning without
    ``<|end_of_thought|>``.
    """

    opening = ""
    closing = "<|end_of_thought|>"
    turns = ("<|Assistant|>",)
    trims = False
    break_before_call = True
