# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What every formatter is, and where it writes."""

from __future__ import annotations

import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Final, Protocol

    from .conversation import Conversation
    from .messages import Messages, Tools
    from .parsing import ParsedMessage, Parser
    from .spans import Rendered
else:
    Protocol = object


class ChatFormatter(Protocol):
    """Turn a conversation into the prompt that one chat template makes of it.

    Formatters hold no state, never change their input, and may be shared between threads. The text of
    tools that come again is remembered for all of them: see ``Sink.tools``.
    """

    @property
    def name(self) -> str:
        """The name that ``chatformats.get`` knows the format by."""

    @property
    def template(self) -> str:
        """Whose template it is, in a line."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The keyword arguments of ``render`` that are the template's own variables.

        A server filters its ``chat_template_kwargs`` by them.
        """

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """The control tokens that the format writes and the model's tokenizer holds as such."""

    @property
    def content_parts(self) -> tuple[str, ...]:
        """The roles whose content may be a list of parts; to the others it has to be a string."""

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> str:
        """Return the prompt, the same text as the template's to the last character.

        ``messages`` is a sequence of mappings, each with a ``role``; ``tools`` a sequence of tool
        definitions, or ``None``. With ``continue_final_message`` the prompt ends where the last message's
        content ends, as transformers defines it. Raises ChatFormatError, which names the place, wherever
        the template would raise anything, and where there is nothing to continue.
        """

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> Rendered:
        """Return the same prompt as ``render``, which knows who wrote each of its characters."""

    @property
    def stop(self) -> tuple[str, ...]:
        """The strings at which generation ends: what the template writes after an assistant turn."""

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read what a model wrote; whatever it is, nothing of it is lost and nothing raises.

        ``prompt`` is what came before, its end is enough: it says whether reasoning is open. ``tools``
        give the types of arguments that are written as bare text.
        """

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks, with the same result in any chunks."""

    def conversation(
        self, messages: Messages = (), tools: Tools | None = None, *, segments: bool = False
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new.

        With ``segments`` it keeps who wrote what, for its ``render_segments``. It takes the template's
        variables too, as ``render`` does.
        """

    def is_prefix_stable(self) -> bool:
        """Say whether the prompt of a conversation always begins that of a longer one.

        That is without a generation prompt, which the next turn takes the place of. A format whose answer
        depends on the template's variables takes them, as ``render`` does.
        """

    def bridge(
        self, messages: Messages, completion: str, new_messages: Messages, tools: Tools | None = None
    ) -> str | None:
        """Return what leads from the prompt and what the model wrote to the prompt for the turn after it.

        Appended to ``render(messages, tools, add_generation_prompt=True)`` and the completion, it closes the
        model's turn where it was cut off, writes the new messages, and prompts for the next turn. ``None``
        where the template would rewrite the prompt or the completion: then the caller renders anew.
        """


class Writer:
    """A verb for each origin that a piece of a prompt may have, and one for two of them at once.

    ``control`` takes a control token that the format writes, ``scaffold`` its other text, and
    ``content`` what came from the caller's messages or tools. ``markup`` takes constant text in which
    the format's ``control_tokens`` stand among scaffold: one piece where there would be several.
    """

    __slots__ = ("content", "control", "markup", "scaffold")

    control: Callable[[str], object]
    markup: Callable[[str], object]
    scaffold: Callable[[str], object]
    content: Callable[[str], object]


class Sink(Writer):
    """Collect the pieces of one prompt, in order, without asking who wrote them.

    The verbs are one list's ``append`` and ``turns`` is ``enumerate``: a method written in
    Python would take 1.8 to 3.4 times the time of the loop that calls it.
    """

    __slots__ = ("pieces",)

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.control = self.markup = self.scaffold = self.content = self.pieces.append

    @property
    def reply(self) -> Writer:
        """The verbs for what the model itself writes, once it is prompted to."""
        return self

    if TYPE_CHECKING:

        def turns(self, messages: Messages, first: int) -> Iterable[tuple[int, Mapping[str, object]]]:
            """Go through messages, with their indices from ``first`` on."""

    else:
        turns = enumerate

    def turn(self, index: int | None) -> None:
        """Say which message the next pieces belong to, where that is not a loop's."""

    def tools(self, write: Callable[..., None], tools: Tools, *options: object) -> None:
        """Do ``write(self, tools, *options)``; from the third time on, with the same tools, from memory.

        What is written may depend on nothing else. An agent's tools are the same in each of its prompts, and
        writing them takes most of the time of a short one: 35 to 90 µs for eight, to recognise them 7.
        """
        data = _serialized(tools)
        key = (write, options, data)
        text = _TOOL_TEXTS.get(key)
        if text is not None:
            self.pieces.append(text)
            return
        start = len(self.pieces)
        write(self, tools, *options)
        if hash(key) not in _SEEN:
            if len(_SEEN) >= _MOST:
                _SEEN.clear()
            _SEEN.add(hash(key))
        elif data:
            text = "".join(self.pieces[start:])
            if max(len(data), len(text)) <= _LONGEST and _is_json(tools, marshal.loads(data)):
                if len(_TOOL_TEXTS) >= _MOST:
                    _TOOL_TEXTS.clear()
                _TOOL_TEXTS[key] = text


# What tools were written as, by what they are. Those that come once are not worth it: their hash is kept.
_TOOL_TEXTS: Final[dict[tuple[object, ...], str]] = {}
_SEEN: Final[set[int]] = set()
_MOST: Final = 256
_LONGEST: Final = 65_536


def _serialized(tools: Any) -> bytes:
    """Return bytes that say all of the tools, types and the order of keys included, or none.

    Equal tools may have other bytes, where something else refers to a part of them too: that is the price
    of a serialization that goes once through what is there twice, or in a circle.
    """
    try:
        return marshal.dumps(tools)
    except ValueError:
        # A subclass, or another object: it may print what it likes.
        return b""


def _is_json(value: Any, copy: Any) -> bool:
    """Say whether a value is of JSON's types throughout, and its copy the same to the order of keys.

    Any buffer is serialized as bytes, and a set loses its order; and tools that another thread has changed
    meanwhile must not be kept under what they were.
    """
    pending = [(value, copy)]
    seen = set()
    while pending:
        one, other = pending.pop()
        kind = type(one)
        if kind is not type(other):
            return False
        if kind is dict or kind is list or kind is tuple:
            if (id(one), id(other)) in seen:
                # It is there twice, or in a circle.
                continue
            seen.add((id(one), id(other)))
            if len(one) != len(other):
                return False
            pending += zip(one, other)
            if kind is dict:
                pending += zip(one.values(), other.values())
        elif kind is float:
            if repr(one) != repr(other):
                return False
        elif kind not in (str, int, bool, type(None)) or one != other:
            return False
    return True
