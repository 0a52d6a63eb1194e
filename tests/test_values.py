# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Values turn into text as ``json.dumps`` and ``str`` do it, whichever encoder is underneath."""

from __future__ import annotations

import importlib.util
import json
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, IntEnum
from json import encoder as json_encoder
from types import MappingProxyType, ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatformats import ChatFormatError, values
from chatformats.undefined import UNDEFINED

from .strategies import UNPRINTABLE_INTEGER

PLACE = ("messages", 3, "content")
PATH = "messages[3].content"

REAL_MAKE_ENCODER: Callable[..., Any] = json_encoder.c_make_encoder  # type: ignore[attr-defined]  # undocumented


def make_of_fewer_arguments(markers: object, default: object) -> object:
    raise AssertionError("called with arguments that it does not have")


def make_that_wants_markers(markers: object, *rest: object) -> object:
    if markers is None:
        raise TypeError("make_encoder() argument 1 must be dict, not None")
    return REAL_MAKE_ENCODER(markers, *rest)


def make_that_writes_otherwise(markers: object, *rest: object) -> object:
    if markers is None:
        return lambda value, level: ("null",)
    return REAL_MAKE_ENCODER(markers, *rest)


def make_that_takes_no_level(markers: object, *rest: object) -> object:
    encode = REAL_MAKE_ENCODER(markers, *rest)
    return (lambda value: encode(value, 0)) if markers is None else encode


ENCODERS: dict[str, Any] = {
    "as_it_is": REAL_MAKE_ENCODER,
    "none": None,
    "missing": "missing",
    "fewer_arguments": make_of_fewer_arguments,
    "wants_markers": make_that_wants_markers,
    "writes_otherwise": make_that_writes_otherwise,
    "takes_no_level": make_that_takes_no_level,
}


