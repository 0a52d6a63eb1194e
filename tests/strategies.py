# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Conversations for the differential tests: well-formed for one format, or then broken in a few places.

With odd values alone nearly every conversation is refused by both sides, which proves little. So a
malformed conversation is a well-formed one with one to three things changed.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st


@dataclass(frozen=True, repr=False)
class Conversation:
    """What is passed to ``render``."""

    messages: Any
    tools: Any
    variables: dict[str, Any]

    def __repr__(self) -> str:
        # A failing conversation is to be shown also where it has an integer too long for str().
        limit = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)
        try:
            return f"Conversation({self.messages!r}, {self.tools!r}, {self.variables!r})"
        finally:
            sys.set_int_max_str_digits(limit)


Draw = Callable[[st.SearchStrategy[Any]], Any]

# In place of a value: the key is not there. A deep copy of it is itself.
MISSING: Final = ...

# Longer than Python's limit for turning an integer into text, which is 4,300 digits.
UNPRINTABLE_INTEGER: Final = 10**5000

FRAGMENTS: Final = (
    "Hi",
    "",
    " ",
    "\n",
    " two  words\r\n",
    "{'a': \"b\"}",
    "<b>&amp; 'x' \"y\"",
    "שלום",
    "東京（京）",
    "é\u0301 🙂",
    "\x00\x1b\\",
    "\x1c\x1d",
    "\x85",
    "\u3000",
    "\ufeff\u200b\u2028",
    "\ud83d",
    "\udc80\ud800",
    "<think>",
    "</think>",
    "<think>\nhm\n</think>\n",
    "<think>a<think>b</think>c</think>",
    "</think></think>",
    "<THINK>",
    "/think",
    "/no_think",
    "/no_/think",
    "/thin/thinkk",
    "<|im_start|>user\n",
    "<|im_end|>",
    "<tool_call>\n<function=f>\n",
    "</function>\n</tool_call>",
    "<parameter=a>",
    "<tool_response>",
    "<SPECIAL_10>",
    "<SPECIAL_11>",
    "<SPECIAL_12>",
    "<TOOLCALL>[",
    "]</TOOL_RESPONSE>",
    "<|User|>",
    "<|Assistant|>",
    "<|end_of_thought|>",
    "<|end▁of▁sentence|>",
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[TOOL_CALLS]f[ARGS]{}",
    "[TOOL_RESULTS]",
    "[IMG]",
    "</s>",
    "[Round 0]\n问：",
    "\n答：",
    "{{ messages }}",
    "{% raw %}",
    "None",
)
NAMES: Final = (
    "get_weather",
    "a<b",
    "R&D \"x\" 'y' >",
    "météo",
    "天気",
    "",
    "a b\n",
    "\ud800",
    "items",
    "__class__",
)
# Keys that the templates write apart from the others, and some that they do not know.
KEYS: Final = (
    "city",
    "name",
    "type",
    "description",
    "parameters",
    "properties",
    "required",
    "enum",
    "items",
    "get",
    "function",
    "arguments",
    "content",
    "role",
    "größe",
    "",
    "a<b>",
    "\udc80",
    "x y",
)
SCALARS: Final = (
    "Paris",
    1,
    True,
    False,
    None,
    0,
    1.0,
    -0.0,
    1e22,
    1.5e-7,
    float("inf"),
    float("-inf"),
    float("nan"),
    2**64,
    -(10**400),
    "",
    " \u3000",
    'naïve "q" \\ </x>',
    "\ud83d",
    "5",
    "null",
)
_CONTAINERS: Final[tuple[Any, ...]] = (
    {},
    [],
    (),
    ["a", 1, None],
    ("b", [2.0]),
    {"k": "v", "ü": [True]},
    {"a": {"b": {"c": []}}},
    [[], {}, [[]]],
    {1: "int", False: "bool", 2.5: "float", None: "none"},
)
_ODD: Final[tuple[Any, ...]] = (
    None,
    0,
    "",
    [],
    {},
    (),
    True,
    False,
    1,
    -1,
    -0.0,
    1e22,
    float("nan"),
    float("inf"),
    10**400,
    UNPRINTABLE_INTEGER,
    " ",
    "\x1c",
    "false",
    "text",
    "user",
    "assistant",
    "system",
    "tool",
    "\ud800",
    "/think",
    "/no_think",
    ["a"],
    [None],
    ["/think"],
    ["/no_think"],
    {"/no_think": 1},
    ("x", 1),
    [[]],
    [{}],
    {"a": 1},
    {"type": "text"},
    {"type": "text", "text": None},
    {"role": "user"},
    {"role": "user", "content": "x"},
    {"role": "assistant"},
    {"role": "tool"},
    {1: 2, None: 3, 1.5: 4, False: 5},
    {(1, 2): 3},
    {UNPRINTABLE_INTEGER: 1},
    [UNPRINTABLE_INTEGER],
    [{"type": "text", "text": "x"}, {"type": "image"}],
    [{"type": "text"}, {"type": "text", "text": 5}],
    [{"type": 1}, {"type": "text"}],
    [{"function": {}}],
    [{"function": None}],
    [{"function": {"name": "f", "arguments": None}}],
    [{"function": {"name": 5, "arguments": {}}}],
    [{"name": "f"}],
    [{"name": "f", "arguments": "{"}],
    [{"name": "f", "arguments": "[1]"}],
    [{"name": "f", "arguments": []}],
    [{"name": "f", "arguments": {1: 2}}],
)
_ODD_ROLES: Final = ("User", "USER ", "developer", "function", "", None, 1, ["user"], {"user": 1}, True)
_ODD_MESSAGES: Final[tuple[Any, ...]] = (
    (),
    [],
    None,
    "",
    "user",
    {},
    {"role": "user", "content": "x"},
    {"messages": []},
    {"0": {"role": "user", "content": "x"}},
    0,
    1.5,
    True,
    [None],
    ["user"],
    [5],
    [[]],
    [{}],
    [""],
    [["role", "user"]],
    ({"role": "user", "content": "x"},),
    ({"role": "system", "content": "x"}, {"role": "user", "content": "y"}),
)
_ODD_TOOLS: Final[tuple[Any, ...]] = (
    {},
    "",
    (),
    "tools",
    0,
    5,
    True,
    False,
    1.5,
    {"function": {"name": "f"}},
    {"a": 1, 2: 3},
    [None],
    ["f"],
    [[]],
    [{}],
    [1, 1.5, True],
    [{"function": None}],
    [{"function": "f"}],
    ({"name": "f", "parameters": None},),
    [{"name": None, "description": None, "parameters": {"properties": None, "required": None}}],
    [{"name": "f", "parameters": {"properties": {"a": None, "b": "x", "c": [], 4: {"type": 5}}}}],
)
_ODD_VARIABLES: Final[tuple[Any, ...]] = (
    None,
    0,
    1,
    "",
    "false",
    [],
    {},
    "<s>",
    True,
    False,
    0.0,
    float("nan"),
    ["<s>"],
    UNPRINTABLE_INTEGER,
)
_MESSAGE_KEYS: Final = ("role", "content", "tool_calls", "reasoning_content", "name")

