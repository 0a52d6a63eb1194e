# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A program that uses every public name: type-checked, never run.

Each ``type: ignore[code]`` is an error that a caller must see: an unused one fails the check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typing_extensions import assert_type

import chatformats
from chatformats import (
    ChatFormatError,
    ChatFormatter,
    PromptEncoder,
    TemplateRaisedError,
    find_control_tokens,
    for_template,
    for_tokenizer_config,
    get,
    names,
    normalize,
    register,
)
from chatformats.base import BaseFormatter
from chatformats.conversation import Conversation, Delta
from chatformats.formats.glm4_tools import GLM4ToolsFormatter
from chatformats.formats.hebatron import HebatronFormatter
from chatformats.formats.joyai_llm_flash import JoyAILLMFlashFormatter
from chatformats.formats.ministral_3 import Ministral3Formatter
from chatformats.formats.nemotron_nano_v2 import NemotronNanoV2Formatter
from chatformats.formatter import Sink
from chatformats.messages import (
    AssistantMessage,
    ContentPart,
    FunctionCall,
    FunctionDefinition,
    ImagePart,
    ImageURL,
    ImageURLPart,
    Message,
    Messages,
    SystemMessage,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    Tools,
    UserMessage,
)
from chatformats.normalization import Normalized
from chatformats.parsing import (
    ArgumentsDelta,
    ContentDelta,
    Event,
    ParsedMessage,
    ParsedToolCall,
    Parser,
    Problem,
    ReasoningDelta,
    ToolCallBegin,
    ToolCallDone,
)
from chatformats.spans import Injection, Rendered, Segment


def each_name_has_its_class() -> None:
    assert_type(get("glm4-tools"), GLM4ToolsFormatter)
    assert_type(get("hebatron"), HebatronFormatter)
    assert_type(get("joyai-llm-flash"), JoyAILLMFlashFormatter)
    assert_type(get("ministral-3"), Ministral3Formatter)
    assert_type(get("nemotron-nano-v2"), NemotronNanoV2Formatter)
    assert_type(chatformats.get("hebatron"), HebatronFormatter)


def a_name_from_elsewhere_has_the_protocol(name: str) -> str:
    formatter = get(name)
    assert_type(formatter, ChatFormatter)
    assert_type(names(), tuple[str, ...])
    assert_type(formatter.name, str)
    assert_type(formatter.template, str)
    assert_type(formatter.variables, tuple[str, ...])
    formatter.name = "other"  # type: ignore[misc]  # read-only
    get(3)  # type: ignore[call-overload]  # a name is a string
    return formatter.render([], None, add_generation_prompt=True)


def a_template_has_a_formatter_or_none(source: str, config: Mapping[str, object], path: Path) -> str | None:
    assert_type(for_template(source), ChatFormatter | None)
    assert_type(chatformats.for_tokenizer_config(config), ChatFormatter | None)
    assert_type(for_tokenizer_config(path, template="tool_use"), ChatFormatter | None)
    for_template(source.encode())  # type: ignore[arg-type]
    for_tokenizer_config(None)  # type: ignore[arg-type]
    chatformats.for_no_such_thing()  # type: ignore[attr-defined]  # what is loaded late hides no typing error
    formatter = for_tokenizer_config(str(path))
    formatter.render([])  # type: ignore[union-attr]  # it may be None
    return formatter.render([]) if formatter else None


def every_formatter_is_a_chat_formatter() -> Sequence[ChatFormatter]:
    class Mine:
        name = "mine"
        template = "my own"
        variables = ("greeting",)
        control_tokens = ("<end>",)
        content_parts = ("user",)
        stop = ("<end>",)

        def render(
            self,
            messages: Messages,
            tools: Tools | None = None,
            *,
            add_generation_prompt: bool = False,
            continue_final_message: bool = False,
            greeting: str = "Hello",
        ) -> str:
            return greeting

        def render_segments(
            self,
            messages: Messages,
            tools: Tools | None = None,
            *,
            add_generation_prompt: bool = False,
            continue_final_message: bool = False,
            greeting: str = "Hello",
        ) -> Rendered:
            raise NotImplementedError

        def parse(
            self, completion: str, *, prompt: str | None = None, tools: Tools | None = None
        ) -> ParsedMessage:
            raise NotImplementedError

        def parser(self, prompt: str | None = None, tools: Tools | None = None) -> Parser:
            raise NotImplementedError

        def conversation(
            self, messages: Messages = (), tools: Tools | None = None, *, segments: bool = False
        ) -> Conversation:
            raise NotImplementedError

        def is_prefix_stable(self) -> bool:
            return False

        def bridge(
            self,
            messages: Messages,
            completion: str,
            new_messages: Messages,
            tools: Tools | None = None,
        ) -> str | None:
            return None

    class WithoutTools:
        name = "without-tools"
        template = "nobody's"
        variables = ()
        control_tokens = ()
        content_parts = ()

        def render(
            self,
            messages: Messages,
            *,
            add_generation_prompt: bool = False,
            continue_final_message: bool = False,
        ) -> str:
            return ""

        stop = ()
        render_segments = Mine.render_segments
        parse = Mine.parse
        parser = Mine.parser
        conversation = Mine.conversation
        is_prefix_stable = Mine.is_prefix_stable
        bridge = Mine.bridge

    refused: ChatFormatter = WithoutTools()  # type: ignore[assignment]  # ``tools`` is missing
    return (
        refused,
        Mine(),
        GLM4ToolsFormatter(),
        HebatronFormatter(),
        JoyAILLMFlashFormatter(),
        Ministral3Formatter(),
        NemotronNanoV2Formatter(),
    )