@pytest.fixture(scope="module", params=list(ENCODERS.values()), ids=list(ENCODERS))
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A copy of ``chatformats.values``, imported where the C encoder is another or none."""
    assert values.__file__ is not None
    spec = importlib.util.spec_from_file_location("chatformats._values_copy", values.__file__)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "missing":
            # The standard library looks for it at every call, so for these it has to be None later.
            patch.delattr(json_encoder, "c_make_encoder")
            spec.loader.exec_module(copy)
            patch.setattr(json_encoder, "c_make_encoder", None, raising=False)
        else:
            patch.setattr(json_encoder, "c_make_encoder", request.param)
            spec.loader.exec_module(copy)
            if request.param is make_of_fewer_arguments:
                patch.setattr(json_encoder, "c_make_encoder", REAL_MAKE_ENCODER)
        yield copy


texts = st.text(st.characters(), max_size=6) | st.sampled_from(
    ("\x00\x1f\x7f", "\x85\u2028\u3000", "\ud800", '"\\/', "</é>")
)
numbers = (
    st.integers()
    | st.floats()
    | st.sampled_from((-0.0, 1e22, 1e16, 1e-7, 10**400, float("inf"), float("-inf"), float("nan")))
)
leaves = st.none() | st.booleans() | numbers | texts
keys = texts | texts | st.none() | st.booleans() | numbers
json_values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=12,
)
thorough = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@thorough
@given(value=json_values)
def test_json_is_json_dumps(module: ModuleType, value: object) -> None:
    assert module.to_json(value, PLACE) == json.dumps(value, ensure_ascii=False)


@thorough
@given(value=json_values)
def test_indented_json_is_json_dumps(module: ModuleType, value: object) -> None:
    assert module.to_indented_json(value, PLACE) == json.dumps(value, ensure_ascii=False, indent=4)


@thorough
@given(value=json_values)
def test_text_is_str(value: object) -> None:
    assert values.to_str(value, PLACE) == str(value)


class Text(str):
    def __str__(self) -> str:
        return "not what JSON prints"

    __repr__ = __str__


class Colour(str, Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Integer(int):
    def __repr__(self) -> str:
        return "one"


class Float(float):
    def __repr__(self) -> str:
        return "half"


class Custom(Mapping[str, object]):
    def __getitem__(self, key: str) -> object:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("a",))

    def __len__(self) -> int:
        return 1


def circular(value: Any) -> Any:
    if isinstance(value, list):
        value.append([value])
    else:
        value["a"] = {"b": value}
    return value


def deep(depth: int, leaf: object = 1) -> Any:
    value: Any = leaf
    for _ in range(depth):
        value = {"a": [value]}
    return value


JSON: dict[str, Any] = {
    "string_subclass": [Text("a"), {Text("b"): Text("é")}],
    "string_enum": {Colour.RED: Colour.RED},
    "integer_enum": {Number.ONE: [Number.ONE]},
    "integer_subclass": {Integer(1): Integer(2)},
    "float_subclass": {Float(0.5): [Float(0.5)]},
    "ordered_mapping": OrderedDict(b=OrderedDict(), a=OrderedDict(c=[])),
    "empty_containers": [[], {}, (), [[]], {"a": {}}],
    "repeated_keys": {1: "a", "1": "b", True + 1: "c"},
    "shared_values": [deep(1)] * 3,
    "nested_200_deep": deep(100),
}
NOT_JSON: dict[str, Any] = {
    "undefined": UNDEFINED,
    "undefined_inside": [UNDEFINED],
    "bytes": b"x",
    "set": {"a": {1}},
    "object": object(),
    "tuple_key": {(1, 2): 3},
    "bytes_key": {"a": 1, b"b": 2},
    "mapping": Custom(),
    "mapping_proxy": [MappingProxyType({"a": 1})],
    "user_mapping": UserDict(a=1),
    "deque": deque([1]),
    "unprintable_integer": UNPRINTABLE_INTEGER,
    "unprintable_integer_inside": {"a": [1, UNPRINTABLE_INTEGER]},
    "unprintable_key": {UNPRINTABLE_INTEGER: 1},
    "circular_list": circular([1]),
    "circular_mapping": circular({"b": 1}),
    "too_deep": deep(100_000),
}


@pytest.mark.parametrize("value", JSON.values(), ids=JSON)
def test_json_of(module: ModuleType, value: object) -> None:
    assert module.to_json(value, PLACE) == json.dumps(value, ensure_ascii=False)
    assert module.to_indented_json(value, PLACE) == json.dumps(value, ensure_ascii=False, indent=4)


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON)
def test_not_json(module: ModuleType, value: object) -> None:
    for encode in (module.to_json, module.to_indented_json):
        with pytest.raises(ChatFormatError) as caught:
            encode(value, PLACE)
        assert caught.value.path == PATH
        assert caught.value.problem
        assert caught.value.__cause__ is not None or value is UNDEFINED


def test_depth_at_which_json_gives_up(module: ModuleType) -> None:
    # Around the limit of the stack, where one way of encoding hands over to the other.
    for depth in range(484, 502, 3):
        for value in (deep(depth), deep(depth, leaf=object())):
            for encode in (module.to_json, module.to_indented_json):
                try:
                    assert isinstance(encode(value, PLACE), str)
                except ChatFormatError as error:
                    assert error.path == PATH


def test_json_says_what_is_wrong() -> None:
    with pytest.raises(ChatFormatError, match="expected a JSON value, but it is missing"):
        values.to_json(UNDEFINED, PLACE)
    with pytest.raises(ChatFormatError, match="nested too deep for JSON"):
        values.to_json(deep(100_000), PLACE)
    with pytest.raises(ChatFormatError, match="cannot be written as JSON: .*set"):
        values.to_json({"a": {1}}, PLACE)


UNPRINTABLE: dict[str, Any] = {
    "integer": UNPRINTABLE_INTEGER,
    "integer_inside": {"a": [UNPRINTABLE_INTEGER]},
    "too_deep": deep(100_000),
}


@pytest.mark.parametrize("value", UNPRINTABLE.values(), ids=UNPRINTABLE)
def test_unprintable(value: object) -> None:
    with pytest.raises(ChatFormatError) as caught:
        values.to_str(value, PLACE)
    assert caught.value.path == PATH


def test_text_of_circular_and_undefined() -> None:
    assert values.to_str(circular([1]), PLACE) == "[1, [[...]]]"
    assert values.to_str(UNDEFINED, PLACE) == ""
    assert values.to_str("\ud800", PLACE) == "\ud800"


def test_what_is_no_mapping_has_no_fields() -> None:
    for value in (None, "role", 5, 1.5, True, [], ["role"], (), UNPRINTABLE_INTEGER):
        assert values.fields(value, PLACE) == {}


def test_fields_of_mappings() -> None:
    mapping = {"a": 1}
    assert values.fields(mapping, PLACE) is mapping
    for other in (Custom(), MappingProxyType(mapping), UserDict(mapping), OrderedDict(mapping)):
        assert values.fields(other, PLACE) == mapping
    with pytest.raises(ChatFormatError, match=r"messages\[3\]\.content: expected a mapping, got object"):
        values.fields(object(), PLACE)


CONTAINERS: dict[str, tuple[object, bool, bool, bool]] = {  # is a container, is a mapping, has elements
    "list": (["a"], True, False, True),
    "empty_list": ([], True, False, False),
    "tuple": ((1,), True, False, True),
    "mapping": ({"a": 1}, True, True, True),
    "empty_mapping": ({}, True, True, False),
    "custom_mapping": (Custom(), True, True, True),
    "deque": (deque([1]), True, False, True),
    "text": ("a", False, False, True),
    "empty_text": ("", False, False, False),
    "undefined": (UNDEFINED, False, False, False),
    "none": (None, False, False, False),
    "number": (5, False, False, False),
    "boolean": (True, False, False, False),
    "float": (1.5, False, False, False),
}


@pytest.mark.parametrize(("value", "container", "mapping", "elements"), CONTAINERS.values(), ids=CONTAINERS)
def test_containers(value: object, container: bool, mapping: bool, elements: bool) -> None:
    assert values.is_container(value) is container
    assert values.is_mapping(value) is mapping
    assert values.has_elements(value, PLACE) is elements


@pytest.mark.parametrize("value", [None, 5, 1.5, True])
def test_what_has_no_elements_is_refused(value: object) -> None:
    for read in (values.iterated, values.length, values.items):
        with pytest.raises(ChatFormatError, match=r"messages\[3\]\.content: expected a "):
            read(value, PLACE)
    with pytest.raises(ChatFormatError, match="messages: expected a sequence of messages"):
        values.as_messages(value)


def test_reading_elements() -> None:
    assert list(values.iterated({"a": 1}, PLACE)) == ["a"]
    assert list(values.iterated("ab", PLACE)) == ["a", "b"]
    assert list(values.iterated(UNDEFINED, PLACE)) == []
    assert values.length(UNDEFINED, PLACE) == 0
    assert values.length({"a": 1}, PLACE) == 1
    assert list(values.items(Custom(), PLACE)) == [("a", 1)]
    with pytest.raises(ChatFormatError, match="expected a mapping, got list"):
        values.items([("a", 1)], PLACE)


def test_reading_messages() -> None:
    messages: Any = [{"role": "user"}, {}, None, "role", 5, ["role"], Custom()]
    assert values.as_messages(messages) is messages
    assert values.roles_of(messages) == ["user", *[UNDEFINED] * 6]
    assert values.roles_of([{"role": "user"}, {"role": None}]) == ["user", None]
    characters: Any = values.as_messages("ab")
    assert characters == ["a", "b"]
    with pytest.raises(ChatFormatError, match="messages: expected a sequence of messages, got dict"):
        values.as_messages({0: {"role": "user"}})
    with pytest.raises(ChatFormatError, match=r"messages\[1\]: expected a mapping, got object"):
        values.roles_of([{}, object()])  # type: ignore[list-item]  # the error is the point
