# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Types of what goes in: messages, content parts, tools and tool calls.

The shapes are those of OpenAI's chat-completions API, with the keys that the templates read. They help
a caller to write a conversation; formatters accept any mapping, so plain dicts and other libraries'
TypedDicts do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

Messages = Sequence[Mapping[str, object]]
Tools = Sequence[Mapping[str, object]]


class TextPart(TypedDict):
    """A content part of text."""

    type: Literal["text"]
    text: str


class ImagePart(TypedDict, total=False):
    """A content part that stands for an image; templates print a placeholder for it."""

    type: Literal["image"]
    image: object


class ImageURL(TypedDict, total=False):
    """Where an image is."""

    url: str
    detail: str


class ImageURLPart(TypedDict):
    """A content part that stands for an image, as OpenAI's API has it."""

    type: Literal["image_url"]
    image_url: ImageURL


ContentPart = TextPart | ImagePart | ImageURLPart


class FunctionCall(TypedDict):
    """What a tool call calls; most templates want the arguments as a mapping, not as a JSON string."""

    name: str
    arguments: Mapping[str, object] | str


class _ToolCall(TypedDict):
    function: FunctionCall


class ToolCall(_ToolCall, total=False):
    """A call of a tool, in an assistant message."""

    id: str
    type: Literal["function"]


class SystemMessage(TypedDict):
    """Instructions to the model."""

    role: Literal["system"]
    content: str | Sequence[TextPart]


class UserMessage(TypedDict):
    """What the user says."""

    role: Literal["user"]
    content: str | Sequence[ContentPart]


class _AssistantMessage(TypedDict):
    role: Literal["assistant"]


class AssistantMessage(_AssistantMessage, total=False):
    """What the model answered: content, reasoning, tool calls, or several of them."""

    content: str | Sequence[TextPart] | None
    reasoning_content: str
    tool_calls: Sequence[ToolCall]


class _ToolMessage(TypedDict):
    role: Literal["tool"]
    content: str


class ToolMessage(_ToolMessage, total=False):
    """What a tool returned."""

    name: str
    tool_call_id: str


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class _FunctionDefinition(TypedDict):
    name: str


class FunctionDefinition(_FunctionDefinition, total=False):
    """A function that the model may call; ``parameters`` is a JSON schema."""

    description: str
    parameters: Mapping[str, object]
    strict: bool


class Tool(TypedDict):
    """A tool definition."""

    type: Literal["function"]
    function: FunctionDefinition
