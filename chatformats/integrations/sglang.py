# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Formatters in the shape of SGLang's ``PythonChatTemplate``; sglang itself is not needed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..registry import get
from ..undefined import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class ReasoningToggle:
    """As SGLang's ``ReasoningToggleConfig``: the variable that switches reasoning, and its default."""

    toggle_param: str | None = None
    default_enabled: bool | None = None
    special_case: str | None = None
    effort_kwarg: str | None = None
    always_on: bool = False


@dataclass(frozen=True)
class PythonChatTemplate:
    """As SGLang's class of this name: a template, and what the server asks of it."""

    name: str
    render_segments: Callable[..., list[str]]
    content_format: str
    reasoning_config: ReasoningToggle | None
    may_reorder_tool_results: bool
    supports_inline_system: bool
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    force_reasoning: bool = False


# As SGLang 0.5.23 derives it from the same templates: the switch of reasoning, whether a later system message
# is printed, and its parsers, but for GLM-4's, Ministral's and Nemotron's of tool calls, which it has not
# or gets wrong. Nemotron's template has no such variable: SGLang takes what it finds in it for one.
_THINKING = ReasoningToggle("enable_thinking", True)
_FEATURES: dict[str, tuple[ReasoningToggle | None, bool, str | None, str | None]] = {
    "glm4-tools": (None, False, None, "glm45"),
    "hebatron": (_THINKING, True, "nemotron_3", "qwen3_coder"),
    "joyai-llm-flash": (None, True, None, "qwen3_coder"),
    "ministral-3": (None, False, None, "mistral"),
    "nemotron-nano-v2": (_THINKING, False, "qwen3", None),
}


def python_chat_template(name: str) -> PythonChatTemplate:
    """Return the format of a name for SGLang's ``install_python_chat_template(tokenizer, …)``.

    ``render_segments`` returns the prompt in pieces: each control token that the format writes by itself,
    and what stands between. It takes any variable, as Jinja does, ignores those that the format has not, and
    prints nothing for a ``bos_token`` or ``eos_token`` that is not given.

    >>> template = python_chat_template("ministral-3")
    >>> messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    >>> template.render_segments(messages=messages, bos_token="<s>", enable_thinking=False)
    ['<s>', '[SYSTEM_PROMPT]', 'Be brief.', '[/SYSTEM_PROMPT]', '[INST]', 'Hi', '[/INST]']
    """
    formatter = get(name)
    render: Callable[..., Any] = formatter.render_segments
    # The server goes its own way to continue a message.
    known = [key for key in formatter.variables if key != "continue_final_message"]
    absent = {key: UNDEFINED for key in known if key in ("bos_token", "eos_token")}

    def render_segments(
        messages: Any, tools: Any = None, add_generation_prompt: bool = False, **variables: Any
    ) -> list[str]:
        options = {**absent, **{key: variables[key] for key in known if key in variables}}
        rendered = render(messages, tools, add_generation_prompt=add_generation_prompt, **options)
        pieces: list[str] = []
        for control, segments in groupby(
            rendered.segments, lambda segment: bool(segment.origin == "control")
        ):
            texts = [segment.text for segment in segments]
            pieces += texts if control else ["".join(texts)]
        return pieces

    toggle = _THINKING if "enable_thinking" in known else None
    reasoning, inline_system, reasoning_parser, tool_call_parser = _FEATURES.get(
        name, (toggle, False, None, None)
    )
    return PythonChatTemplate(
        name=name,
        render_segments=render_segments,
        content_format="openai" if formatter.content_parts else "string",
        reasoning_config=reasoning,
        may_reorder_tool_results=False,
        supports_inline_system=inline_system,
        reasoning_parser=reasoning_parser,
        tool_call_parser=tool_call_parser,
    )