def a_format_of_ones_own_needs_a_name_and_write() -> ChatFormatter:
    class Mine(BaseFormatter):
        name = "mine"

        def write(
            self,
            out: Sink,
            messages: Messages,
            tools: Tools | None,
            add_generation_prompt: bool,
            *,
            greeting: str = "Hello",
        ) -> None:
            out.scaffold(greeting)

    class WithoutWrite(BaseFormatter):
        name = "without-write"

    register("mine", Mine)
    register("also-mine", lambda: Mine())
    register("mine", Mine())  # type: ignore[arg-type]  # the class, not a formatter
    register("other", dict)  # type: ignore[arg-type]
    WithoutWrite()  # type: ignore[abstract]
    assert_type(Mine().render([], greeting="Hi"), str)
    assert_type(Mine().render_segments([]), Rendered)
    return Mine()


def the_templates_variables_are_keywords(messages: Messages) -> None:
    glm, hebatron, joyai = GLM4ToolsFormatter(), HebatronFormatter(), JoyAILLMFlashFormatter()
    ministral, nemotron = Ministral3Formatter(), NemotronNanoV2Formatter()

    assert_type(glm.render(messages, [], add_generation_prompt=True), str)
    hebatron.render(messages, enable_thinking=False, truncate_history_thinking=False)
    joyai.render(messages, bos_token="<s>")
    ministral.render(messages, bos_token="", eos_token="")
    nemotron.render(messages, continue_final_message=True)
    glm.render(messages, continue_final_message=True)

    glm.render(messages, bos_token="")  # type: ignore[call-arg]
    glm.render(messages, enable_thinking=False)  # type: ignore[call-arg]
    hebatron.render(messages, thinking=False)  # type: ignore[call-arg]
    joyai.render(messages, eos_token="")  # type: ignore[call-arg]
    joyai.render(messages, enable_thinking=False)  # type: ignore[call-arg]
    ministral.render(messages, enable_thinking=False)  # type: ignore[call-arg]
    nemotron.render(messages, bos_token="")  # type: ignore[call-arg]

    glm.render()  # type: ignore[call-arg]
    hebatron.render(messages, enable_thinking="no")  # type: ignore[arg-type]
    ministral.render(messages, bos_token=None)  # type: ignore[arg-type]


