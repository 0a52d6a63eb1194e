# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A growing conversation: its prompt costs what is new in it, not what it holds.

Loaded when ``conversation`` or ``bridge`` of a format is first called.

The prompt is kept in three parts: the head (what stands before the first turn), the body (the turns that
the next message cannot change any more), and the tail (the last message, and what the template writes
behind it), which is written anew each time. No format looks further ahead than one message, so everything
before the last one is settled; what a template goes back for (``_rewrites``) is written once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .errors import ChatFormatError
from .formatter import ChatFormatter, Sink
from .spans import Rendered, Segment, SpanSink
from .values import as_messages, is_mapping, roles_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final, Literal, Protocol, TypeAlias, overload

    from .messages import Messages, Tools

    Message: TypeAlias = Mapping[str, object]
    # The newest first: a fork shares what came before it.
    Linked: TypeAlias = tuple[Message, "Linked"] | None
else:
    Protocol = object

# Settled text is joined to pieces of at least this many characters: adding to one of them copies it, which
# takes 0.2 µs, and a piece of its own for each message would double what a short one takes.
_CHUNK: Final = 4096


class Delta(NamedTuple):
    """How a prompt follows from the one before: keep its first ``keep`` characters, then append ``text``."""

    keep: int
    text: str


class Recent(Sequence[Any]):
    """The end of a sequence, found under the indices of the whole; ``base`` is the first that is there."""

    __slots__ = ("base", "items")

    def __init__(self, items: list[Any], base: int) -> None:
        self.items = items
        self.base = base

    def __len__(self) -> int:
        return self.base + len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Any: ...
        @overload
        def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int):
            return self.items[index - self.base]
        start, stop, base = index.start, index.stop, self.base
        if stop is None:
            # From a message on; or all of them, backwards.
            return self.items[index if start is None else slice(start - base, None)]
        start, stop, _ = index.indices(base + len(self.items))
        return self.items[max(start - base, 0) : max(stop - base, 0)]

    def settled(self, start: int) -> list[Any]:
        """Return the items from an index on but the last, which may still change."""
        return self.items[start - self.base : -1]

    def roles(self) -> Recent:
        """Return the messages' roles, under the same indices."""
        return Recent(roles_of(self.items, self.base), self.base)


class Resumable(ChatFormatter, Protocol):
    """What a conversation asks of a format."""

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: Any,
        add_generation_prompt: bool,
        tools: Tools | None,
        *options: Any,
    ) -> None:
        """Write the messages from ``start`` on, and what stands behind them.

        ``state`` is what the format knows of the messages before ``start``, or ``None`` to write from the
        beginning, head and all.
        """

    def _state(self, messages: Recent, start: int, state: Any, *options: Any) -> Any:
        """Return the state before the last message; ``start`` and ``state`` are as they were given.

        ``None`` stands for a format that can only write from the beginning. Raises ChatFormatError for what
        ``_resume`` refuses in the last message only where no generation prompt follows.
        """

    def _rewrites(self, *options: Any) -> Mapping[str, Literal["head", "turns"]]:
        """Return the roles of messages that change what is already written, and what they change.

        ``"turns"``: those since the last message of that role; ``"head"``: it gathers all such messages.
        """

    def _end_of_turn(self, *options: Any) -> str:
        """Return what the model ends its turn with, or ``""``."""

    def _as_message(self, sampled: str, prompt: str) -> Message:
        """Return the message whose turn is what the model wrote behind a prompt."""


class _Chunk(NamedTuple):
    """A piece of settled text, linked to the one before: forks share them."""

    before: _Chunk | None
    start: int
    text: str


class _Written(NamedTuple):
    """The segments of settled turns, and which messages they leave out, linked as the chunks are."""

    before: _Written | None
    segments: list[Segment]
    dropped: list[int]


class _Place(NamedTuple):
    """A place between two messages, and how to go on from there."""

    body: _Chunk | None
    turn: int
    state: Any
    # The message before: a tool's turn goes on where it is a tool's too.
    previous: tuple[Message, ...]
    written: _Written | None = None


class _NotingSink(Sink):
    """Notes where each turn begins: ``marks`` are counts of pieces, the last one behind all turns."""

    __slots__ = ("first", "marks")

    def turns(self, messages: Messages, first: int) -> Iterator[tuple[int, Message]]:
        self.first = first
        self.marks: list[int] = []
        for turn in enumerate(messages, first):
            self.marks.append(len(self.pieces))
            yield turn
        self.marks.append(len(self.pieces))

    def text(self, start: int, end: int | None = None) -> str:
        return "".join(self.pieces[start:end])


