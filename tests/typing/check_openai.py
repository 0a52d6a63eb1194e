# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A program that passes the OpenAI SDK's types on: type-checked, never run."""

from __future__ import annotations

from openai.types.chat import (
    ChatCompletion,
    ChatCompletionAssistantMessageParam,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
    ChatCompletionSystemMessageParam,
    ChatCompletionToolMessageParam,
    ChatCompletionToolUnionParam,
    ChatCompletionUserMessageParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from chatformats import ChatFormatter


def a_conversation(
    formatter: ChatFormatter,
    messages: list[ChatCompletionMessageParam],
    tools: list[ChatCompletionToolUnionParam],
) -> str:
    formatter.render(tuple(messages), tuple(tools))
    formatter.render([{"role": "system", "content": "Be brief."}, *messages])
    return formatter.render(messages, tools, add_generation_prompt=True)


def one_kind_of_message(
    formatter: ChatFormatter,
    system: ChatCompletionSystemMessageParam,
    user: ChatCompletionUserMessageParam,
    assistant: ChatCompletionAssistantMessageParam,
    result: ChatCompletionToolMessageParam,
    tool: ChatCompletionFunctionToolParam,
) -> str:
    users: list[ChatCompletionUserMessageParam] = [user]
    tools: list[ChatCompletionFunctionToolParam] = [tool]
    formatter.render(users, tools)
    return formatter.render([system, user, assistant, result], [tool])


def a_request(formatter: ChatFormatter, request: CompletionCreateParamsNonStreaming) -> str:
    # The SDK types both as Iterable, which may be gone through once: hence the lists.
    return formatter.render(list(request["messages"]), list(request.get("tools", ())))


def an_answer_as_the_next_message(
    formatter: ChatFormatter, messages: list[ChatCompletionMessageParam], completion: ChatCompletion
) -> str:
    answer = completion.choices[0].message.model_dump(exclude_none=True)
    return formatter.render([*messages, answer])