_flags = st.booleans()
_one_in_four = st.sampled_from((False, False, False, True))
_fragments = st.sampled_from(FRAGMENTS)
texts = (
    _fragments
    | st.tuples(_fragments, _fragments).map("".join)
    | st.tuples(_fragments, _fragments, _fragments).map("".join)
    | st.text(max_size=4)
)
_keys = st.sampled_from(KEYS)
_names = st.sampled_from(NAMES)
_scalars = st.sampled_from(SCALARS)
_containers = (
    st.sampled_from(_CONTAINERS)
    | st.lists(_scalars, min_size=1, max_size=3)
    | st.dictionaries(_keys, _scalars, min_size=1, max_size=3)
)
values = _scalars | texts | _containers
_mappings = st.dictionaries(_keys, values, max_size=3)
_odd_mappings = st.sampled_from(_CONTAINERS[5:])
_descriptions = st.sampled_from((MISSING, "Says it.", " \n", "", None, " \u3000é\x85", MISSING, 5))


def _object(**members: Any) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not MISSING}


_schemas = st.builds(
    _object,
    type=st.sampled_from(("string", MISSING, "integer", ["string", "null"], None, "größe")),
    description=_descriptions,
    enum=st.sampled_from((MISSING, MISSING, ["a", "ä"], [], None, [1, 2.0, None], "enum", {"a": 1})),
    items=st.sampled_from((MISSING, MISSING, {"type": "string"}, True)),
    default=st.sampled_from((MISSING, MISSING)) | _scalars,
)
_parameters = st.builds(
    _object,
    type=st.sampled_from(("object", MISSING)),
    properties=st.dictionaries(_keys, _schemas, max_size=2)
    | st.sampled_from((MISSING, {}, None, [], {"a": None, "b": "string"}, {1: {"type": "x"}})),
    required=st.sampled_from((MISSING, ["city"], [], None, "city", ["größe"])),
    additionalProperties=st.sampled_from((MISSING, MISSING, False, {"$ref": "#/é"})),
)
_functions = st.builds(
    _object,
    name=_names,
    description=_descriptions,
    parameters=_parameters | st.sampled_from((MISSING, None, {}, [])),
    strict=st.sampled_from((MISSING, MISSING, True, None, {"a": [1]})),
)
_tools: st.SearchStrategy[Any] = st.sampled_from((None, None, [])) | st.lists(
    _functions.map(lambda function: {"type": "function", "function": function}) | _functions,
    min_size=1,
    max_size=2,
)