class _NotingSpanSink(SpanSink):
    """Notes the same."""

    __slots__ = ("first", "marks")

    def turns(self, messages: Messages, first: int) -> Iterator[tuple[int, Message]]:
        self.first = first
        self.marks: list[int] = []
        for turn in super().turns(messages, first):
            self.marks.append(len(self._pieces))
            yield turn
        self.marks.append(len(self._pieces))

    def text(self, start: int, end: int | None = None) -> str:
        return "".join([piece[0] for piece in self._pieces[start:end]])


class Conversation:
    """A conversation that grows, made by a format's ``conversation``.

    ``append`` and ``extend`` raise ChatFormatError wherever ``render`` of the longer conversation would,
    and leave the conversation as it was; only what a conversation lacks as yet (a first message) is told
    by ``render`` and ``delta`` instead. A message must not be changed once it is given. A conversation is
    not to be shared between threads; its forks may be used in others.

    >>> import chatformats
    >>> chat = chatformats.get("joyai-llm-flash").conversation([{"role": "system", "content": "Be brief."}])
    >>> chat.append({"role": "user", "content": "Hi"})
    >>> chat.delta(add_generation_prompt=True)
    Delta(keep=0, text='Be brief.<|User|>Hi<|Assistant|><|end_of_thought|>')
    >>> chat.append({"role": "assistant", "content": "Hello"})
    >>> chat.delta()
    Delta(keep=50, text='Hello<|end▁of▁sentence|>')
    """

    __slots__ = (
        "_checkpoint",
        "_common",
        "_formatter",
        "_given",
        "_head",
        "_head_segments",
        "_heading",
        "_held",
        "_options",
        "_pending",
        "_place",
        "_rewrites",
        "_segments",
        "_tools",
        "_written",
    )

    def __init__(
        self,
        formatter: Resumable,
        messages: Messages,
        tools: Tools | None,
        *options: object,
        segments: bool,
    ) -> None:
        self._formatter = formatter
        self._tools = tools
        self._options = options
        self._rewrites = formatter._rewrites(*options)
        self._segments = segments
        self._head = ""
        self._head_segments: list[Segment] = []
        # The messages that the head gathers, with their indices.
        self._heading: tuple[tuple[int, Message], ...] = ()
        # Where the pending messages begin. There is no state until there is something to render.
        self._place = self._checkpoint = _Place(None, 0, None, ())
        self._pending: tuple[Message, ...] = ()
        # The tail as it was last written, with a generation prompt or without.
        self._written: tuple[bool, str] | None = None
        # The messages between the checkpoint, to which a later message may set back, and the place.
        self._held: Linked = None
        # The text that the last delta made: so much of head and body, and what followed. What is common to
        # it and to all that was rendered since ends here, if it ends before.
        self._given = (0, "")
        self._common: int | None = None
        self.extend(messages)

    def __len__(self) -> int:
        """Return the number of messages."""
        return self._place.turn + len(self._pending)

    def append(self, message: Message) -> None:
        """Add a message; raises ChatFormatError, and adds nothing, where it cannot be rendered."""
        self.extend((message,))

    def extend(self, messages: Messages) -> None:
        """Add several messages; raises ChatFormatError, and adds none, where they cannot be rendered."""
        new = list(as_messages(messages))
        if not new:
            return
        place, older, held = self._place, self._pending, self._held
        begun = place.state is not None
        head, heading, head_segments = self._head, self._heading, self._head_segments
        turning = None
        if self._rewrites:
            for index, message in enumerate(new, len(self)):
                rewritten = self._rewritten_by(message)
                if rewritten == "head":
                    heading += ((index, message),)
                elif rewritten == "turns":
                    turning = index
            if begun and heading is not self._heading:
                head, head_segments = self._head_with(heading, len(self) + len(new))
            if turning is not None:
                place = self._checkpoint
                older = (*_oldest_first(held), *older)
                held = None
        recent = Recent([*place.previous, *older, *new], place.turn - len(place.previous))
        out = _NotingSpanSink(self._formatter, recent) if self._segments else _NotingSink()
        # With a generation prompt where the last text had one: the next most likely has too, and need not be
        # written then.
        prompt = begun and self._written is not None and self._written[0]
        try:
            self._resume(out, recent, place, prompt)
            state = self._formatter._state(recent, place.turn, place.state, *self._options)
        except ChatFormatError as error:
            # What is wrong with no message, but with the conversation as a whole, is that it is too short.
            if begun or error.path != "messages":
                raise
            self._heading = heading
            self._pending += tuple(new)
            return

        # Nothing has changed up to here: a refused message leaves no trace.
        if self._rewrites:
            if head is not self._head:
                self._unsettle(0)
            elif place is not self._place:
                self._unsettle(len(head) + _end(place.body))
            self._heading = heading
            self._head = head
            self._head_segments = head_segments
        if state is None:
            # A format that cannot go on from the middle: everything stays pending, and is written anew.
            self._pending += tuple(new)
            self._written = None
            return
        if not begun:
            self._head = out.text(0, out.marks[0])
            written = None
            if isinstance(out, _NotingSpanSink):
                self._head_segments = out.segments(0, out.marks[0])
                written = _Written(None, [], out.left_out([], 0, out.first))
            place = self._checkpoint = _Place(None, out.first, state, (), written)
        if turning is not None:
            place = self._checkpoint = _settle(place, out, recent, turning, state)
        last = max(recent.base + len(recent.items) - 1, out.first)
        self._place = _settle(place, out, recent, last, state)
        self._pending = tuple(recent.items[last - recent.base :])
        self._written = (prompt, out.text(out.marks[last - out.first]))
        if self._rewrites and "turns" in self._rewrites.values():
            for message in recent[place.turn : last]:
                held = (message, held)
            self._held = held

    def render(self, *, add_generation_prompt: bool = False) -> str:
        """Return the whole prompt, as the format's ``render`` does.

        The next ``delta`` may be applied to it as well as to what the last one made.
        """
        tail = self._tail(add_generation_prompt)
        text = self._settled_from(0) + tail
        known, given = self._given
        common = known + _common_prefix(given, text[known:])
        self._common = common if self._common is None else min(common, self._common)
        return text

    def render_segments(self, *, add_generation_prompt: bool = False) -> Rendered:
        """Return the whole prompt, which knows who wrote each of its characters.

        That is for conversations made with ``segments=True``, which keep them; raises ValueError for others.
        """
        if not self._segments:
            raise ValueError("the conversation does not keep segments: make it with segments=True")
        place = self._place
        recent = Recent([*place.previous, *self._pending], place.turn - len(place.previous))
        out = SpanSink(self._formatter, recent)
        self._resume(out, recent, place, add_generation_prompt)
        parts = []
        dropped = []
        written = place.written
        while written is not None:
            parts.append(written.segments)
            dropped.append(written.dropped)
            written = written.before
        segments = list(self._head_segments)
        for part in reversed(parts):
            segments += part
        tail = out.segments()
        dropped.insert(0, out.left_out(tail, place.turn, len(self)))
        if segments and tail and tail[0].origin != "control" and segments[-1][1:] == tail[0][1:]:
            # Between them, no message has left anything.
            segments[-1] = segments[-1]._replace(text=segments[-1].text + tail.pop(0).text)
        segments += tail
        printed = {segment.message for segment in self._head_segments if segment.origin == "content"}
        left_out = [index for part in reversed(dropped) for index in part if index not in printed]
        return Rendered(self._formatter, tuple(segments), left_out)

    def delta(self, *, add_generation_prompt: bool = False) -> Delta:
        """Return how the prompt follows from the one that the last delta made, at first from ``""``.

        As much of it stays as can. Raises ChatFormatError where ``render`` would.
        """
        tail = self._tail(add_generation_prompt)
        known, given = self._given
        text = self._settled_from(known) + tail
        keep = known + _common_prefix(given, text)
        if self._common is not None and self._common < keep:
            keep = self._common
            if keep < known:
                text = self._settled_from(keep) + tail
                known = keep
        self._given = (len(self._head) + _end(self._place.body), tail)
        self._common = None
        return Delta(keep, text[keep - known :])

    def fork(self) -> Conversation:
        """Return a conversation that goes its own way from here on; both share what they have.

        The cost does not depend on the length.
        """
        branch: Conversation = object.__new__(type(self))
        for slot in self.__slots__:
            setattr(branch, slot, getattr(self, slot))
        return branch

    def bridge(self, completion: str, new_messages: Messages = ()) -> str | None:
        """Return what to append to prompt and completion to prompt for the turn after ``new_messages``.

        The prompt is ``render(add_generation_prompt=True)``, and the completion what the model wrote
        behind it, with or without its end-of-turn marker; it stays as it is, also where the template would
        trim it. ``None`` where the template would not keep prompt and completion: the caller renders anew.
        The conversation is left as it was. Raises ChatFormatError for messages that cannot be rendered.
        """
        tail = self._tail(True)
        branch = self.fork()
        branch._given = (len(self._head) + _end(self._place.body), tail)
        branch._common = None
        marker = self._formatter._end_of_turn(*self._options)
        sampled, closed, behind = completion.rpartition(marker) if marker else (completion, "", "")
        if not closed or behind.strip():
            sampled, closed, behind = completion, "", ""
        branch._segments = False
        branch.extend([self._formatter._as_message(sampled, tail), *new_messages])
        keep, text = branch.delta(add_generation_prompt=True)
        if keep < len(self._head) + _end(self._place.body) + len(tail):
            return None
        if not text.startswith(sampled):
            # The template may have trimmed it: then only its end-of-turn marker follows.
            sampled = sampled.rstrip()
            rest = text[len(sampled) :].lstrip()
            if not (marker and text.startswith(sampled) and rest.startswith(marker)):
                return None
        text = text[len(sampled) :]
        if closed:
            between, _, text = text.partition(marker)
            if between.strip() or not text.startswith(behind):
                return None
            text = text[len(behind) :]
        return text

    def _rewritten_by(self, message: object) -> Literal["head", "turns"] | None:
        role = message.get("role") if is_mapping(message) else None
        return self._rewrites.get(role) if isinstance(role, str) else None

    def _resume(self, out: Sink, recent: Recent, place: _Place, add_generation_prompt: bool) -> None:
        self._formatter._resume(
            out, recent, place.turn, place.state, add_generation_prompt, self._tools, *self._options
        )

    def _head_with(self, heading: tuple[tuple[int, Message], ...], count: int) -> tuple[str, list[Segment]]:
        # The other messages print nothing into the head; errors find these under their own indices.
        messages: list[Message] = [{}] * count
        for index, message in heading:
            messages[index] = message
        recent = Recent(messages, 0)
        out = _NotingSpanSink(self._formatter, recent) if self._segments else _NotingSink()
        self._resume(out, recent, _Place(None, 0, None, ()), False)
        segments = out.segments(0, out.marks[0]) if isinstance(out, _NotingSpanSink) else []
        return out.text(0, out.marks[0]), segments

    def _tail(self, add_generation_prompt: bool) -> str:
        prompt = bool(add_generation_prompt)
        if self._written is None or self._written[0] is not prompt:
            place = self._place
            recent = Recent([*place.previous, *self._pending], place.turn - len(place.previous))
            out = Sink()
            self._resume(out, recent, place, prompt)
            self._written = (prompt, "".join(out.pieces))
        return self._written[1]

    def _settled_from(self, start: int) -> str:
        """Return head and body from a character on; what is before costs nothing."""
        pieces = []
        start -= len(self._head)
        chunk = self._place.body
        while chunk is not None:
            before, first, text = chunk
            if first < start:
                pieces.append(text[start - first :])
                break
            pieces.append(text)
            chunk = before
        if start < 0:
            pieces.append(self._head[start:])
        pieces.reverse()
        return "".join(pieces)

    def _unsettle(self, length: int) -> None:
        """Keep apart what was given of head and body behind the first characters: they will change."""
        settled, tail = self._given
        if settled > length:
            self._given = (length, self._settled_from(length)[: settled - length] + tail)


def _settle(
    place: _Place, out: _NotingSink | _NotingSpanSink, recent: Recent, index: int, state: Any
) -> _Place:
    """Return the place at a message's index: what was written from the other place up to it is settled."""
    start, end = out.marks[place.turn - out.first], out.marks[index - out.first]
    body = place.body
    text = out.text(start, end)
    if body is not None and len(body.text) < _CHUNK:
        body = _Chunk(body.before, body.start, body.text + text)
    elif text:
        body = _Chunk(body, _end(body), text)
    written = place.written
    if isinstance(out, _NotingSpanSink):
        segments = out.segments(start, end)
        written = _Written(written, segments, out.left_out(segments, place.turn, index))
    before = index - 1 - recent.base
    return _Place(body, index, state, (recent.items[before],) if before >= 0 else (), written)


def _end(chunk: _Chunk | None) -> int:
    return 0 if chunk is None else chunk.start + len(chunk.text)


def _oldest_first(linked: Linked) -> list[Message]:
    messages = []
    while linked is not None:
        message, linked = linked
        messages.append(message)
    messages.reverse()
    return messages


def _common_prefix(text: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    if other.startswith(text):
        return len(text)
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text.startswith(other[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low
