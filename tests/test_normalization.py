# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What normalize makes of a client's messages, and that errors name the rule that prevents them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from types import MappingProxyType
from typing import Any

import hypothesis
import pytest

import chatformats
from chatformats import ChatFormatError, normalize

from . import strategies
from .cases import ASSISTANT, USER, conversations

MINISTRAL = chatformats.get("ministral-3")
HEBATRON = chatformats.get("hebatron")
RULES_ON = {"objects", "drop_none", "alias_reasoning", "parse_arguments", "join_text", "developer_as_system"}
RULES_OFF = {"merge_consecutive", "fold_system"}
PARTS = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]
NOTHING: dict[str, Any] = {**dict.fromkeys(RULES_ON, False), "join_text": None}


class Model:
    """As pydantic's: known by its method."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, object]:
        return self.fields


@dataclasses.dataclass
class Function:
    name: str
    arguments: str


@dataclasses.dataclass
class Call:
    function: Function


def said(role: str, content: object, **keys: object) -> dict[str, object]:
    return {"role": role, "content": content, **keys}


def calls(*arguments: object) -> dict[str, object]:
    return {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "f", "arguments": a}} for a in arguments],
    }


# What each rule makes of a message, with its keyword.
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "objects": (
        Model(role="assistant", tool_calls=[Call(Function("f", "x"))]),
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]},
    ),
    "drop_none": (said("user", None, name=None), {"role": "user"}),
    "alias_reasoning": (
        said("assistant", "4", reasoning="2+2"),
        said("assistant", "4", reasoning="2+2", reasoning_content="2+2"),
    ),
    "parse_arguments": (calls('{"a": [null]}', " "), calls({"a": [None]}, {})),
    "join_text": (said("user", PARTS), said("user", "Hi\nthere")),
    "developer_as_system": (said("developer", "Be brief."), said("system", "Be brief.")),
}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_each_rule_is_switched_by_its_name(rule: str) -> None:
    given, expected = EXAMPLES[rule]
    assert normalize([given]) == [expected]
    alone: dict[str, Any] = {**NOTHING, rule: "\n" if rule == "join_text" else True}
    assert normalize([given], **alone) == [expected]
    off = NOTHING[rule]
    if rule == "objects":
        with pytest.raises(ChatFormatError, match=r"^messages\[0\]: expected a mapping, got Model"):
            normalize([given], objects=False)
    else:
        assert normalize([given], **{rule: off}) == [given]


def test_every_rule_has_an_example() -> None:
    keywords = set(normalize.__kwdefaults__)
    assert keywords == RULES_ON | RULES_OFF
    assert EXAMPLES.keys() == RULES_ON


@pytest.mark.parametrize(
    "rules", [{}, dict.fromkeys(RULES_OFF, True), NOTHING], ids=["default", "all", "none"]
)
@pytest.mark.parametrize("name", chatformats.names())
def test_input_stays_as_it_is_and_is_normalized_once(name: str, rules: dict[str, Any]) -> None:
    for case in conversations(name).values():
        messages = case["messages"]
        if not all(isinstance(message, dict) for message in messages):
            continue
        before = copy.deepcopy(messages)
        once = normalize(messages, chatformats.get(name), **rules)
        assert messages == before
        assert normalize(once, chatformats.get(name), **rules) == once
        # What comes out is the caller's to change.
        for message in once:
            message.clear()
        assert messages == before


def test_without_any_rule_nothing_changes() -> None:
    messages = [said("developer", PARTS, reasoning="x"), calls("{}"), calls("{}"), said("user", None)]
    assert normalize(messages, **NOTHING) == messages


def test_any_iterable_of_any_mapping_will_do() -> None:
    assert normalize(MappingProxyType(message) for message in (USER, ASSISTANT)) == [USER, ASSISTANT]


@pytest.mark.parametrize("messages", ["Hi", {"role": "user"}, None, b"", 3])
def test_what_is_no_sequence_is_refused(messages: Any) -> None:
    with pytest.raises(ChatFormatError, match="^messages: expected a sequence of messages, got "):
        normalize(messages)


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(ChatFormatError, match=r"^messages\[1\]: expected a mapping, got a string$"):
        normalize([USER, "Hi"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"a": ', "not JSON: Expecting value: line 1 column 7 (char 6)"),
        ("[1]", "expected a JSON object in the string, got list"),
        ("null", "expected a JSON object in the string, got None"),
        ('{"a": ' + "1" * 5000 + "}", "not JSON: Exceeds the limit"),
        ("[" * 100_000, "not JSON: "),
    ],
)
def test_unparsable_arguments_stay_and_are_reported(arguments: str, problem: str) -> None:
    message = calls("{}", arguments)
    normalized = normalize([USER, message])
    assert normalized[1]["tool_calls"] == [*calls({})["tool_calls"], *calls(arguments)["tool_calls"]]  # type: ignore[misc]
    (error,) = normalized.problems
    assert error.path == "messages[1].tool_calls[1].function.arguments"
    assert error.problem.startswith(problem)


def test_problems_of_a_call_without_its_function() -> None:
    normalized = normalize([{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}, 5]}])
    assert [error.path for error in normalized.problems] == ["messages[0].tool_calls[0].arguments"]


def test_problems_survive_pickle() -> None:
    normalized = pickle.loads(pickle.dumps(normalize([calls("{")])))
    assert [str(error) for error in normalized.problems] == [
        str(error) for error in normalize([calls("{")]).problems
    ]


def test_parts_stay_where_the_format_reads_them() -> None:
    messages = [said("system", PARTS), said("user", PARTS), said("tool", PARTS)]
    assert normalize(messages, MINISTRAL) == [*messages[:2], said("tool", "Hi\nthere")]
    assert normalize(messages, HEBATRON) == [said(str(message["role"]), "Hi\nthere") for message in messages]


@pytest.mark.parametrize("name", chatformats.names())
@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_a_format_reads_parts_of_the_roles_that_it_names(name: str, role: str) -> None:
    formatter = chatformats.get(name)
    messages = [USER, said(role, PARTS)] if role in ("assistant", "tool") else [said(role, PARTS), USER]
    if name == "ministral-3" and role == "user":
        messages.pop()
    try:
        prompt = formatter.render(messages)
    except ChatFormatError:
        prompt = ""
    assert ("Hithere" in prompt) == (role in formatter.content_parts)


def test_parts_other_than_text_stay() -> None:
    for content in ([*PARTS, {"type": "image"}], [{"type": "text", "text": None}], ["Hi"], {"type": "text"}):
        assert normalize([said("user", content)]) == [said("user", content)]
    assert normalize([said("user", [])]) == [said("user", "")]
    assert normalize([said("user", PARTS)], join_text=" ") == [said("user", "Hi there")]


def test_of_reasoning_the_first_with_a_value_counts_as_in_transformers() -> None:
    message = {"role": "assistant", "reasoning": "a", "thinking": "b", "reasoning_content": None}
    assert normalize([message])[0]["reasoning_content"] == "b"
    assert normalize([{**message, "reasoning_content": "c"}])[0]["reasoning_content"] == "c"


def test_consecutive_messages_are_merged() -> None:
    messages = [
        said("system", "a"),
        said("system", "b"),
        said("user", PARTS),
        said("user", "c", name="x"),
        {"role": "assistant", "content": "d", "reasoning_content": "r"},
        calls({"k": 1}),
        calls({"k": 2}),
        said("tool", "1"),
        said("tool", "2"),
    ]
    assert normalize(messages, MINISTRAL, merge_consecutive=True) == [
        said("system", "a\n\nb"),
        said("user", [*PARTS, {"type": "text", "text": "c"}], name="x"),
        {**calls({"k": 1}, {"k": 2}), "content": "d", "reasoning_content": "r"},
        said("tool", "1"),
        said("tool", "2"),
    ]


def test_a_later_system_message_is_folded_into_the_user_message_that_follows() -> None:
    first, later = said("system", "a"), said("system", "b")
    assert normalize([first, USER, ASSISTANT, later, said("developer", "c"), USER], fold_system=True) == [
        first,
        USER,
        ASSISTANT,
        said("user", f"b\n\nc\n\n{USER['content']}"),
    ]
    for unfolded in ([USER, later, ASSISTANT], [USER, later], [first, USER]):
        assert normalize(unfolded, fold_system=True) == unfolded


def test_what_folding_brings_together_is_merged() -> None:
    messages = [said("system", "a"), USER, said("system", "b"), USER]
    both = normalize(messages, fold_system=True, merge_consecutive=True)
    assert both == [said("system", "a"), said("user", f"{USER['content']}\n\nb\n\n{USER['content']}")]
    MINISTRAL.render(both)


def test_an_openai_answer_is_rendered() -> None:
    chat = pytest.importorskip("openai.types.chat", reason="the OpenAI SDK is not installed (extra: peers)")
    function = {"name": "get_weather", "arguments": '{"city": "Zürich"}'}
    answer = chat.ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        }
    )
    with pytest.raises(ChatFormatError) as info:
        HEBATRON.render([USER, answer])
    assert info.value.hint == "normalize() makes it one"
    parsed = calls({"city": "Zürich"})["tool_calls"][0]["function"] | {"name": "get_weather"}  # type: ignore[index]
    assert HEBATRON.render(normalize([USER, answer])) == HEBATRON.render(
        [USER, {"role": "assistant", "tool_calls": [{"function": parsed}]}]
    )


ALTERNATE = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for "
    "tool calls and results."
)
ROLES = "Only user, assistant and tool roles are supported, got"

HINTS: list[tuple[str, list[Any], str]] = [
    (
        "hebatron",
        [calls("{}")],
        "messages[0].tool_calls[0].function.arguments: expected a mapping, got a string (normalize() parses it)",
    ),
    (
        "hebatron",
        [calls("{")],
        "messages[0].tool_calls[0].function.arguments: expected a mapping, got a string",
    ),
    (
        "joyai-llm-flash",
        [said("user", PARTS)],
        "messages[0].content: expected a string, got list (normalize() joins its text parts)",
    ),
    (
        "joyai-llm-flash",
        [said("user", [{"type": "image"}])],
        "messages[0].content: expected a string, got list",
    ),
    ("joyai-llm-flash", [said("user", None)], "messages[0].content: expected a string, got None"),
    (
        "nemotron-nano-v2",
        [said("user", None)],
        "messages[0].content: expected a string, got None (normalize() drops it)",
    ),
    (
        "nemotron-nano-v2",
        [USER, said("assistant", "", tool_calls=None)],
        "messages[1].tool_calls: expected a sequence, got None (normalize() drops it)",
    ),
    (
        "ministral-3",
        [USER, {**calls("{}"), "content": None}],
        "messages[1].content: expected a sequence, got None (normalize() drops it)",
    ),
    ("ministral-3", [said("user", None)], "messages[0].content: expected a string or parts, got None"),
    ("glm4-tools", [Model()], "messages[0]: expected a mapping, got Model (normalize() makes it one)"),
    (
        "glm4-tools",
        [Function("f", "")],
        "messages[0]: expected a mapping, got Function (normalize() makes it one)",
    ),
    (
        "ministral-3",
        [USER, USER],
        f"messages[1].role: {ALTERNATE} (normalize(merge_consecutive=True) merges the two)",
    ),
    (
        "ministral-3",
        [said("system", "x"), USER, USER],
        f"messages[2].role: {ALTERNATE} (normalize(merge_consecutive=True) merges the two)",
    ),
    (
        "ministral-3",
        [said("system", "x"), USER, calls({}), said("tool", "x"), USER],
        f"messages[4].role: {ALTERNATE}",
    ),
    (
        "ministral-3",
        [ASSISTANT, USER],
        f"messages[0].role: {ALTERNATE}",
    ),
    (
        "ministral-3",
        [said("developer", "x"), USER],
        f"messages[0].role: {ROLES} developer (normalize() reads it as system)",
    ),
    (
        "ministral-3",
        [USER, ASSISTANT, said("system", "x"), USER],
        f"messages[2].role: {ROLES} system (normalize(fold_system=True) puts it into the next user message)",
    ),
]


@pytest.mark.parametrize(("name", "messages", "sentence"), HINTS)
def test_an_error_names_the_rule_that_prevents_it(name: str, messages: list[Any], sentence: str) -> None:
    with pytest.raises(ChatFormatError) as info:
        chatformats.get(name).render(messages)
    assert str(info.value) == sentence
    assert str(pickle.loads(pickle.dumps(info.value))) == sentence
    assert (f" ({info.value.hint})" in sentence) == sentence.endswith(")")


def refusal(name: str, messages: Any, case: dict[str, Any]) -> ChatFormatError | None:
    try:
        chatformats.get(name).render(messages, **case)
    except ChatFormatError as error:
        return error
    return None


def with_rule(name: str, messages: Any, rule: str) -> Any:
    return normalize(
        messages, chatformats.get(name), **{**NOTHING, rule: "\n" if rule == "join_text" else True}
    )


RULES_OF_HINTS = {
    "normalize() parses it": "parse_arguments",
    "normalize() makes it one": "objects",
    "normalize() joins its text parts": "join_text",
    "normalize() drops it": "drop_none",
    "normalize() reads it as system": "developer_as_system",
    "normalize(merge_consecutive=True) merges the two": "merge_consecutive",
    "normalize(fold_system=True) puts it into the next user message": "fold_system",
}
# The others change roles and order, which by chance may hide any fault: only a refused role names them.
RULES_OF_VALUES = RULES_ON - {"developer_as_system"}


@pytest.mark.parametrize("name", chatformats.names())
def test_hints_are_true_and_none_is_left_out(name: str, derandomize: bool, conversations: int) -> None:
    @hypothesis.settings(
        max_examples=conversations // 4, derandomize=derandomize, database=None, deadline=None
    )
    @hypothesis.given(strategies.well_formed(name) | strategies.malformed(name))
    def check(conversation: strategies.Conversation) -> None:
        messages, case = conversation.messages, {"tools": conversation.tools, **conversation.variables}
        error = refusal(name, messages, case)
        if error is None or not isinstance(messages, (list, tuple)):
            return
        for rule in RULES_ON | RULES_OFF:
            try:
                after = refusal(name, with_rule(name, messages, rule), case)
            except ChatFormatError:
                return
            if RULES_OF_HINTS.get(error.hint) == rule:
                # Another may be behind it.
                assert after is None or (after.path, after.problem) != (error.path, error.problem), rule
            elif rule in RULES_OF_VALUES or error.path.endswith(".role"):
                assert after is not None or error.hint, (rule, str(error))

    check()