def plain_messages_need_no_cast(formatter: ChatFormatter, given: dict[str, Any]) -> None:
    dicts: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}, given]
    strings: list[dict[str, str]] = [{"role": "user", "content": "Hi"}]
    read_only: tuple[Mapping[str, object], ...] = (MappingProxyType({"role": "user"}),)
    formatter.render(dicts, dicts)
    formatter.render(tuple(dicts), tuple(dicts))
    formatter.render(strings)
    formatter.render(read_only)
    formatter.render([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    formatter.render(({"role": "user", "content": "Hi"},))

    formatter.render("Hi")  # type: ignore[arg-type]
    formatter.render(given)  # type: ignore[arg-type]
    formatter.render([["user", "Hi"]])  # type: ignore[list-item]
    formatter.render(message for message in dicts)  # type: ignore[arg-type]
    formatter.render(None)  # type: ignore[arg-type]


def our_own_types_need_no_cast(formatter: ChatFormatter) -> None:
    text: TextPart = {"type": "text", "text": "What is this?"}
    image: ImagePart = {"type": "image"}
    url: ImageURL = {"url": "data:image/png;base64,", "detail": "low"}
    linked: ImageURLPart = {"type": "image_url", "image_url": url}
    parts: list[ContentPart] = [text, image, linked]
    function: FunctionCall = {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}}
    as_json: FunctionCall = {"name": "get_weather", "arguments": '{"city": "Zürich"}'}
    call: ToolCall = {"function": function}
    other_call: ToolCall = {"id": "call00001", "type": "function", "function": as_json}

    system: SystemMessage = {"role": "system", "content": "Be brief."}
    user: UserMessage = {"role": "user", "content": parts}
    silent: AssistantMessage = {"role": "assistant", "content": None, "tool_calls": [call, other_call]}
    result: ToolMessage = {"role": "tool", "content": "{}", "tool_call_id": "call00001"}
    answer: AssistantMessage = {"role": "assistant", "content": "Rain.", "reasoning_content": "Hm."}
    messages: list[Message] = [system, user, silent, result, answer]
    users: list[UserMessage] = [user]

    definition: FunctionDefinition = {
        "name": "get_weather",
        "description": "Get the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    tool: Tool = {"type": "function", "function": definition}
    tools: list[Tool] = [tool]

    formatter.render(messages, tools)
    formatter.render(tuple(messages), tuple(tools))
    formatter.render(users)
    formatter.render([system, user])

    wrong_role: UserMessage = {"role": "assistant", "content": ""}  # type: ignore[typeddict-item]
    no_content: SystemMessage = {"role": "system"}  # type: ignore[typeddict-item]
    unknown_key: ToolCall = {"function": function, "index": 0}  # type: ignore[typeddict-unknown-key]
    formatter.render([wrong_role, no_content, unknown_key])


def segments_say_who_wrote_what(
    formatter: ChatFormatter, messages: Messages, offsets: list[tuple[int, int]]
) -> None:
    assert_type(find_control_tokens(formatter, messages, None), list[tuple[str, str, int]])
    assert_type(formatter.control_tokens, tuple[str, ...])
    rendered = formatter.render_segments(messages, add_generation_prompt=True)
    assert_type(rendered, Rendered)
    assert_type(rendered.text, str)
    assert_type(rendered.segments, tuple[Segment, ...])
    assert_type(rendered.spans(origin="content", role="user", generated=False), list[tuple[int, int]])
    assert_type(rendered.mask(offsets), list[int])
    assert_type(rendered.message_index(offsets), list[int | None])
    assert_type(rendered.dropped, list[int])
    assert_type(rendered.injected, list[Injection])
    assert_type(rendered.encode(lambda text: [1], lambda text: (2, 3)), list[int])
    rendered.spans(origin="caller")  # type: ignore[arg-type]
    HebatronFormatter().render_segments(messages, enable_thinking=False)
    HebatronFormatter().render_segments(messages, bos_token="")  # type: ignore[call-arg]


def what_clients_send_is_normalized(formatter: ChatFormatter, request: object, sent: Iterator[object]) -> str:
    normalized = normalize(sent, formatter, merge_consecutive=True, join_text=None)
    assert_type(normalized, Normalized)
    assert_type(normalized[0], dict[str, object])
    assert_type(normalized.problems, list[ChatFormatError])
    assert_type(normalized.problems[0].hint, str)
    assert_type(formatter.content_parts, tuple[str, ...])
    normalize(request)  # type: ignore[arg-type]  # not known to be a sequence
    normalize([], "hebatron")  # type: ignore[arg-type]  # a formatter, not its name
    normalize([], merge=True)  # type: ignore[call-arg]
    return formatter.render(normalize([{"role": "user", "content": "Hi"}]))


def completions_are_read(formatter: ChatFormatter, rendered: Rendered, text: str) -> str:
    parsed = formatter.parse(text, prompt=rendered.text, tools=[])
    assert_type(parsed, ParsedMessage)
    assert_type(rendered.parse(text), ParsedMessage)
    assert_type(parsed.reasoning_content, str | None)
    assert_type(parsed.tool_calls, list[ParsedToolCall])
    assert_type(parsed.problems, list[Problem])
    assert_type(parsed.message(), AssistantMessage)
    assert_type(formatter.stop, tuple[str, ...])
    parser = rendered.parser()
    assert_type(parser, Parser)
    events: list[Event] = parser.feed(text)
    for event in events:
        if isinstance(event, (ContentDelta, ReasoningDelta, ArgumentsDelta)):
            return event.text
        if isinstance(event, ToolCallBegin):
            return event.name
        assert_type(event, ToolCallDone)
    formatter.parse(b"bytes")  # type: ignore[arg-type]
    return parser.close().content


def conversations_grow(formatter: ChatFormatter, messages: Messages, tokenizer: Any) -> list[int]:
    chat = formatter.conversation(messages, None)
    chat.append({"role": "user", "content": "Hi"})
    chat.extend(messages)
    assert_type(chat, Conversation)
    assert_type(chat.fork(), Conversation)
    assert_type(chat.render(add_generation_prompt=True), str)
    assert_type(chat.delta(), Delta)
    assert_type(formatter.bridge(messages, "text", []), str | None)
    assert_type(HebatronFormatter().is_prefix_stable(truncate_history_thinking=False), bool)
    HebatronFormatter().conversation(messages, bos_token="")  # type: ignore[call-arg]
    chat.append("Hi")  # type: ignore[arg-type]
    return PromptEncoder(formatter, tokenizer).encode(formatter.render_segments(messages))


def errors_say_what_and_where(formatter: ChatFormatter, messages: Messages) -> str:
    try:
        return formatter.render(messages)
    except TemplateRaisedError as error:
        refusal: ChatFormatError = error
        return refusal.problem
    except ChatFormatError as error:
        as_value_error: ValueError = error
        assert_type(error.path, str)
        assert_type(error.problem, str)
        return str(as_value_error)
