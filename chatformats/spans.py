# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Who wrote each character of a prompt: segments, and what follows from them.

Loaded when ``render_segments`` is first called, or ``render`` with ``continue_final_message``.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from .control_tokens import occurrences
from .errors import ChatFormatError, expected
from .formatter import Sink, Writer
from .undefined import UNDEFINED
from .values import as_messages, fields, is_mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal, TypeAlias

    from .errors import Place
    from .formatter import ChatFormatter
    from .messages import Messages, Tools
    from .parsing import ParsedMessage, Parser

    Origin: TypeAlias = Literal["control", "scaffold", "content"]


class Segment(NamedTuple):
    """A piece of a prompt whose characters agree in everything that is known of them.

    ``origin`` is ``"control"`` for a control token that the format wrote (always a segment of its own),
    ``"scaffold"`` for other text that the format wrote, ``"content"`` for what came from the caller's
    messages or tools. ``message`` is the index of the message it belongs to and ``role`` that message's
    role; both are ``None`` for what belongs to none. ``generated`` says that the model writes it, once
    it is prompted: an assistant turn from the end of the generation prompt to its end-of-turn marker.
    """

    text: str
    origin: Origin
    message: int | None
    role: str | None
    generated: bool


class Injection(NamedTuple):
    """A control token in a prompt that the format did not write, or not alone.

    ``start`` is its place in the prompt, ``message`` the index of the message it came from, or ``None``
    for a tool's definition.
    """

    token: str
    start: int
    message: int | None


class Rendered:
    """A prompt that knows who wrote each of its characters. Offsets count characters, as Python does.

    ``dropped`` lists the indices of messages that had something to say and left no content in the prompt.
    Templates leave messages out without a word: those of a role they do not know, a second system
    message, GLM-4 tools' only one.

    >>> import chatformats
    >>> rendered = chatformats.get("ministral-3").render_segments(
    ...     [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    ... )
    >>> [segment.text for segment in rendered.segments if segment.origin == "content"]
    ['Be brief.', 'Hi']
    >>> rendered.spans(role="user", origin="content")
    [(49, 51)]
    """

    __slots__ = ("_ends", "_formatter", "dropped", "segments", "text")

    def __init__(self, formatter: ChatFormatter, segments: tuple[Segment, ...], dropped: list[int]) -> None:
        self.segments = segments
        self.text = "".join([segment.text for segment in segments])
        self.dropped = dropped
        self._formatter = formatter
        self._ends: list[int] | None = None

    def spans(
        self,
        *,
        origin: Origin | None = None,
        role: str | None = None,
        message: int | None = None,
        generated: bool | None = None,
    ) -> list[tuple[int, int]]:
        """Return the ranges of characters that agree with all arguments given; touching ones are joined."""
        spans: list[tuple[int, int]] = []
        end = 0
        for segment in self.segments:
            start, end = end, end + len(segment.text)
            if (
                (origin is None or segment.origin == origin)
                and (role is None or segment.role == role)
                and (message is None or segment.message == message)
                and (generated is None or segment.generated == generated)
            ):
                if spans and spans[-1][1] == start:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((start, end))
        return spans

    def mask(self, offsets: Iterable[tuple[int, int]]) -> list[int]:
        """Return 1 for each token that overlaps generated text, and 0 for the others.

        ``offsets`` are the tokens' ranges of characters, as a tokenizer's offset mapping has them.
        """
        spans = self.spans(generated=True)
        starts = [start for start, _ in spans]
        mask = []
        for start, end in offsets:
            # The last span that begins before the token ends.
            index = bisect_right(starts, end - 1) - 1
            mask.append(int(start < end and index >= 0 and spans[index][1] > start))
        return mask

    def message_index(self, offsets: Iterable[tuple[int, int]]) -> list[int | None]:
        """Return for each token the index of the message that its first character belongs to.

        ``None`` stands for what belongs to no message, and for a token without characters.
        """
        ends = self._segment_ends()
        return [
            self.segments[bisect_right(ends, start)].message if start < end else None
            for start, end in offsets
        ]

    @property
    def injected(self) -> list[Injection]:
        """Control tokens in what the caller wrote, also those that the template put together.

        The text between two control tokens of the format is searched as one: a name ``<|im_end|`` needs
        only the ``>`` behind it.
        """
        return [injection for _, _, injections in self._runs() for injection in injections]

    def encode(
        self,
        encode: Callable[[str], Sequence[int]],
        encode_plain: Callable[[str], Sequence[int]],
        added_tokens: Iterable[str] = (),
    ) -> list[int]:
        """Return token ids in which only what the format wrote is a control token.

        ``encode`` is the tokenizer, without adding tokens of its own; ``encode_plain`` the same without
        its special and added tokens (of Hugging Face's, a copy that has none: its switch for special
        tokens leaves the other added ones); ``added_tokens`` are those of them that ``control_tokens``
        does not name, which are no less dangerous. Where nothing is injected the ids are those of
        ``encode(text)``; otherwise the stretches between two of the format's control tokens that hold an
        injected one are encoded as plain text, and all between them as before.
        """
        ids: list[int] = []
        done = 0
        for start, end, injections in self._runs(added_tokens):
            if injections:
                if done < start:
                    ids.extend(encode(self.text[done:start]))
                ids.extend(encode_plain(self.text[start:end]))
                done = end
        if done < len(self.text):
            ids.extend(encode(self.text[done:]))
        return ids

    def parse(self, completion: str, *, tools: Tools | None = None) -> ParsedMessage:
        """Read what a model wrote behind this prompt; see the format's ``parse``."""
        return self._formatter.parse(completion, prompt=self.text, tools=tools)

    def parser(self, tools: Tools | None = None) -> Parser:
        """Return a parser that reads, in chunks, what a model writes behind this prompt."""
        return self._formatter.parser(self.text, tools)

    def _runs(self, added_tokens: Iterable[str] = ()) -> Iterator[tuple[int, int, list[Injection]]]:
        """Yield the stretches between tokens that the format wrote, with the injected tokens in each."""
        tokens = {segment.text for segment in self.segments if segment.origin == "control"}
        tokens.update(self._formatter.control_tokens, added_tokens)
        start = end = 0
        for segment in (*self.segments, None):
            if segment is not None and segment.origin != "control":
                end += len(segment.text)
                continue
            yield from self._runs_between(start, end, tokens)
            if segment is not None:
                start = end = end + len(segment.text)

    def _runs_between(
        self, start: int, end: int, tokens: set[str]
    ) -> Iterator[tuple[int, int, list[Injection]]]:
        ends = self._segment_ends()
        injections: list[Injection] = []
        written: list[tuple[int, int]] = []
        for offset, token in occurrences(self.text[start:end], tokens):
            left, right = start + offset, start + offset + len(token)
            overlapped = self.segments[bisect_right(ends, left) : bisect_right(ends, right - 1) + 1]
            sources = [segment.message for segment in overlapped if segment.origin == "content"]
            if sources:
                source = next((message for message in sources if message is not None), None)
                injections.append(Injection(token, left, source))
            else:
                written.append((left, right))
        # What the format itself spells out in its scaffold stays a token, beside an injected one too.
        for left, right in written:
            if left >= start and not any(_overlap(injection, left, right) for injection in injections):
                yield start, left, [injection for injection in injections if start <= injection.start < left]
                start = right
        if start < end:
            yield start, end, [injection for injection in injections if injection.start >= start]

    def _segment_ends(self) -> list[int]:
        if self._ends is None:
            end = 0
            self._ends = [end := end + len(segment.text) for segment in self.segments]
        return self._ends


