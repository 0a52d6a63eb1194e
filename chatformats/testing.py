# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Check a formatter of one's own against its template, on generated conversations.

The one module that needs hypothesis; it needs jinja2 too.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from .errors import ChatFormatError
from .verify import jinja_environment

try:
    from hypothesis import HealthCheck, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample
    from jinja2 import nodes
except ImportError as missing:
    raise ImportError(f"{__name__} needs hypothesis and jinja2: pip install hypothesis jinja2") from missing

if TYPE_CHECKING:
    from .messages import Messages, Tools

# Arguments of ``render``, by name.
Case = dict[str, Any]

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
# Simple ones first: a counterexample is made smaller towards them.
_WORDS: Final = ("Hi", "", " ", "a b\n", "שלום é", "<b>&'\"", "<think>\nHm.\n</think>\n\nSo", "{{ x }}")
_ODD: Final[tuple[Any, ...]] = (None, "x", 1, True, 1e22, [], {}, [1, None], {"k": ["é", True]}, "{}", False)
_PARTS: Final = ([{"type": "text", "text": "x"}], [{"type": "image"}, {"type": "text", "text": ""}])
_ROUNDS: Final = (
    ["user", "assistant"],
    ["user", "called", "tool", "assistant"],
    ["user", "called", "tool", "tool", "called", "assistant"],
)
_PARAMETERS: Final = {"type": "object", "properties": {"a": {"type": "string", "description": "é"}}}


class Renders(Protocol):
    """What ``check_format`` asks of a formatter; any other method is not looked at but ``render_segments``."""

    def render(
        self, messages: Messages, tools: Tools | None = None, *, add_generation_prompt: bool = False
    ) -> str:
        """Return the prompt."""


class FormatDifference(AssertionError):
    """A formatter is not its template: the message is the smallest conversation found that shows it."""