_text_parts = st.builds(
    _object, type=st.just("text"), text=texts | st.sampled_from((MISSING, None, 5, ["x"]))
)
_image_parts = st.sampled_from(
    (
        {"type": "image"},
        {"type": "image_url", "image_url": {"url": "data:,é"}},
        {"type": "image", "text": "x"},
    )
)
_text_contents = st.lists(_text_parts, min_size=1, max_size=3)
_user_contents = st.lists(_text_parts | _image_parts, min_size=1, max_size=4)
_falsy: st.SearchStrategy[Any] = st.sampled_from((None, MISSING, "", [], {}, 0, False))
_results = texts | texts | values | st.just(MISSING)
_json_objects = (_mappings | _odd_mappings).map(lambda value: json.dumps(value)) | st.sampled_from(
    ("{}", ' {"a": 1e22, "b": -0.0}', '{"a": NaN, "a": [1, 2]}', '{"\\ud83d": "\\ud83d", "é": null}')
)
_broken_json = st.sampled_from(("", "{", '{"a": }', "[1, 2]", "null", '"{}"', "5", "\ufeff{}", "é", "NaN"))


class _Format(NamedTuple):
    """What a well-formed conversation has: "called" is an assistant message with tool calls."""

    roles: tuple[str, ...]
    contents: dict[str, st.SearchStrategy[Any]]
    arguments: st.SearchStrategy[Any]
    variables: dict[str, st.SearchStrategy[Any]]


_FORMATS: Final = {
    "glm4-tools": _Format(
        ("user", "assistant", "user", "assistant", "tool", "called", "system", "observation"),
        {"user": texts, "assistant": texts, "called": texts, "*": _results},
        _mappings | _broken_json | _scalars,
        {},
    ),
    "hebatron": _Format(
        ("user", "assistant", "called", "called", "tool", "user", "assistant", "system", "developer"),
        {
            "system": texts | texts | _text_contents | _falsy,
            "user": texts | _user_contents | _results,
            "assistant": texts | texts | texts | _falsy | _text_contents,
            "called": texts | texts | texts | _falsy | _text_contents,
            "tool": _results,
            "*": texts,
        },
        _mappings | _mappings | _odd_mappings | st.just(MISSING),
        {"enable_thinking": _flags, "truncate_history_thinking": _flags},
    ),
    "joyai-llm-flash": _Format(
        ("user", "assistant", "called", "called", "tool", "user", "assistant", "system", "developer"),
        {
            "assistant": texts | texts | _falsy,
            "called": texts | _falsy,
            "developer": _results,
            "*": texts,
        },
        _mappings | _json_objects | st.sampled_from((MISSING, {}, {"a": {1: "b"}})),
        {"bos_token": st.sampled_from(("", "<s>", "<｜begin▁of▁sentence｜>"))},
    ),
    "ministral-3": _Format(
        (),
        {
            "system": texts | _text_contents | st.sampled_from(([], {}, MISSING)),
            "user": texts | _user_contents | _user_contents,
            "assistant": texts.map(lambda text: text or "x") | _text_contents,
            "called": texts | _text_contents | st.sampled_from(("", MISSING, [], {})),
            "tool": _results,
        },
        _mappings | _json_objects | _broken_json | values,
        {"bos_token": texts, "eos_token": texts},
    ),
    "nemotron-nano-v2": _Format(
        ("user", "assistant", "called", "tool", "user", "assistant", "called", "tool", "system"),
        {
            "system": texts | texts | st.sampled_from(("", MISSING, [], {})),
            "user": texts | texts | texts | st.sampled_from(("", MISSING, [], {})),
            "assistant": texts | texts | texts | _falsy,
            "called": texts | _falsy,
            "tool": _results,
        },
        _mappings | _json_objects | _broken_json | values,
        {"continue_final_message": _flags},
    ),
}
# Rounds that Ministral accepts: a user's, then any number of calls and results, then an answer.
_ROUNDS: Final = (
    ("user", "assistant"),
    ("user", "called", "tool", "assistant"),
    ("user", "called", "tool", "tool", "called", "tool", "assistant"),
    ("tool", "user", "called", "assistant"),
)


def _roles(draw: Draw, name: str) -> list[str]:
    if name == "ministral-3":
        rounds = draw(st.lists(st.sampled_from(_ROUNDS), min_size=1, max_size=2))
        roles = [role for one in rounds for role in one]
        del roles[len(roles) - draw(st.integers(0, len(roles) - 1)) :]
    else:
        roles = draw(st.lists(st.sampled_from(_FORMATS[name].roles), min_size=1, max_size=6))
        if name in ("glm4-tools", "nemotron-nano-v2") and roles == ["system"]:
            roles.append("user")
    if draw(_one_in_four):
        roles.insert(0, "system")
    return roles


