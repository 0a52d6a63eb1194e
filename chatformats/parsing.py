# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What a completion is read into, and what every parser shares; the grammars are in ``parsers``.

There is one way to read a completion, in chunks: ``parse`` feeds it whole. A parser cuts the text at the
markers of its format and hands the tokens, text or marker, to its state, a method. It holds back the end
of a chunk only where that may still become a marker, never looks at a character twice for markers, and
keeps every character in a piece, so that the pieces joined are the completion again.

What holds for every format:

- reasoning is open at the start if the prompt says so. Without a prompt, it is open only where the
  completion itself begins with the opening tag; a closing tag that nothing opened is content, and a
  problem is noted;
- a tag or an opener of a call between two equal quotation marks or backticks is quoted: it is text;
- one line break is cut at each end of the reasoning;
- an opener of a call in open reasoning counts where a call follows it, and is text otherwise;
- after the end of the turn, everything is kept in pieces, and is part of nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from json import JSONDecoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final, Literal, NoReturn

    from .messages import AssistantMessage, ToolCall, Tools

    Kind = Literal["content", "reasoning", "tool_call", "markup", "rest"]
    Status = Literal["ok", "unclosed", "invalid_json", "missing_name", "malformed", "unknown_tool"]

# The marker after the last character: a state is told of the end as of any other marker.
END: Final = ""
_QUOTES: Final = ("`", '"', "'")
_WHAT: Final[Mapping[str, str]] = {
    "unclosed": "a tool call that does not end",
    "invalid_json": "a tool call whose arguments are not JSON",
    "missing_name": "a tool call without a name",
    "malformed": "a tool call that is not written as the format has it",
    "unknown_tool": "a call of a tool that is not among the tools",
}


@dataclass(slots=True)
class ContentDelta:
    """More of the content."""

    text: str


@dataclass(slots=True)
class ReasoningDelta:
    """More of the reasoning."""

    text: str


@dataclass(slots=True)
class ToolCallBegin:
    """A tool call begins; ``name`` is empty where the model wrote none."""

    index: int
    name: str


@dataclass(slots=True)
class ArgumentsDelta:
    """More of the JSON text of a call's arguments: all of them joined can be read once the call is done."""

    index: int
    text: str


@dataclass(slots=True)
class ToolCallDone:
    """A tool call is read; ``call.status`` says whether it can be made."""

    index: int
    call: ParsedToolCall


@dataclass(slots=True)
class Problem:
    """What was malformed, and at which character of the completion.

    >>> print(Problem("a tool call without a name", 17))
    at 17: a tool call without a name
    """

    problem: str
    position: int

    def __str__(self) -> str:
        return f"at {self.position}: {self.problem}"


@dataclass(slots=True)
class ParsedToolCall:
    """A tool call that the model attempted.

    ``raw`` is its text. ``arguments`` are ``None`` where they cannot be trusted: in a call that does not
    end, is malformed or has broken JSON. ``status`` is ``"ok"``, ``"unclosed"``, ``"invalid_json"``,
    ``"missing_name"``, ``"malformed"`` or, where the tools are known, ``"unknown_tool"``.
    """

    name: str
    arguments: dict[str, object] | None
    raw: str
    status: Status