class SpanSink(Sink):
    """Collect the pieces of one prompt with what is known of them; see ``Sink`` for the verbs.

    With ``continue_final_message`` the last message's content is marked at its end, and the prompt cut
    at the mark. Raises ChatFormatError where that contradicts ``add_generation_prompt``, and where there
    is no content to continue.
    """

    __slots__ = (
        "_continued",
        "_formatter",
        "_given",
        "_mark",
        "_message",
        "_pieces",
        "_read",
        "_reply",
        "messages",
    )

    def __init__(
        self,
        formatter: ChatFormatter,
        messages: Messages,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> None:
        self._formatter = formatter
        self.messages = messages
        self._given = messages
        self._mark = ""
        self._continued = ""
        if continue_final_message:
            if add_generation_prompt:
                raise ChatFormatError(
                    "contradicts add_generation_prompt: a prompt ends in one of the two ways",
                    "continue_final_message",
                )
            self.messages, self._mark, self._continued = _marked(messages)
        # Text, origin, message, and whether it is generated.
        self._pieces: list[tuple[str, Origin, int | None, bool]] = []
        self._message: int | None = None
        # Messages whose content turned out to be empty: in Nemotron, a switch and nothing else.
        self._read: set[int | None] = set()
        self._set_verbs(self, generated=False)
        self._reply = Writer()
        self._set_verbs(self._reply, generated=True)

    @property
    def reply(self) -> Writer:
        return self._reply

    def turns(self, messages: Messages, first: int) -> Iterator[tuple[int, Mapping[str, object]]]:
        for index, message in enumerate(messages, first):
            self._message = index
            yield index, message
        self._message = None

    def turn(self, index: int | None) -> None:
        self._message = index

    def tools(self, write: Callable[..., None], tools: Tools, *options: object) -> None:
        write(self, tools, *options)

    def rendered(self) -> Rendered:
        """Return the prompt that was written."""
        if isinstance(self._given, Mapping):
            # A template goes through its keys.
            self._given = list(self._given)
        segments = self.segments()
        if self._mark:
            segments = _cut(segments, self._mark, self._continued)
        # Here and not when it is asked for: by then the caller may have added to the messages.
        return Rendered(self._formatter, tuple(segments), self.left_out(segments, 0, len(self._given)))

    def segments(self, start: int = 0, end: int | None = None) -> list[Segment]:
        """Return what was written, or the pieces from one to another: what agrees in one segment."""
        roles: dict[int | None, str | None] = {None: None}
        segments: list[Segment] = []
        texts: list[str] = []
        last: Segment | None = None
        for text, origin, message, generated in self._pieces[start:end]:
            if last is not None:
                if (
                    origin == last.origin != "control"
                    and message == last.message
                    and generated == last.generated
                ):
                    if not texts:
                        texts.append(last.text)
                    texts.append(text)
                    continue
                if texts:
                    segments[-1] = last._replace(text="".join(texts))
                    texts.clear()
            if message is not None and message not in roles:
                whole = self._given[message]
                role = whole.get("role") if is_mapping(whole) else None
                roles[message] = role if isinstance(role, str) else None
            # Segment() is a function written in Python: without it, rendering segments is 1.1 times as fast.
            last = tuple.__new__(Segment, (text, origin, message, roles[message], generated))
            segments.append(last)
        if last is not None and texts:
            segments[-1] = last._replace(text="".join(texts))
        return segments

    def left_out(self, segments: list[Segment], start: int, end: int) -> list[int]:
        """Return which messages, between two indices, had something to say and are not in the segments."""
        printed = {segment.message for segment in segments if segment.origin == "content"}
        return [
            index
            for index in range(start, end)
            if index not in printed
            and is_mapping(message := self._given[index])
            and _says_something(message, index in self._read)
        ]

    def _set_verbs(self, writer: Writer, *, generated: bool) -> None:
        append = self._pieces.append
        tokens = tuple(self._formatter.control_tokens)

        def control(text: str) -> None:
            if text:
                append((text, "control", self._message, generated))

        def markup(text: str) -> None:
            for piece, origin in _taken_apart(text, tokens):
                append((piece, origin, self._message, generated))

        def scaffold(text: str) -> None:
            if text:
                append((text, "scaffold", self._message, generated))

        def content(text: str) -> None:
            if text:
                append((text, "content", self._message, generated))
            elif not generated:
                self._read.add(self._message)

        writer.control, writer.markup, writer.scaffold, writer.content = control, markup, scaffold, content


@lru_cache(256)
def _taken_apart(markup: str, tokens: tuple[str, ...]) -> list[tuple[str, Origin]]:
    """Return the control tokens in a text, and what stands between them, in order."""
    # Of two that begin alike, the longer one is meant.
    longest_first = sorted(tokens, key=len, reverse=True)
    pieces = re.split(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})", markup)
    return [(piece, "control" if piece in tokens else "scaffold") for piece in pieces if piece]


