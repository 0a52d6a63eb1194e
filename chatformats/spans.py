# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Who wrote each character of a prompt: segments, and what follows from them.

Loaded when ``render_segments`` is first called, or ``render`` with ``continue_final_message``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from .control_tokens import occurrences
from .errors import ChatFormatError, expected
from .formatter import Sink, Writer
from .values import as_messages, is_mapping, to_str

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal, TypeAlias

    from .formatter import ChatFormatter
    from .messages import Messages

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

    >>> import chatformats
    >>> rendered = chatformats.get("ministral-3").render_segments(
    ...     [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    ... )
    >>> [segment.text for segment in rendered.segments if segment.origin == "content"]
    ['Be brief.', 'Hi']
    >>> rendered.spans(role="user", origin="content")
    [(49, 51)]
    """

    __slots__ = ("_ends", "_formatter", "_messages", "segments", "text")

    def __init__(self, formatter: ChatFormatter, messages: Messages, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self.text = "".join([segment.text for segment in segments])
        self._formatter = formatter
        self._messages = messages
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
    def dropped(self) -> list[int]:
        """The indices of messages that had something to say and left no content in the prompt.

        Templates leave messages out without a word: those of a role they do not know, a second system
        message, GLM-4 tools' only one.
        """
        printed = {segment.message for segment in self.segments if segment.origin == "content"}
        return [
            index
            for index, message in enumerate(self._messages)
            if index not in printed and is_mapping(message) and _says_something(message)
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
    ) -> list[int]:
        """Return token ids in which only what the format wrote is a control token.

        ``encode`` is the tokenizer, without adding tokens of its own; ``encode_plain`` the same without
        its special and added tokens. Where nothing is injected the ids are those of ``encode(text)``;
        otherwise the stretches between two of the format's control tokens that hold an injected one are
        encoded as plain text, and all between them as before.
        """
        ids: list[int] = []
        done = 0
        for start, end, injections in self._runs():
            if injections:
                if done < start:
                    ids.extend(encode(self.text[done:start]))
                ids.extend(encode_plain(self.text[start:end]))
                done = end
        if done < len(self.text):
            ids.extend(encode(self.text[done:]))
        return ids

    def _runs(self) -> Iterator[tuple[int, int, list[Injection]]]:
        """Yield the stretches between control tokens, with the injected tokens in each."""
        tokens = {segment.text for segment in self.segments if segment.origin == "control"}
        tokens.update(self._formatter.control_tokens)
        start = end = 0
        for segment in (*self.segments, None):
            if segment is not None and segment.origin != "control":
                end += len(segment.text)
                continue
            if start < end:
                yield start, end, self._injections(start, end, tokens)
            if segment is not None:
                start = end = end + len(segment.text)

    def _injections(self, start: int, end: int, tokens: Iterable[str]) -> list[Injection]:
        return [
            Injection(token, start + offset, self._message_of(start + offset, start + offset + len(token)))
            for offset, token in occurrences(self.text[start:end], tokens)
        ]

    def _message_of(self, start: int, end: int) -> int | None:
        ends = self._segment_ends()
        overlapped = self.segments[bisect_right(ends, start) : bisect_right(ends, end - 1) + 1]
        return next((segment.message for segment in overlapped if segment.message is not None), None)

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

    __slots__ = ("_given", "_mark", "_message", "_reply", "_segments", "messages")

    def __init__(
        self,
        messages: Messages,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> None:
        self.messages = messages
        self._given = messages
        self._mark = ""
        if continue_final_message:
            if add_generation_prompt:
                raise ChatFormatError(
                    "contradicts add_generation_prompt: a prompt ends in one of the two ways",
                    "continue_final_message",
                )
            self.messages, self._mark = _marked(messages)
        # What merges is gathered piece by piece: (texts, origin, message, generated).
        self._segments: list[tuple[list[str], Origin, int | None, bool]] = []
        self._message: int | None = None
        self.control, self.scaffold, self.content = self._verbs(generated=False)
        self._reply = Writer()
        self._reply.control, self._reply.scaffold, self._reply.content = self._verbs(generated=True)

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

    def rendered(self, formatter: ChatFormatter) -> Rendered:
        """Return the prompt that was written."""
        roles = [message.get("role") if is_mapping(message) else None for message in self._given]
        segments = []
        for texts, origin, message, generated in self._segments:
            role = roles[message] if message is not None else None
            segments.append(
                Segment("".join(texts), origin, message, role if isinstance(role, str) else None, generated)
            )
        if self._mark:
            segments = _cut(segments, self._mark)
        return Rendered(formatter, self._given, tuple(segments))

    def _verbs(
        self, *, generated: bool
    ) -> tuple[Callable[[str], object], Callable[[str], object], Callable[[str], object]]:
        segments = self._segments

        def control(text: str) -> None:
            if text:
                segments.append(([text], "control", self._message, generated))

        def merging(origin: Origin) -> Callable[[str], object]:
            def write(text: str) -> None:
                if not text:
                    return
                if segments:
                    last = segments[-1]
                    if last[1] == origin and last[2] == self._message and last[3] == generated:
                        last[0].append(text)
                        return
                segments.append(([text], origin, self._message, generated))

            return write

        return control, merging("scaffold"), merging("content")


def _says_something(message: Mapping[str, object]) -> bool:
    content = message.get("content")
    if isinstance(content, (list, tuple)):
        # Of parts, text is content; an image leaves a control token in its place.
        content = "".join([str(part.get("text") or "") for part in content if is_mapping(part)])
    for text in (content, message.get("reasoning_content")):
        if text.strip() if isinstance(text, str) else text:
            return True
    return bool(message.get("tool_calls"))


def _marked(messages: Messages) -> tuple[Messages, str]:
    """Return the messages with a mark at the end of the last one's content, and the mark.

    As transformers does: with the mark goes a space, which shows whether the template trims the end.
    """
    sequence = list(as_messages(messages))
    if not sequence:
        raise ChatFormatError("expected a message to continue", "messages")
    index = len(sequence) - 1
    message = sequence[index]
    place = ("messages", index, "content")
    content = message.get("content") if is_mapping(message) else None
    mark = "CONTINUE_FINAL_MESSAGE_TAG"
    text = to_str(content, place)
    while mark in text:
        mark += "_"
    if isinstance(content, str):
        marked: object = content + mark + " "
    elif isinstance(content, (list, tuple)):
        parts = list(content)
        for number in range(len(parts) - 1, -1, -1):
            part = parts[number]
            if is_mapping(part) and isinstance(part.get("text"), str):
                parts[number] = {**part, "text": f"{part['text']}{mark} "}
                break
        else:
            raise expected("a text part to continue", content, place)
        marked = parts
    else:
        raise expected("content to continue", content, place)
    sequence[index] = {**message, "content": marked}
    return sequence, mark


def _cut(segments: list[Segment], mark: str) -> list[Segment]:
    """Return the segments up to the mark, without white space at the end where the template trims."""
    for index in range(len(segments) - 1, -1, -1):
        text = segments[index].text
        start = text.rfind(mark)
        if start >= 0:
            trimmed = not text.startswith(mark + " ", start)
            kept = [*segments[:index], segments[index]._replace(text=text[:start])]
            while trimmed and kept and not kept[-1].text.rstrip():
                kept.pop()
            if kept:
                text = kept[-1].text
                kept[-1] = kept[-1]._replace(text=text.rstrip() if trimmed else text)
            return [segment for segment in kept if segment.text]
    raise ChatFormatError(
        "the template does not print the end of the last message's content: nothing to continue",
        "continue_final_message",
    )