def check_format(
    formatter: Renders,
    template_source: str,
    *,
    variables: Mapping[str, Sequence[object]] = _NONE,
    host: Mapping[str, object] = _NONE,
    filters: Mapping[str, Callable[..., object]] = _NONE,
    examples: int = 1_000,
    seed: int = 0,
) -> None:
    """Check that a formatter writes what its template does, and refuses what that refuses.

    Conversations are well-formed, or then broken in a few places, and made of the template's own words
    too. ``variables`` are values to try of each variable beyond ``add_generation_prompt``; it is left out
    at times. ``host`` is what the template's host always passes, and the formatter's default; ``filters``
    are those that the template leaves to its host. The template is read as transformers reads it.

    Raises FormatDifference where the prompts differ; where just one of the two refuses, the formatter by
    ChatFormatError; where the formatter raises anything else, or changes what it is given; and where no
    conversation is rendered, which would prove nothing.

    >>> class Wrong:
    ...     def render(self, messages, tools=None, *, add_generation_prompt=False):
    ...         return "".join(str(message.get("content", "")) for message in messages)
    >>> check_format(Wrong(), "{% for m in messages %}{{ m.content | trim }}{% endfor %}", examples=300)
    Traceback (most recent call last):
    chatformats.testing.FormatDifference: the formatter and the template differ:
    {
      "messages": [
        {
          "role": "user",
          "content": " "
        }
      ]
    }
    <BLANKLINE>
    --- the template
    +++ the formatter
    @@ -0,0 +1 @@
    +' '
    """
    env = jinja_environment(filters)
    template = env.from_string(template_source)
    rendered = 0

    def differs(case: Case) -> bool:
        nonlocal rendered
        theirs, ours = _outcomes(formatter, template.render, case, host)
        rendered += theirs[0] == ours[0] == "prints"
        return theirs != ours

    limits = settings(
        max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    words = _words(env.parse(template_source))
    try:
        case = find(_cases(words, variables), differs, settings=limits, random=Random(seed))
    except NoSuchExample:
        if not rendered:
            raise FormatDifference(
                f"of {examples:,} conversations both refuse each: nothing is shown"
            ) from None
        return
    request = json.dumps(case, ensure_ascii=False, indent=2, default=repr)
    theirs, ours = _outcomes(formatter, template.render, case, host)
    diff = difflib.unified_diff(
        _lines(theirs), _lines(ours), "the template", "the formatter", n=2, lineterm=""
    )
    raise FormatDifference("\n".join(["the formatter and the template differ:", request, "", *diff]))


def _outcomes(
    formatter: Renders, template: Callable[..., str], case: Case, host: Mapping[str, object]
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what the template and the formatter make of a conversation: a prompt, or how they refuse it."""
    try:
        theirs = "prints", template(**{"tools": None, "add_generation_prompt": False, **host, **case})
    except Exception as error:  # noqa: BLE001  # a template may raise anything
        theirs = "refuses", f"refuses it: {type(error).__name__}: {error}"
    given = copy.deepcopy(case)
    try:
        ours = "prints", formatter.render(**given)
        if hasattr(formatter, "render_segments") and formatter.render_segments(**given).text != ours[1]:
            ours = "fails", "has another text in render_segments"
    except ChatFormatError as error:
        # Which of a conversation's faults is told of is not compared.
        ours = theirs if theirs[0] == "refuses" else ("refuses", f"refuses it: {error}")
    except Exception as error:  # noqa: BLE001  # which is what it may not do
        ours = "fails", f"raises what is no ChatFormatError: {type(error).__name__}: {error}"
    return theirs, ours if given == case else ("fails", "changes what it is given")


def _lines(outcome: tuple[str, str]) -> list[str]:
    kind, text = outcome
    return [repr(line) for line in text.splitlines(keepends=True)] if kind == "prints" else [text]


def _words(tree: nodes.Template) -> list[str]:
    """Return the template's own words: its strings, what looks like a token in them, the names it reads."""
    words: dict[str, None] = {"x": None}
    for node in tree.find_all((nodes.Const, nodes.TemplateData, nodes.Getattr)):
        text = next((getattr(node, key) for key in ("value", "data", "attr") if hasattr(node, key)), None)
        if isinstance(text, str):
            words.update(dict.fromkeys((text, *re.findall(r"<[^<>\s]+>|\[[^\[\]\s]+\]|\w+", text)[:20])))
    return list(words)


def _cases(words: list[str], variables: Mapping[str, Sequence[object]]) -> st.SearchStrategy[Case]:
    pick, flag = st.sampled_from, st.booleans()
    word = pick(_WORDS) | pick(words)
    text = word | st.tuples(word, word).map("".join)
    arguments = st.dictionaries(word, pick(_ODD) | text, max_size=2)
    function = st.fixed_dictionaries({"name": word, "arguments": arguments | arguments.map(json.dumps)})
    call = function.map(lambda called: {"type": "function", "id": "call00001", "function": called})
    definition = st.fixed_dictionaries(
        {"name": word}, optional={"description": text, "parameters": pick((_PARAMETERS, {}))}
    )
    tool = definition.map(lambda defined: {"type": "function", "function": defined})
    rounds = st.lists(pick(_ROUNDS), min_size=1, max_size=2).map(
        lambda several: [r for one in several for r in one]
    )
    roles = rounds | st.lists(pick(("user", "assistant", "called", "tool", "system")), min_size=1, max_size=4)
    keys = pick(("content", "role", "tool_calls", "reasoning_content", "name", "arguments", *words))

    odd = pick((*_ODD, *_PARTS)).map(copy.deepcopy) | text

    @st.composite
    def cases(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Case:
        order = draw(roles)
        order = (["system"] if draw(flag) else []) + order[: draw(st.integers(1, len(order)))]
        messages: list[Case] = []
        places: list[Case] = []
        for role in order:
            message: Case = {"role": role, "content": draw(text)}
            if role == "called":
                message.update(role="assistant", tool_calls=draw(st.lists(call, min_size=1, max_size=2)))
                places += [message["tool_calls"][0], message["tool_calls"][0]["function"]]
            if message["role"] == "assistant" and draw(flag):
                message["reasoning_content"] = draw(text)
            messages.append(message)
        places += messages
        for _ in range(draw(pick((0, 0, 1, 2)))):
            place, key = draw(pick(places)), draw(keys)
            place[key] = draw(odd)
            if draw(flag):
                del place[key]
        case: Case = {"messages": messages}
        if draw(flag):
            case["tools"] = draw(st.lists(tool | definition, max_size=2))
        if draw(flag):
            case["add_generation_prompt"] = True
        return {**case, **{name: draw(pick(tried)) for name, tried in variables.items() if draw(flag)}}

    return cases()
