# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What a format of one's own starts from: it writes the prompt, the rest follows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .formatter import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    from .conversation import Conversation, Message, Recent
    from .messages import Messages, Tools
    from .parsing import ParsedMessage, Parser
    from .spans import Rendered


class BaseFormatter(ABC):
    r"""A formatter whose subclass says its ``name`` and how to ``write``, and is a ``ChatFormatter`` by that.

    >>> class Turns(BaseFormatter):
    ...     name = "turns"
    ...     control_tokens = ("<end>",)
    ...
    ...     def write(self, out, messages, tools, add_generation_prompt, *, colon=": "):
    ...         for index, message in out.turns(messages, 0):
    ...             out.scaffold(message["role"] + colon)
    ...             out.content(message["content"])
    ...             out.control("<end>")
    >>> Turns().render([{"role": "user", "content": "Hi"}], colon="> ")
    'user> Hi<end>'
    >>> Turns().variables
    ('colon',)
    >>> Turns().render_segments([{"role": "user", "content": "Hi"}]).spans(origin="content")
    [(6, 8)]
    """

    name: str
    template: str = "its author's"
    variables: tuple[str, ...] = ()
    control_tokens: tuple[str, ...] = ()
    content_parts: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The template's variables are the keywords of ``write``: named once.
        cls.variables = tuple(cls.write.__kwdefaults__ or ())

    @abstractmethod
    def write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        *args: Any,
        **variables: Any,
    ) -> None:
        """Write the prompt's pieces with ``out.control``, ``out.scaffold`` and ``out.content``, in order.

        ``out.markup`` takes constant text in which ``control_tokens`` stand among scaffold, and nothing that
        a caller may have written. What the model itself writes, once it is prompted, goes to
        ``out.reply``'s. A subclass declares the template's variables as keywords with defaults, and no other
        arguments. It raises ChatFormatError, and nothing else, where the template raises.
        """

    def render(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> str:
        """Return the prompt; see ``ChatFormatter``."""
        if continue_final_message:
            return self.render_segments(
                messages,
                tools,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                **variables,
            ).text
        out = Sink()
        self.write(out, messages, tools, add_generation_prompt, **variables)
        return "".join(out.pieces)

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> Rendered:
        """Return the same prompt, which knows who wrote each of its characters."""
        from .spans import SpanSink

        out = SpanSink(self, messages, add_generation_prompt, continue_final_message)
        self.write(out, out.messages, tools, add_generation_prompt, **variables)
        return out.rendered()

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read what a model wrote: see ``parser``."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks.

        It knows ``stop`` and think tags; a format with tool calls returns its own.
        """
        from .parsing import Parser

        return Parser(self.stop, prompt, tools)

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        segments: bool = False,
        **variables: Any,
    ) -> Conversation:
        """Return a conversation that grows; it is written anew each time, and says what stays."""
        from .conversation import Conversation

        return Conversation(self, messages, tools, variables, segments=segments)

    def is_prefix_stable(self, **variables: Any) -> bool:
        """Say whether appended messages ever change the prompt before them: it is not known."""
        return False

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
        **variables: Any,
    ) -> str | None:
        """Return what leads from prompt and completion to the next prompt: see ``Conversation.bridge``."""
        return self.conversation(messages, tools, **variables).bridge(completion, new_messages)

    def _resume(
        self,
        out: Sink,
        messages: Recent,
        start: int,
        state: None,
        add_generation_prompt: bool,
        tools: Tools | None,
        variables: dict[str, Any],
    ) -> None:
        self.write(out, messages.items, tools, add_generation_prompt, **variables)

    def _state(self, messages: Recent, start: int, state: None, variables: object) -> None:
        return None

    def _rewrites(self, variables: object) -> Mapping[str, Literal["head", "turns"]]:
        return {}

    def _end_of_turn(self, variables: object) -> str:
        return self.stop[0] if self.stop else ""

    def _as_message(self, sampled: str, prompt: str) -> Message:
        return {"role": "assistant", "content": sampled}