@dataclass(slots=True)
class ParsedMessage:
    """What a model wrote, in its parts.

    ``reasoning_complete`` is ``True`` once reasoning was closed, ``False`` while it is open, and ``None``
    where there is none, as is ``reasoning_content``. ``complete`` says whether the end-of-turn marker was
    seen. ``pieces`` are all of the completion's text in order, each with its kind: ``"content"``,
    ``"reasoning"``, ``"tool_call"``, ``"markup"`` or, after the end of the turn, ``"rest"``.
    """

    content: str
    reasoning_content: str | None
    reasoning_complete: bool | None
    tool_calls: list[ParsedToolCall]
    complete: bool
    problems: list[Problem]
    pieces: list[tuple[Kind, str]]

    def message(self) -> AssistantMessage:
        """Return an assistant message that ``render`` accepts.

        A call that cannot be written as one (no name, no arguments that can be trusted) stays in the
        content as the model wrote it.
        """
        content: list[str] = []
        calls: list[ToolCall] = []
        read = iter(self.tool_calls)
        for kind, text in self.pieces:
            if kind == "content":
                content.append(text)
            elif kind == "tool_call":
                call = next(read)
                if call.arguments is None or call.status == "missing_name":
                    content.append(text)
                else:
                    calls.append(
                        {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                    )
        message: AssistantMessage = {"role": "assistant", "content": "".join(content)}
        if self.reasoning_content:
            message["reasoning_content"] = self.reasoning_content
        if calls:
            message["tool_calls"] = calls
        return message


Event = ContentDelta | ReasoningDelta | ToolCallBegin | ArgumentsDelta | ToolCallDone


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_decode: Final = JSONDecoder(parse_constant=_refuse).decode


def decode(text: str) -> object:
    """Return what JSON says; raises ValueError, also for NaN and for what is nested too deep."""
    try:
        return _decode(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


@dataclass(slots=True)
class _Piece:
    """Text of one kind; it may be held until its kind is known."""

    kind: Any
    parts: list[str]


@dataclass(slots=True)
class Call:
    """A tool call that is being read; a tentative one may turn out to be text, until it is confirmed."""

    index: int
    at: int
    parts: list[str]
    tentative: bool = False
    name: str | None = None
    begun: bool = False


class Parser:
    """Read a completion in chunks: ``feed`` each, then ``close``.

    A grammar is a subclass: its markers, and the states that read a call. A state takes a token and
    whether it is a marker; ``_turn`` is the state between calls.
    """

    opening = "<think>"
    closing = "</think>"
    # What a turn of the model begins with: tags before it are not of this turn.
    turns: tuple[str, ...] = ()
    call_openers: tuple[str, ...] = ()
    # The other markers of a call, and the one that is layout if it stands once more after a call.
    call_markers: tuple[str, ...] = ()
    call_closer = END
    calls_in_reasoning = True
    # Whether white space at both ends of the content is layout. None: if there is any markup.
    trims: bool | None = True
    # Whether the line break before a call is layout, where white space otherwise is content.
    break_before_call = False

    def __init__(self, stop: tuple[str, ...], prompt: str | None = None, tools: Tools | None = None) -> None:
        markers = (self.opening, self.closing, *self.call_openers, *self.call_markers, *stop)
        self._find, self._firsts, self._prefixes, self._longest = _lexer(markers)
        self.stop = stop
        self.tools = None if tools is None else _functions(tools)
        #: The events that ``close`` released.
        self.final_events: list[Event] = []
        self._events: list[Event] = []
        self._message: ParsedMessage | None = None
        self._tail = ""
        self._fed = 0
        self._at = 0
        self._state: Callable[[str, bool], None] = self._turn
        self._thinking = self._opened_by(prompt)
        self._reasoned: bool | None = False if self._thinking else None
        # A line break after the opening tag is layout, once: most prompts hold it already.
        ends = (self.opening,) if self.opening else self.turns
        self._cut_break = prompt is not None and prompt.endswith(ends)
        self._break = False
        self._quiet = self.trims is not False
        self._written = False
        self._marked = False
        self._last = ""
        self._quoted = ""
        self._pieces: list[_Piece] = []
        # White space that is content if text follows it, and layout otherwise.
        self._held: list[_Piece] = []
        self._calls: list[ParsedToolCall] = []
        self._problems: list[Problem] = []
        self._complete = self._overrun = self._cut = False

    def feed(self, text: str) -> list[Event]:
        """Take the next characters and return what they tell."""
        if self._message is not None:
            raise ValueError("the parser is closed")
        events: list[Event] = []
        self._events = events
        base = self._fed
        tail = self._tail
        if tail:
            text = tail + text
            base -= len(tail)
            self._tail = ""
        self._fed = base + len(text)
        for first in self._firsts:
            if first in text:
                break
        else:
            # Most tokens of a stream: it takes half the time to find no marker in them this way.
            if text:
                self._at = base
                self._state(text, False)
            return events
        position = 0
        for match in self._find(text):
            start, end = match.span()
            if start > position:
                self._at = base + position
                self._state(text[position:start], False)
            self._at = base + start
            self._state(match[0], True)
            position = end
        hold = len(text)
        for first in self._firsts:
            start = text.rfind(first, max(position, hold - self._longest))
            if start >= 0 and text[start:] in self._prefixes:
                self._tail = text[start:]
                hold = start
                break
        if hold > position:
            self._at = base + position
            self._state(text[position:hold], False)
        return events

    def read(self, completion: str) -> ParsedMessage:
        """Feed a completion whole, and close."""
        self.feed(completion)
        return self.close()

    def close(self) -> ParsedMessage:
        """Return the message; ``final_events`` then are the events that were still held back."""
        if self._message is not None:
            return self._message
        self._events = self.final_events
        self._at = self._fed - len(self._tail)
        if self._tail:
            # A marker that was cut: text in text, and no fault in a call, which does not end then.
            self._cut = True
            self._state(self._tail, False)
        self._at = self._fed
        self._state(END, True)
        self._settle()
        pieces: list[tuple[Kind, str]] = []
        for kind, same in groupby(self._pieces, lambda piece: piece.kind):
            texts = ["".join(piece.parts) for piece in same]
            pieces += [(kind, text) for text in texts] if kind == "tool_call" else [(kind, "".join(texts))]
        self._message = ParsedMessage(
            "".join(text for kind, text in pieces if kind == "content"),
            None if self._reasoned is None else "".join(text for kind, text in pieces if kind == "reasoning"),
            self._reasoned,
            self._calls,
            self._complete,
            sorted(self._problems, key=lambda problem: problem.position),
            pieces,
        )
        return self._message

    def _opened_by(self, prompt: str | None) -> bool:
        if not prompt:
            return False
        turn = max((prompt.rfind(marker) for marker in self.turns), default=-1)
        opened = prompt.rfind(self.opening) if self.opening else turn
        return opened >= max(turn, 0) and prompt.rfind(self.closing) < opened

    # Between calls.

    def _turn(self, token: str, marker: bool) -> None:
        if not marker:
            self._text(token)
        elif token == END:
            pass
        elif self._last in _QUOTES:
            # Whether it is quoted, the next character tells.
            self._quoted = token
            self._state = self._after_quoted
        else:
            self._mark(token)

    def _after_quoted(self, token: str, marker: bool) -> None:
        quoted = self._quoted
        self._state = self._turn
        if not marker and token[0] == self._last:
            self._text(quoted)
        else:
            at = self._at
            self._at = at - len(quoted)
            self._mark(quoted)
            self._at = at
        self._state(token, marker)

    def _mark(self, token: str) -> None:
        if token in self.stop:
            self._settle()
            self._put("markup", token)
            self._complete = True
            self._state = self._after_end
        elif token in self.call_openers and (self.calls_in_reasoning or not self._thinking):
            self._open(token)
        elif self._thinking and token == self.closing:
            if self._break:
                self._put("markup", "\n")
                self._break = False
            self._put("markup", token)
            self._thinking = False
            self._reasoned = self._marked = True
            self._last = ""
        elif token == self.opening and not self._written and not self._calls and self._reasoned is not True:
            # Repeated, it opens nothing more.
            if self._thinking and not self._fresh():
                self._text(token)
                return
            self._put("markup", token)
            self._thinking = self._cut_break = self._marked = True
            self._reasoned = False
            self._last = ""
        elif (
            not self._thinking
            and (self._quiet or not self._written)
            and token == (self.call_closer if self._calls else self.closing)
        ):
            self._put("markup", token)
        else:
            if token == self.closing and self._reasoned is None:
                self._problem("reasoning ends that nothing opened; a prompt would tell where it began")
            self._text(token)

    def _fresh(self) -> bool:
        return all(piece.kind == "markup" for piece in self._pieces) and not self._break

    def _text(self, text: str) -> None:
        if self._thinking:
            self._reason(text)
        else:
            self._write(text)

    def _reason(self, text: str) -> None:
        if self._cut_break:
            self._cut_break = False
            if text[0] == "\n":
                self._put("markup", "\n")
                text = text[1:]
                if not text:
                    return
        self._last = text[-1]
        if self._break:
            text = "\n" + text
        # The last line break may be the one before the closing tag.
        self._break = self._last == "\n"
        if self._break:
            text = text[:-1]
        if text:
            self._put("reasoning", text)
            self._events.append(ReasoningDelta(text))

    def _write(self, text: str) -> None:
        self._last = text[-1]
        if self._quiet:
            core = text.lstrip()
            if len(core) < len(text):
                self._hold(text[: len(text) - len(core)])
            if not core:
                return
            text = core
            self._quiet = False
        if self.trims is not False:
            core = text.rstrip()
            if not core:
                self._hold(text)
                return
        else:
            core = text[:-1] if self.break_before_call and self._last == "\n" else text
        self._release(core)
        if len(core) < len(text):
            self._hold(text[len(core) :])

    def _hold(self, space: str) -> None:
        if self._held and self._pieces[-1] is self._held[-1]:
            self._pieces[-1].parts.append(space)
        else:
            piece = _Piece("held", [space])
            self._pieces.append(piece)
            self._held.append(piece)

    def _release(self, text: str) -> None:
        """Write content, after the white space that is content since text follows it."""
        held = self._held
        if held:
            self._held = []
            if not self._written and (self.trims or (self.trims is None and self._marked)):
                for piece in held:
                    piece.kind = "markup"
            else:
                space = ""
                for piece in held:
                    piece.kind = "content"
                    space += "".join(piece.parts)
                if self._pieces[-1] is held[-1]:
                    # Merged at once: an answer has as many of them as words.
                    last = "".join(self._pieces.pop().parts)
                    self._put("content", last)
                self._written = True
                self._events.append(ContentDelta(space + text))
                if text:
                    self._put("content", text)
                return
        if text:
            self._put("content", text)
            self._written = True
            self._events.append(ContentDelta(text))

    def _settle(self) -> None:
        """Decide what was held back, since neither text nor a call follows it."""
        if self._break:
            self._break = False
            self._put("reasoning", "\n")
            self._events.append(ReasoningDelta("\n"))
        if self.trims or (self.trims is None and self._marked) or (self.trims is False and self._quiet):
            self._drop()
        else:
            self._release("")

    def _drop(self) -> None:
        for piece in self._held:
            piece.kind = "markup"
        self._held.clear()

    def _put(self, kind: Kind, text: str) -> None:
        if self._pieces and kind != "tool_call" and self._pieces[-1].kind == kind:
            self._pieces[-1].parts.append(text)
        else:
            self._pieces.append(_Piece(kind, [text]))

    def _problem(self, problem: str, at: int | None = None) -> None:
        self._problems.append(Problem(problem, self._at if at is None else at))

    def _after_end(self, token: str, marker: bool) -> None:
        if token:
            self._put("rest", token)
            text = token.lstrip()
            if text and not self._overrun:
                self._overrun = True
                self._problem("text after the end of the turn", self._at + len(token) - len(text))

    # Calls.

    def _open(self, opener: str) -> None:
        """Begin to read a call."""
        raise NotImplementedError

    def _begin(self, opener: str, tentative: bool = False) -> Call:
        """Return a new call."""
        call = Call(len(self._calls), self._at, [opener], tentative)
        if not tentative:
            self._confirm(call)
        return call

    def _confirm(self, call: Call) -> None:
        call.tentative = False
        self._mark_off()
        if call.name is not None:
            self._announce(call)

    def _mark_off(self) -> None:
        """Take what was held back for layout, since a call follows it."""
        self._marked = True
        if self._break:
            self._break = False
            self._put("markup", "\n")
        if self.trims is False:
            self._drop()

    def _named(self, call: Call, name: str) -> None:
        call.name = name
        if not call.tentative:
            self._announce(call)

    def _announce(self, call: Call) -> None:
        if not call.begun:
            call.begun = True
            self._events.append(ToolCallBegin(call.index, call.name or ""))

    def _abandon(self, call: Call) -> None:
        """Take what was read of a tentative call for text."""
        self._resume()
        self._text("".join(call.parts))

    def _end(self, call: Call, arguments: dict[str, object] | None, status: Status = "ok") -> None:
        if call.tentative:
            self._confirm(call)
        self._announce(call)
        name = call.name or ""
        if status == "ok":
            if not name.strip():
                status = "missing_name"
            elif self.tools is not None and name not in self.tools:
                status = "unknown_tool"
        if status != "ok":
            self._problem(_WHAT[status], call.at)
        raw = "".join(call.parts)
        read = ParsedToolCall(name, arguments, raw, status)
        self._put("tool_call", raw)
        self._calls.append(read)
        self._events.append(ToolCallDone(call.index, read))
        self._resume()
        self._quiet = True

    def _resume(self) -> None:
        self._state = self._turn
        self._last = ""


@lru_cache(maxsize=64)
def _lexer(
    markers: tuple[str, ...],
) -> tuple[Callable[[str], list[re.Match[str]]], tuple[str, ...], frozenset[str], int]:
    known = {marker for marker in markers if marker}
    match = re.compile("|".join(map(re.escape, known))).match
    # A marker's first character stands nowhere else in it, so only its last place can begin a marker.
    firsts = tuple(sorted({marker[0] for marker in known}))
    prefixes = frozenset(marker[:end] for marker in known for end in range(1, len(marker)))

    def find(text: str) -> list[re.Match[str]]:
        # From one first character to the next: a third of the time of a search for the markers.
        found = []
        for first in firsts:
            start = text.find(first)
            while start >= 0:
                marker = match(text, start)
                if marker:
                    found.append(marker)
                start = text.find(first, start + 1)
        if len(firsts) > 1:
            found.sort(key=re.Match.start)
        return found

    return find, firsts, prefixes, max(map(len, known)) - 1


def _functions(tools: Tools) -> dict[str, Mapping[str, object]]:
    """Return the tools' parameters by name; what is no tool is none, whatever it is."""
    found: dict[str, Mapping[str, object]] = {}
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, dict) else tool
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found[function["name"]] = parameters if isinstance(parameters, dict) else {}
    return found