def _overlap(injection: Injection, left: int, right: int) -> bool:
    return injection.start < right and left < injection.start + len(injection.token)


def _says_something(message: Mapping[str, object], content_was_read: bool) -> bool:
    said = [message.get("reasoning_content"), message.get("tool_calls")]
    content = None if content_was_read else message.get("content")
    if isinstance(content, (list, tuple)):
        # Of parts, text is content; an image leaves a control token in its place.
        said += [part.get("text") for part in content if is_mapping(part)]
    else:
        said.append(content)
    return any(text.strip() if isinstance(text, str) else text for text in said)


def _marked(messages: Messages) -> tuple[Messages, str, str]:
    """Return the messages with a mark at the end of the last one's content, the mark, and the content.

    As transformers does: with the mark goes a space, which shows whether the template trims the end.
    """
    sequence = list(as_messages(messages))
    if not sequence:
        raise ChatFormatError("expected a message to continue", "messages")
    index = len(sequence) - 1
    message = fields(sequence[index], ("messages", index))
    place: Place = ("messages", index, "content")
    content = text = message.get("content", UNDEFINED)
    number = -1
    if isinstance(content, (list, tuple)):
        numbers = [number for number, part in enumerate(content) if is_mapping(part) and "text" in part]
        if not numbers:
            raise expected("a text part to continue", content, place)
        number = numbers[-1]
        place = (*place, number, "text")
        text = content[number]["text"]
    if not isinstance(text, str):
        raise expected("text to continue", text, place)
    # No text of a caller's can hold it, however it is written.
    mark = f"CONTINUE_FINAL_MESSAGE_{os.urandom(16).hex()}"
    marked: object = f"{text}{mark} "
    if isinstance(content, (list, tuple)):
        marked = [*content[:number], {**content[number], "text": marked}, *content[number + 1 :]]
    sequence[index] = {**message, "content": marked}
    return sequence, mark, text


def _cut(segments: list[Segment], mark: str, content: str) -> list[Segment]:
    """Return the segments up to the mark, without white space at the end where the template trims."""
    for index in range(len(segments) - 1, -1, -1):
        text = segments[index].text
        start = text.rfind(mark)
        if start >= 0:
            trimmed = not text.startswith(mark + " ", start)
            kept = [*segments[:index], segments[index]._replace(text=text[:start])]
            if trimmed:
                while kept and not kept[-1].text.rstrip():
                    kept.pop()
                kept[-1:] = [segment._replace(text=segment.text.rstrip()) for segment in kept[-1:]]
            # A list that is printed by Python's str() has another text: a line break is two characters.
            printed = "".join([segment.text for segment in kept]).rstrip()
            if not printed.endswith(content.strip()):
                break
            return [segment for segment in kept if segment.text]
    raise ChatFormatError(
        "the template does not print the last message's content to its end: nothing to continue",
        "continue_final_message",
    )
