# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The contract: where the reference renders, the same text; where it raises, ChatFormatError.

``pytest tests/test_contract.py --conversations 20000`` looks further than the default run does, and
elsewhere at every run.
"""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
import re
import sys
from collections import Counter, OrderedDict, UserDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import chatformats
from chatformats import ChatFormatError, TemplateRaisedError

from . import oracle
from .strategies import MISSING, UNPRINTABLE_INTEGER, Conversation, malformed, well_formed


def native(name: str, conversation: Conversation) -> str | ChatFormatError:
    """Return what the formatter makes of a conversation; any other exception fails the test."""
    render: Callable[..., str] = chatformats.get(name).render
    try:
        return render(conversation.messages, conversation.tools, **conversation.variables)
    except ChatFormatError as error:
        return error


def reference(name: str, conversation: Conversation) -> str | Exception:
    """Return what the template makes of a conversation."""
    try:
        return oracle.render(name, conversation.messages, conversation.tools, **conversation.variables)
    except Exception as error:  # noqa: BLE001  # the contract is about whatever the template raises
        return error


def state(conversation: Conversation) -> bytes:
    # Unlike a deep copy it tells 1 from True and one order of keys from another, and costs a tenth.
    return pickle.dumps((conversation.messages, conversation.tools, conversation.variables))


def assert_contract(name: str, conversation: Conversation) -> str:
    """Assert the contract on one conversation, and return which way it went."""
    before = state(conversation)
    actual = native(name, conversation)
    assert state(conversation) == before, "the input was changed"
    wanted = reference(name, conversation)
    if isinstance(wanted, str):
        assert actual == wanted
        if conversation.tools is not None:
            # Tools are remembered: once more, which keeps them, and from memory.
            assert [native(name, conversation) for _ in range(2)] == [wanted] * 2
        return "rendered"
    assert isinstance(actual, ChatFormatError), f"the reference raised {wanted!r}"
    places = "|".join(("messages", "tools", *chatformats.get(name).variables))
    assert re.match(rf"({places})\b", actual.path), actual.path
    assert actual.problem
    sentence = oracle.raised_sentence(wanted)
    if sentence is None:
        assert not isinstance(actual, TemplateRaisedError), f"the reference raised {wanted!r}"
        return "refused"
    assert isinstance(actual, TemplateRaisedError), f"the template said {sentence!r}"
    assert actual.problem == sentence
    return "raised"


def assert_contract_on_generated(
    kind: Callable[[str], Any], name: str, count: int, seeded: bool
) -> Counter[str]:
    ways: Counter[str] = Counter()

    @settings(
        max_examples=count,
        derandomize=seeded,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(kind(name))
    def examine(conversation: Conversation) -> None:
        ways[assert_contract(name, conversation)] += 1

    examine()
    assert ways.total() >= count
    return ways


@pytest.mark.parametrize("name", oracle.NAMES)
def test_well_formed(name: str, conversations: int, derandomize: bool) -> None:
    count = conversations - conversations // 3
    ways = assert_contract_on_generated(well_formed, name, count, derandomize)
    assert ways["rendered"] >= 0.8 * count


@pytest.mark.parametrize("name", oracle.NAMES)
def test_malformed(name: str, conversations: int, derandomize: bool) -> None:
    count = conversations // 3
    ways = assert_contract_on_generated(malformed, name, count, derandomize)
    # Both ways have to be taken often, or the other says little.
    assert ways["rendered"] >= 0.1 * count
    assert ways["refused"] + ways["raised"] >= 0.05 * count


USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Well"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def conversation(*messages: Any, tools: Any = None, **variables: Any) -> Conversation:
    return Conversation(list(messages), tools, variables)


def calling(arguments: object, name: object = "f") -> Conversation:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return conversation(USER, {"role": "assistant", "content": "", "tool_calls": [call]}, ANSWER, USER)


def describing(parameters: object, **function: object) -> Conversation:
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters, **function}}
    return conversation(USER, tools=[tool])


def in_lists(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def in_mappings(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


def around_an_object(depth: int) -> Any:
    value: Any = object()
    for _ in range(depth):
        value = {"a": [value]}
    return value


def in_json(depth: int) -> str:
    return '{"a": ' + "[" * depth + "]" * depth + "}"


# Where a deep value may stand in a conversation.
PLACES: dict[str, Callable[[Any], Conversation]] = {
    "user_content": lambda value: conversation({"role": "user", "content": value}),
    "system_content": lambda value: conversation({"role": "system", "content": value}, USER),
    "system_contents": lambda value: conversation(
        {"role": "system", "content": "x"}, USER, {"role": "system", "content": value}
    ),
    "assistant_content": lambda value: conversation(USER, {"role": "assistant", "content": value}),
    "history_content": lambda value: conversation(USER, {"role": "assistant", "content": value}, USER),
    "tool_content": lambda value: conversation(USER, {"role": "tool", "content": value}),
    "part_text": lambda value: conversation({"role": "user", "content": [{"type": "text", "text": value}]}),
    "part_types": lambda value: conversation({"role": "user", "content": [{"type": value}, {"type": value}]}),
    "role": lambda value: conversation(USER, {"role": value, "content": "x"}),
    "message": lambda value: conversation(USER, value),
    "messages": lambda value: Conversation(value, None, {}),
    "arguments": lambda value: calling({"a": value}),
    "all_arguments": calling,
    "tool_calls": lambda value: conversation(
        USER, {"role": "assistant", "content": "x", "tool_calls": value}
    ),
    "history_tool_calls": lambda value: conversation(
        USER, {"role": "assistant", "tool_calls": value}, ANSWER, USER
    ),
    "function_name": lambda value: calling({}, name=value),
    "parameters": describing,
    "properties": lambda value: describing({"properties": {"a": value}}),
    "schema_type": lambda value: describing({"properties": {"a": {"type": value}}}),
    "schema_enum": lambda value: describing({"properties": {"a": {"enum": value}}}),
    "required": lambda value: describing({"required": value}),
    "description": lambda value: describing({}, description=value),
    "other_key": lambda value: describing({"other": value}, other=value),
    "tool": lambda value: conversation(USER, tools=[value]),
    "tools": lambda value: conversation(USER, tools=value),
}
NESTINGS: dict[str, Callable[[int], Any]] = {
    "lists": in_lists,
    "mappings": in_mappings,
    "json": in_json,
    "around_an_object": around_an_object,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_deep(name: str, place: Callable[[Any], Conversation]) -> None:
    for nest in NESTINGS.values():
        # A template's own calls leave less of the stack, so that at some depth it alone gives up.
        for depth in (100, 500):
            deep = place(nest(depth))
            actual, wanted = native(name, deep), reference(name, deep)
            if isinstance(wanted, str):
                assert actual == wanted
            elif not isinstance(wanted, RecursionError):
                assert isinstance(actual, ChatFormatError)


@functools.cache
def nested(nest: Callable[[int], Any], depth: int) -> Any:
    # To build and to free the deepest takes longer than all that the formatters do with it.
    return nest(depth)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_too_deep(name: str, place: Callable[[Any], Conversation]) -> None:
    # Without the reference: some versions of Python crash on what it does with this.
    for nest in NESTINGS.values():
        for depth in (950, 990, 1_000, 100_000):
            assert isinstance(native(name, place(nested(nest, depth))), (str, ChatFormatError))


def circular_list() -> Any:
    value: list[Any] = ["x"]
    value.append(value)
    return value


def circular_mapping() -> Any:
    value: dict[str, Any] = {"type": "text", "text": "x"}
    value["self"] = value
    return value


CIRCLES: dict[str, Callable[[], Any]] = {
    "list": circular_list,
    "mapping": circular_mapping,
    "list_in_mapping": lambda: {"a": circular_list()},
    "list_of_mappings": lambda: [circular_mapping(), circular_mapping()],
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_circular(name: str, place: Callable[[Any], Conversation]) -> None:
    for circle in CIRCLES.values():
        assert_contract(name, place(circle()))


# What JSON does not have, but Python programs pass.
VALUES: dict[str, Any] = {
    "missing": MISSING,
    "integer_key": {1: "x"},
    "none_key": {None: "x"},
    "boolean_keys": {True: "x", False: "y"},
    "float_keys": {1.5: "x", 1e22: "y", float("nan"): "z", -0.0: "w", float("inf"): 1},
    "tuple_key": {(1, "a"): "x"},
    "unprintable_key": {UNPRINTABLE_INTEGER: "x"},
    "mixed_keys": {"1": "x", 1: "y", None: {2: "z"}},
    "tuple": ("a", ("b", 1)),
    "empty_tuple": (),
    "nested_tuples": {"a": ({"b": ()},)},
    "unprintable_integer": UNPRINTABLE_INTEGER,
    "unprintable_integer_inside": {"a": [UNPRINTABLE_INTEGER]},
    "ordered_mapping": OrderedDict(b=1, a=OrderedDict(c=None)),
    "not_a_number": [float("nan"), float("inf"), -float("inf"), -0.0],
    "two_parts": [{"type": "text", "text": "<"}, {"type": "IMAGE"}],
    "two_parts_without_types": [{"text": "b"}, {"text": "a"}],
    "two_parts_one_without_type": [{"type": "text", "text": "b"}, {"text": "a"}],
    "two_parts_to_sort": [{"type": "text", "text": "b"}, {"type": "image_url"}],
    "two_parts_one_type": [{"type": "text", "text": "b"}, {"type": "text", "text": "a"}],
    "two_parts_of_odd_types": [{"type": ["text"]}, {"type": ["image"]}],
    "two_parts_with_numbers_as_types": [{"type": 2}, {"type": 1}],
    "two_parts_that_compare_types": [{"type": "text"}, {"type": 1}],
    "two_equal_odd_types": [{"type": {}}, {"type": {}}],
    "two_keys": {"type": "text", "text": "x"},
    "text_part_without_text": [{"type": "text"}],
    "mapping_of_messages": {"0": USER},
    "messages": [USER, USER],
    "message": USER,
    "tool": FUNCTION,
    "tools": [FUNCTION, FUNCTION],
    "list_of_strings": ["role", "content", "function"],
    "think_tags_in_a_list": ["<think>", "</think>"],
    "switch_in_a_list": ["/no_think"],
    "switch_as_a_key": {"/no_think": True},
    "replace_and_strip_as_keys": {"replace": "x", "strip": "y", "get": 1, "items": 2, "split": 3},
    "none": None,
    "zero": 0,
    "false": False,
    "true": True,
    "empty_text": "",
    "blank_text": " \t\n\x1c\x85\u3000",
    "number": 1.0,
    "role_as_text": "user",
    "json_text": '{"a": [1, {"b": null}], "c": 1e400, "d": -0.0, "é": "\\ud800"}',
    "json_text_of_a_list": '["a"]',
    "json_text_with_a_long_integer": '{"a": ' + "9" * 5000 + "}",
    "json_text_with_a_repeated_key": '{"a": 1, "a": 2}',
    "json_text_cut_off": '{"a": ',
    "markup": "a<b & \"c\" 'd' >e",
    "surrogates": "\ud83d \ude00 \udfff",
}


def present(value: Any) -> Any:
    """Return a value without what is missing."""
    if isinstance(value, list):
        return [present(item) for item in value if item is not MISSING]
    if type(value) is dict:
        return {key: present(item) for key, item in value.items() if item is not MISSING}
    return value


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_everywhere(name: str, value: Any) -> None:
    for place in PLACES.values():
        # By the key 0 a template finds a first message in a mapping: see FOREIGN.
        if place is PLACES["messages"] and isinstance(value, dict) and 0 in value:
            continue
        for options in ({}, {"add_generation_prompt": True}):
            one = place(copy.deepcopy(value))
            assert_contract(name, Conversation(present(one.messages), present(one.tools), options))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_variables(name: str, value: Any) -> None:
    answer = {"role": "assistant", "content": "<think>a</think>b", "reasoning_content": "c"}
    for variable in (*chatformats.get(name).variables, "add_generation_prompt"):
        for messages in ([USER, answer], [USER], [USER, answer, USER], []):
            assert_contract(name, Conversation(messages, None, {variable: value}))


MEGABYTE = "é<think>/think</think>{" * 50_000

EXAMPLES: dict[str, Conversation] = {
    "long_texts": conversation(
        {"role": "system", "content": MEGABYTE},
        {"role": "user", "content": MEGABYTE},
        {"role": "assistant", "content": MEGABYTE, "reasoning_content": MEGABYTE},
        {"role": "user", "content": MEGABYTE},
        {"role": "assistant", "content": MEGABYTE},
    ),
    "long_arguments": calling({MEGABYTE: MEGABYTE, "a": [MEGABYTE]}, name=MEGABYTE),
    "long_argument_text": calling('{"a": "' + MEGABYTE + '"}'),
    "long_descriptions": describing(
        {"properties": {MEGABYTE: {"type": MEGABYTE, "description": MEGABYTE}}}, description=MEGABYTE
    ),
    "long_result": conversation(USER, {"role": "tool", "content": MEGABYTE}),
    "five_thousand_messages": conversation(
        *[{"role": role, "content": f"{role} {i}"} for i in range(2_500) for role in ("user", "assistant")]
    ),
    "long_lists": calling({"a": list(range(100_000))}),
    "many_tools": conversation(USER, tools=[FUNCTION] * 1_000),
    "only_a_system_message": conversation({"role": "system", "content": "x"}),
    "only_a_system_message_and_a_prompt": conversation(
        {"role": "system", "content": "x"}, add_generation_prompt=True
    ),
    "tuple_of_messages": Conversation((USER, {"role": "assistant", "content": "x"}), (FUNCTION,), {}),
    "one_message_twice": conversation(USER, {"role": "assistant", "content": "a"}, USER),
    # The template asks for a token's text only where it prints the token.
    "unprinted_token": conversation(USER, eos_token=UNPRINTABLE_INTEGER),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_example(name: str, example: Conversation) -> None:
    known = {"add_generation_prompt", *chatformats.get(name).variables}
    if known.issuperset(example.variables):
        assert_contract(name, example)


ANSWERS = (
    MISSING,
    None,
    "",
    " \n",
    " x ",
    "<think>a",
    "a</think> b ",
    "</think>",
    "<think>a</think> \nb\n",
    ["x"],
)
REASONINGS = (MISSING, " ", " r\n", "r</think>s")
CALLS: tuple[Any, ...] = (MISSING, [], [{"function": {"name": "f", "arguments": {"a": 1}}}])


@pytest.mark.parametrize("name", oracle.NAMES)
def test_answers(name: str) -> None:
    for content, reasoning, calls in itertools.product(ANSWERS, REASONINGS, CALLS):
        answer = present(
            {"role": "assistant", "content": content, "reasoning_content": reasoning, "tool_calls": calls}
        )
        for messages in ([USER, answer], [USER, answer, USER], [USER, answer, ANSWER, USER]):
            for prompted in (False, True):
                assert_contract(name, Conversation(messages, None, {"add_generation_prompt": prompted}))


# Beyond JSON a formatter may refuse what the template prints, but never print something else.
FOREIGN: dict[str, Any] = {
    "bytes": b"x",
    "set": {"x"},
    "object": object(),
    "decimal": Decimal("1.0"),
    "range": range(2),
    "deque": deque([USER]),
    "user_mapping": UserDict(USER),
    "mapping_proxy": MappingProxyType(USER),
    "mapping_of_messages_by_index": {0: USER, -1: USER},
    "mapping_of_system_messages_by_index": {0: {"role": "system", "content": [{"type": "image"}]}},
}


@pytest.mark.parametrize("value", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("name", oracle.NAMES)
def test_foreign(name: str, value: Any) -> None:
    for place in PLACES.values():
        actual, wanted = native(name, place(value)), reference(name, place(value))
        assert isinstance(actual, ChatFormatError) or actual == wanted


def test_formatters_can_be_shared_between_threads() -> None:
    cases = [
        (chatformats.get(name), name, make(copy.deepcopy(value)))
        for name in oracle.NAMES
        for make in PLACES.values()
        for value in ("x", USER, [FUNCTION], {"a": [1, "é"]}, [{"type": "text", "text": "x"}])
    ]

    def outcome(case: Any) -> str:
        formatter, _, one = case
        try:
            return str(formatter.render(one.messages, one.tools))
        except ChatFormatError as error:
            return repr(error)

    alone = [outcome(case) for case in cases]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda _: [outcome(case) for case in cases], range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert together == [alone] * 8


@pytest.mark.parametrize(
    "remake", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))]
)
@pytest.mark.parametrize(
    ("messages", "kind"),
    [
        ([{"role": "other", "content": "x"}], TemplateRaisedError),
        ([{"role": "user", "content": 5}], ChatFormatError),
    ],
)
def test_errors_survive_copies_and_pickles(
    messages: Any, kind: type[ChatFormatError], remake: Callable[[ChatFormatError], ChatFormatError]
) -> None:
    with pytest.raises(ChatFormatError) as caught:
        chatformats.get("ministral-3").render(messages)
    remade = remake(caught.value)
    assert type(remade) is type(caught.value) is kind
    assert str(remade) == str(caught.value) == f"{remade.path}: {remade.problem}"
    assert (remade.path, remade.problem) == (caught.value.path, caught.value.problem)
    assert remade.path.startswith("messages[0]")


def test_errors_without_a_place_survive_pickles() -> None:
    with pytest.raises(ChatFormatError) as caught:
        chatformats.get("no such format")
    remade = pickle.loads(pickle.dumps(caught.value))
    assert (str(remade), remade.path) == (str(caught.value), "")
