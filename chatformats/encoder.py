# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Token ids of a prompt, most of which was encoded before.

Loaded when ``chatformats.PromptEncoder`` is first asked for. Nothing beyond the standard library is
imported: the tokenizer is the caller's.

A tokenizer of Hugging Face's ``tokenizers`` first cuts a text at its added tokens, and treats each piece
between them by itself: normalizer, pre-tokenizer, model. So the ids of a prompt are those of its pieces, as
long as it is certain that the tokenizer finds the token at the cut in the whole text too, and that nothing
else looks across it. That is read off the tokenizer's own serialization; in doubt, the whole is encoded.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict, deque
from threading import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Final

    from .formatter import ChatFormatter
    from .spans import Rendered, Segment

# Steps that see one piece at a time, each by itself. Metaspace does too, unless it asks for the first.
_NORMALIZERS: Final = (
    *("BertNormalizer", "ByteLevel", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled"),
    *("Prepend", "Replace", "Strip", "StripAccents"),
)
_PRE_TOKENIZERS: Final = (
    *("BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits", "FixedLength", "Metaspace"),
    *("Punctuation", "Split", "UnicodeScripts", "Whitespace", "WhitespaceSplit"),
)
# What these add, they add only where they are asked for special tokens.
_POST_PROCESSORS: Final = ("BertProcessing", "ByteLevel", "RobertaProcessing", "TemplateProcessing")
# The patterns of GPT-4 and Llama 3, of Qwen 2, and of Tekken. None of them goes on behind a line break but
# with white space, another line break, or, in Tekken, a slash: a line that begins with anything else is
# split off the one before, whatever they hold. So does GPT-2's, which its ByteLevel has built in.
_START: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_END: Final = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_PATTERNS: Final = (
    _START + r"\p{N}{1,3}" + _END,
    _START + r"\p{N}" + _END,
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
)
_BEGINS: Final = re.compile(r"[^\s/]")
_LINES: Final = re.compile(r"(?<=\n)(?=[^\s/])")
# Text of this many characters between two control tokens is cut into lines, where that is safe: GLM-4's
# template has no control tokens, and most of a prompt is in one piece.
_LONG: Final = 2_000
# The last prompts are kept whole, with a mark each few segments: the next one most likely begins as one of
# them does, up to one of the last marks.
_PROMPTS: Final = 16
_MARK_DISTANCE: Final = 4
_LAST_MARKS: Final = 16
# Scaffold comes in few kinds, but for a format that numbers its rounds.
_MOST_SCAFFOLDS: Final = 4096


class PromptEncoder:
    """Turn prompts into token ids, and keep those of the text between control tokens.

    ``tokenizer`` is a ``tokenizers.Tokenizer`` or a fast tokenizer of transformers. The ids are those of
    ``tokenizer.encode(rendered.text, add_special_tokens=False)``, unless the caller's text holds a control
    or added token of the tokenizer: such a stretch is encoded as plain text. Between prompts up to
    ``cache_size`` ids and characters are kept, those last used, beside the last sixteen prompts. An encoder may be shared between threads.
    A tokenizer that is given other tokens or steps needs a new one.

    ::

        encoder = chatformats.PromptEncoder(fmt, tokenizer)
        ids = encoder.encode(fmt.render_segments(messages, tools, add_generation_prompt=True))
    """

    def __init__(self, formatter: ChatFormatter, tokenizer: Any, *, cache_size: int = 4_000_000) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not callable(getattr(backend, "to_str", None)):
            raise TypeError(
                "expected a tokenizers.Tokenizer or a fast tokenizer of transformers, got "
                f"{type(tokenizer).__name__}"
            )
        self._formatter = formatter
        self._tokenizer = backend
        self._plain_tokenizer: Any = None
        try:
            state: dict[str, Any] = json.loads(backend.to_str())
        except Exception:  # noqa: BLE001  # a step written in Python raises what it likes
            state = {"opaque": True, "added_tokens": _added_tokens(backend)}
        added: list[dict[str, Any]] = state["added_tokens"]
        # White space that was added is text, and nobody can write a character in two pieces.
        control = [token for token in added if len(token["content"]) > 1 and token["content"].strip()]
        self._control_tokens = [token["content"] for token in control]
        # Of two that begin alike, the longer one is found.
        longest_first = sorted(self._control_tokens, key=len, reverse=True)
        self._find = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        unknown = (state.get("model") or {}).get("unk_token")
        # Ids that no plain text may have. That of the unknown token it has for what the model cannot say.
        self._control_ids = {token["id"] for token in control if token["content"] != unknown}
        # Tokens found in the text only when it is normalized are found by their ids.
        normalized = state.get("normalizer") is not None
        self._hidden_ids = self._control_ids & {
            token["id"] for token in control if token["normalized"] and normalized
        }
        self._cuts: dict[str, int] = {}
        if _sees_pieces(state):
            self._cuts = {
                token["content"]: token["id"]
                for token in _standing_alone(added)
                if not (token["normalized"] and normalized)
            }
        self._cuts_lines = _splits_lines(state)
        self._scaffolds: dict[str, list[str | int] | None] = {}
        self._cache: OrderedDict[str, tuple[int, ...]] = OrderedDict()
        self._cache_size = cache_size
        self._cached = 0
        self._prompts: deque[tuple[tuple[Segment, ...], tuple[int, ...], list[tuple[int, int]]]] = deque(
            maxlen=_PROMPTS
        )
        self._lock = Lock()

    @property
    def cuts(self) -> bool:
        """Whether prompts are cut: else the tokenizer, or the format, makes it unsafe or useless."""
        written = [token for token in self._formatter.control_tokens if token in self._control_tokens]
        return bool(self._cuts or self._cuts_lines) and all(token in self._cuts for token in written)

    def encode(self, rendered: Rendered) -> list[int]:
        """Return the token ids of a prompt; the caller's text never becomes a control token."""
        tokenizer = self._tokenizer
        if (
            not (self._cuts or self._cuts_lines)
            # These are switched on and off in use: transformers does so for each call.
            or getattr(tokenizer, "truncation", None) is not None
            or getattr(tokenizer, "padding", None) is not None
            or getattr(tokenizer, "encode_special_tokens", False)
        ):
            return self._encode_whole(rendered)
        segments = rendered.segments
        start, ids, marks = self._known_start(segments)
        parts: list[str | int] = []
        borders = self._cut(segments, start, parts)
        if borders is None:
            return self._encode_whole(rendered)

        cache = self._cache
        known: dict[str, tuple[int, ...]] = {}
        with self._lock:
            for part in parts:
                if isinstance(part, str) and part in cache:
                    cache.move_to_end(part)
                    known[part] = cache[part]
        done = 0
        for index, border in (*borders, (0, len(parts))):
            for part in parts[done:border]:
                if isinstance(part, int):
                    ids.append(part)
                else:
                    run = known.get(part)
                    if run is None:
                        # Outside the lock: another thread may do the same, and come to the same.
                        run = known[part] = self._encode_run(part)
                        self._keep(part, run)
                    ids.extend(run)
            done = border
            if index:
                marks.append((index, len(ids)))
        if marks:
            with self._lock:
                self._prompts.append((segments, tuple(ids), marks))
        return ids

    def _encode_whole(self, rendered: Rendered) -> list[int]:
        if not rendered.text:
            return self._encode("")  # padding has ids for that too
        tokens = self._control_tokens
        if self._hidden_ids:
            # Under the names that they have in this text.
            found = self._tokenizer.encode(rendered.text, add_special_tokens=False)
            spans = [span for number, span in zip(found.ids, found.offsets) if number in self._hidden_ids]
            tokens = [*tokens, *{rendered.text[start:end] for start, end in spans if start < end}]
        return rendered.encode(self._encode, self._encode_plain, tokens)

    def _known_start(self, segments: tuple[Segment, ...]) -> tuple[int, list[int], list[tuple[int, int]]]:
        """Return how many segments a prompt has in common with an earlier one, their ids, and its marks."""
        with self._lock:
            prompts = tuple(reversed(self._prompts))
        for earlier, ids, marks in prompts:
            # It is most of the earlier one, or else another conversation's.
            for number in range(len(marks), max(len(marks) - _LAST_MARKS, 0), -1):
                start, count = marks[number - 1]
                near = max(start - 3, 0)
                if (
                    segments[near:start] == earlier[near:start]
                    and segments[:start] == earlier[:start]
                    and self._cuts_at(segments, start)
                ):
                    return start, list(ids[:count]), marks[:number]
        return 0, [], []

    def _cuts_at(self, segments: tuple[Segment, ...], index: int) -> bool:
        """Say whether a mark of another prompt is one of this: what comes next may differ."""
        text, origin, *_ = segments[index - 1]
        if origin == "control" and text in self._cuts:
            return True
        return index == len(segments) or _BEGINS.match(segments[index].text) is not None

    def _cut(
        self, segments: tuple[Segment, ...], start: int, parts: list[str | int]
    ) -> list[tuple[int, int]] | None:
        """Add the ids of the tokens that the format wrote, and the text between; ``None`` if in doubt.

        Returns some of the cuts, as numbers of segments and of parts.
        """
        cuts, cuts_lines = self._cuts, self._cuts_lines
        borders: list[tuple[int, int]] = []
        run: list[str] = []
        next_border = start + _MARK_DISTANCE

        def end_run() -> None:
            if run:
                text = "".join(run)
                run.clear()
                if cuts_lines and len(text) >= _LONG:
                    parts.extend(_LINES.split(text))
                else:
                    parts.append(text)

        for index, (text, origin, _, _, _) in enumerate(segments[start:], start):
            if cuts_lines and index >= next_border and run and run[-1][-1] == "\n" and _BEGINS.match(text):
                end_run()
                borders.append((index, len(parts)))
                next_border = index + _MARK_DISTANCE
            if origin == "content":
                run.append(text)
                continue
            if origin == "control" and text in cuts:
                end_run()
                parts.append(cuts[text])
                if index >= next_border:
                    borders.append((index + 1, len(parts)))
                    next_border = index + _MARK_DISTANCE
                continue
            try:
                scaffold = self._scaffolds[text]
            except KeyError:
                scaffold = self._split(text)
                if len(self._scaffolds) >= _MOST_SCAFFOLDS:
                    self._scaffolds = {}
                self._scaffolds[text] = scaffold
            if scaffold is None:
                return None
            for part in scaffold:
                if isinstance(part, str):
                    run.append(part)
                else:
                    end_run()
                    parts.append(part)
        end_run()
        return borders

    def _split(self, text: str) -> list[str | int] | None:
        """Return the format's own text, cut at the added tokens that it spells out."""
        parts: list[str | int] = []
        end = 0
        for match in self._find.finditer(text):
            if match.group() not in self._cuts:
                return None
            if match.start() > end:
                parts.append(text[end : match.start()])
            parts.append(self._cuts[match.group()])
            end = match.end()
        if end < len(text):
            parts.append(text[end:])
        return parts

    def _keep(self, run: str, ids: tuple[int, ...]) -> None:
        size = len(run) + len(ids)
        if size > self._cache_size:
            return
        cache = self._cache
        with self._lock:
            if run not in cache:
                cache[run] = ids
                self._cached += size
                while self._cached > self._cache_size:
                    oldest, its_ids = cache.popitem(last=False)
                    self._cached -= len(oldest) + len(its_ids)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _encode_run(self, text: str) -> tuple[int, ...]:
        # No token of the format's is in it: what is found here came from the caller.
        if self._find.search(text):
            return tuple(self._encode_plain(text))
        ids = self._encode(text)
        if self._hidden_ids and not self._hidden_ids.isdisjoint(ids):
            ids = self._encode_plain(text)
        return tuple(ids)

    def _encode_plain(self, text: str) -> list[int]:
        plain = self._plain_tokenizer
        if plain is None:
            # At the first injected token only: it takes as long as loading the tokenizer did.
            state = json.loads(self._tokenizer.to_str())
            state.update(added_tokens=[], truncation=None, padding=None)
            plain = self._plain_tokenizer = type(self._tokenizer).from_str(json.dumps(state))
        ids: list[int] = plain.encode(text, add_special_tokens=False).ids
        if not self._control_ids.isdisjoint(ids):
            # The model's own vocabulary has the token: it is written in two halves.
            ids = []
            for piece in _halves(text, self._find):
                ids.extend(plain.encode(piece, add_special_tokens=False).ids)
        return ids


def _splits_lines(state: dict[str, Any]) -> bool:
    """Say whether a line that begins with no white space is treated apart from the one before."""
    steps = list(_steps(state.get("pre_tokenizer"), "pretokenizers"))
    if not steps or steps[-1].get("type") != "ByteLevel" or steps[-1].get("add_prefix_space"):
        return False
    built_in = steps[-1].get("use_regex", True)
    if len(steps) == 2 and steps[0].get("type") == "Split" and not built_in:
        split = steps[0]
        known = split["pattern"].get("Regex") in _PATTERNS
        if not known or split["behavior"] != "Isolated" or split["invert"]:
            return False
    elif len(steps) > 1 or not built_in:
        return False
    return (
        _sees_pieces(state)
        and state.get("normalizer") is None
        and not any(token["lstrip"] or _LINES.search(token["content"]) for token in state["added_tokens"])
    )


def _added_tokens(tokenizer: Any) -> list[dict[str, Any]]:
    return [
        {"id": number, "content": token.content, "normalized": token.normalized}
        for number, token in tokenizer.get_added_tokens_decoder().items()
    ]


def _halves(text: str, tokens: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for match in tokens.finditer(text):
        yield text[start : match.start() + 1]
        start = match.start() + 1
    yield text[start:]


def _sees_pieces(state: dict[str, Any]) -> bool:
    """Say whether a tokenizer treats each piece between added tokens by itself."""
    model = state.get("model") or {}
    for step in _steps(state.get("pre_tokenizer"), "pretokenizers"):
        if step.get("type") == "Metaspace" and step.get("prepend_scheme") not in ("always", "never"):
            return False
        if step.get("type") not in _PRE_TOKENIZERS:
            return False
    for step in _steps(state.get("post_processor"), "processors"):
        if step.get("type") not in _POST_PROCESSORS:
            return False
        if (
            step.get("type") == "TemplateProcessing"
            and sum("Sequence" in item for item in step["single"]) != 1
        ):
            return False
    return (
        not state.get("opaque")
        and all(step.get("type") in _NORMALIZERS for step in _steps(state.get("normalizer"), "normalizers"))
        and not model.get("dropout")
        and state.get("truncation") is None
        and state.get("padding") is None
    )


def _steps(step: dict[str, Any] | None, members: str) -> Iterator[dict[str, Any]]:
    if step is None:
        return
    if step.get("type") == "Sequence":
        for member in step[members]:
            yield from _steps(member, members)
    else:
        yield step


def _standing_alone(added: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Return the added tokens that are found wherever they are written, whatever stands beside them.

    That is, those that touch nothing beside them, and that no other one can overlap.
    """
    contents = [token["content"] for token in added]
    everything = "\x00".join(contents)
    prefixes = {text[:end] for text in contents for end in range(1, len(text))}
    suffixes = {text[start:] for text in contents for start in range(1, len(text))}
    found_first = [token["content"] for token in added if not token["normalized"]]
    words = any(token["single_word"] for token in added)
    for token in added:
        text = token["content"]
        if (
            len(text) > 1
            and not (token["lstrip"] or token["rstrip"] or token["single_word"])
            and not (text[0].isspace() or text[-1].isspace())
            # Beside a letter another one that has to be a word would be none.
            and not (words and (_in_word(text[0]) or _in_word(text[-1])))
            and everything.count(text) == 1
            and not any(text[:end] in suffixes for end in range(1, len(text)))
            and not any(text[start:] in prefixes for start in range(1, len(text)))
            # Those that are found in the text as it is are found first.
            and not (token["normalized"] and any(other in text for other in found_first))
        ):
            yield token


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