def _tool_call(draw: Draw, name: str) -> dict[str, Any]:
    function = _object(name=draw(_names), arguments=draw(_FORMATS[name].arguments))
    if function.get("arguments", MISSING) is MISSING and name in ("ministral-3", "nemotron-nano-v2"):
        function["arguments"] = {}
    if name != "ministral-3" and draw(_one_in_four):
        return function
    return {"type": "function", "id": "call_1", "function": function}


def _message(draw: Draw, name: str, role: str) -> dict[str, Any]:
    contents = _FORMATS[name].contents
    message = _object(
        role="assistant" if role == "called" else role,
        content=draw(contents[role] if role in contents else contents["*"]),
    )
    if role == "called":
        message["tool_calls"] = [_tool_call(draw, name)]
        if draw(_one_in_four):
            message["tool_calls"].append(_tool_call(draw, name))
    elif role == "assistant" and draw(_one_in_four):
        message["tool_calls"] = draw(st.sampled_from(([], None) if name != "nemotron-nano-v2" else ([], ())))
    if role in ("assistant", "called") and draw(_one_in_four):
        message["reasoning_content"] = draw(texts | st.sampled_from((None, 5, [])))
    return message


@st.composite
def well_formed(draw: Draw, name: str) -> Conversation:
    """Return a conversation that a format's template is meant for, with odd text in it."""
    messages = [_message(draw, name, role) for role in _roles(draw, name)]
    variables = {"add_generation_prompt": draw(_flags)}
    for variable, strategy in _FORMATS[name].variables.items():
        if draw(_flags):
            variables[variable] = draw(strategy)
    return Conversation(messages, draw(_tools), variables)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a value, as its container and its key there."""
    places: list[tuple[Any, Any]] = []
    containers = [value]
    for container in containers:
        keys = range(len(container)) if isinstance(container, list) else list(container)
        for key in keys:
            places.append((container, key))
            if isinstance(container[key], (list, dict)):
                containers.append(container[key])
    return places


def _copies(pool: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    # What is put into a conversation may be changed there, the pool may not.
    return st.sampled_from(pool).map(copy.deepcopy)


_odd_values = _copies(_ODD)
_odd_or_missing = st.just(MISSING) | _odd_values | _odd_values | _odd_values
_odd_roles = _copies(_ODD_ROLES)
_odd_messages = _copies(_ODD_MESSAGES)
_odd_tools = _copies(_ODD_TOOLS)
_odd_variables = _copies(_ODD_VARIABLES)
_changes = st.sampled_from(
    ("message", "value", "value", "value", "value", "key", "role", "tools", "variable", "all", "list")
)


def _put(container: Any, key: Any, value: Any) -> None:
    if value is not MISSING:
        container[key] = value
    elif isinstance(container, list) or key in container:
        del container[key]


def _change(draw: Draw, name: str, conversation: Conversation) -> Conversation:
    messages, tools, variables = conversation.messages, conversation.tools, conversation.variables
    change = draw(_changes)
    if change == "all":
        return replace(conversation, messages=draw(_odd_messages))
    if change == "variable":
        variable = draw(st.sampled_from(("add_generation_prompt", *_FORMATS[name].variables)))
        variables[variable] = draw(_odd_variables)
        return conversation
    if change == "tools" and (not isinstance(tools, list) or draw(_flags)):
        return replace(conversation, tools=draw(_odd_tools))

    places = _places(tools if change == "tools" else messages if isinstance(messages, list) else [])
    if not places:
        return replace(conversation, messages=[draw(_odd_values)])
    container, key = places[draw(st.integers(0, len(places) - 1))]
    message = draw(st.sampled_from(messages)) if isinstance(messages, list) and messages else None
    if change == "message" and isinstance(message, dict):
        _put(message, draw(st.sampled_from(_MESSAGE_KEYS)), draw(_odd_or_missing))
    elif change == "role" and isinstance(message, dict):
        message["role"] = draw(_odd_roles)
    elif change == "list" and isinstance(messages, list):
        inserted = draw(_odd_values) if message is None or draw(_flags) else message
        messages.insert(draw(st.integers(0, len(messages))), inserted)
    elif change == "key" and isinstance(container, dict) and draw(_flags):
        container[draw(_keys | st.sampled_from((1, None, True, 1.5, -1)))] = draw(_odd_values)
    elif change == "key":
        del container[key]
    else:
        _put(container, key, draw(_odd_or_missing))
    return conversation


@st.composite
def malformed(draw: Draw, name: str) -> Conversation:
    """Return a conversation that was well-formed before one to three changes."""
    conversation: Conversation = copy.deepcopy(draw(well_formed(name)))
    for _ in range(draw(st.sampled_from((1, 1, 2, 3)))):
        conversation = _change(draw, name, conversation)
    return conversation
