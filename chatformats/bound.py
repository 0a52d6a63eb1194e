# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A formatter with other defaults: the tokens of one tokenizer."""

from __future__ import annotations

from functools import partial

from .spans import Rendered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .conversation import Conversation
    from .formatter import ChatFormatter
    from .messages import Messages, Tools
    from .parsing import ParsedMessage, Parser


class BoundFormatter:
    """Render with ``formatter``, and with ``options`` where a call does not give them.

    It is a ``ChatFormatter`` itself, so that who calls ``render`` cannot forget the options.

    >>> import chatformats
    >>> fmt = BoundFormatter(chatformats.get("ministral-3"), bos_token="<bos>")
    >>> fmt.render([{"role": "system", "content": "Be brief."}])
    '<bos>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT]'
    """

    __slots__ = (
        "content_parts",
        "control_tokens",
        "formatter",
        "name",
        "options",
        "render",
        "stop",
        "template",
        "variables",
    )

    render: Callable[..., str]

    def __init__(self, formatter: ChatFormatter, **options: str) -> None:
        self.formatter = formatter
        self.options = options
        self.name = formatter.name
        self.template = formatter.template
        self.variables = formatter.variables
        self.content_parts = formatter.content_parts
        # A partial is called in C: a method that forwards keywords would take three times as long.
        render: Callable[..., str] = formatter.render
        self.render = partial(render, **options)
        defaults = formatter.render.__kwdefaults__ or {}
        replaced = [defaults[key] for key in options]
        kept = [token for token in formatter.control_tokens if token not in replaced]
        self.control_tokens = tuple(dict.fromkeys((*kept, *filter(None, options.values()))))
        written = {defaults[key]: token for key, token in options.items()}
        self.stop = tuple(filter(None, (written.get(token, token) for token in formatter.stop)))

    def render_segments(
        self,
        messages: Messages,
        tools: Tools | None = None,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> Rendered:
        """Return the same prompt as ``render``, which knows who wrote each of its characters."""
        rendered = self.formatter.render_segments(
            messages,
            tools,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            **{**self.options, **variables},
        )
        # Of the same text, with these control tokens.
        return Rendered(self, rendered.segments, rendered.dropped)

    def parse(
        self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
    ) -> ParsedMessage:
        """Read what a model wrote, which ends at this formatter's ``stop``."""
        return self.parser(prompt, tools).read(completion)

    def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
        """Return a parser that reads a completion in chunks."""
        return type(self.formatter.parser())(self.stop, prompt, tools)

    def conversation(
        self,
        messages: Messages = (),
        tools: Tools | None = None,
        *,
        segments: bool = False,
        **variables: Any,
    ) -> Conversation:
        """Return a conversation that grows: rendering it again costs only what is new."""
        conversation: Callable[..., Conversation] = self.formatter.conversation
        return conversation(messages, tools, segments=segments, **{**self.options, **variables})

    def is_prefix_stable(self, **variables: Any) -> bool:
        """Say whether the prompt of a conversation always begins that of a longer one."""
        is_prefix_stable: Callable[..., bool] = self.formatter.is_prefix_stable
        return is_prefix_stable(**{**self.options, **variables})

    def bridge(
        self,
        messages: Messages,
        completion: str,
        new_messages: Messages,
        tools: Tools | None = None,
        **variables: Any,
    ) -> str | None:
        """Return what leads from prompt and completion to the next prompt, or ``None``."""
        return self.conversation(messages, tools, **variables).bridge(completion, new_messages)
