# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Completions that the parsers of other projects read as well, and what they say."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..parsers.reading import tool

TOOLS: list[Any] = [
    tool(
        "weather",
        city={"type": "string"},
        days={"type": "integer"},
        metric={"type": "boolean"},
        share={"type": "number"},
        tags={"type": "array", "items": {"type": "string"}},
        where={"type": "object"},
        note={"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    tool("now"),
]


class Case(NamedTuple):
    """A completion, whether reasoning is open before it, and its content, reasoning and calls."""

    completion: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thinking: bool = False


def _tags(name: str, **arguments: str) -> str:
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"


def _glm(name: str, **arguments: str) -> str:
    lines = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{lines}</tool_call>"


def _typed(call: Any) -> dict[str, Case]:
    """What the two formats with bare arguments share."""
    weather = {"city": "Paris"}
    return {
        "answer": Case("It is sunny.", "It is sunny."),
        "call": Case(call("weather", city="Paris"), calls=(("weather", weather),)),
        "no arguments": Case(call("now"), calls=(("now", {}),)),
        "text and call": Case(
            "I look.\n" + call("weather", city="Paris"), "I look.", calls=(("weather", weather),)
        ),
        "two calls": Case(
            call("weather", city="Paris") + "\n" + call("now"), calls=(("weather", weather), ("now", {}))
        ),
        "reasoning": Case("<think>\nWhy?\n</think>\nSo.", "So.", "Why?"),
        "reasoning and call": Case(
            "<think>\nWhy?\n</think>\n" + call("weather", city="Paris"), "", "Why?", (("weather", weather),)
        ),
        "numbers": Case(
            call("weather", days="3", share="0.5"), calls=(("weather", {"days": 3, "share": 0.5}),)
        ),
        "literals": Case(call("weather", metric="true"), calls=(("weather", {"metric": True}),)),
        "Python's literals": Case(call("weather", metric="True"), calls=(("weather", {"metric": True}),)),
        "containers": Case(
            call("weather", tags='["a", "b"]', where='{"x": [1, null]}'),
            calls=(("weather", {"tags": ["a", "b"], "where": {"x": [1, None]}}),),
        ),
        "a string that looks like a number": Case(
            call("weather", city="75001"), calls=(("weather", {"city": "75001"}),)
        ),
        "a string that looks like JSON": Case(
            call("weather", city='{"a": 1}'), calls=(("weather", {"city": '{"a": 1}'}),)
        ),
        "null where a string may stand": Case(
            call("weather", note="null"), calls=(("weather", {"note": None}),)
        ),
        "lines": Case(call("weather", city="a\n\n  b"), calls=(("weather", {"city": "a\n\n  b"}),)),
        "white space": Case(call("weather", city="  two  "), calls=(("weather", {"city": "  two  "}),)),
        "an end of a call in a value": Case(
            call("weather", city="a </tool_call> b"), calls=(("weather", {"city": "a </tool_call> b"}),)
        ),
        "text after a call": Case(call("now") + "Done.", "Done.", calls=(("now", {}),)),
        "escapes": Case(call("weather", city='"\\n" é'), calls=(("weather", {"city": '"\\n" é'}),)),
    }


HEBATRON: dict[str, Case] = {
    **_typed(_tags),
    "open reasoning": Case("Why?\n</think>\n\nSo.", "So.", "Why?", thinking=True),
    "reasoning never closed": Case("Why?", "", "Why?", thinking=True),
    "a call in open reasoning": Case("Why?\n" + _tags("now"), "", "Why?", (("now", {}),), thinking=True),
    "an end of a value in it": Case(
        _tags("weather", city="a </parameter> b"), calls=(("weather", {"city": "a </parameter> b"}),)
    ),
    "an end of a function in a value": Case(
        _tags("weather", city="a </function> b"), calls=(("weather", {"city": "a </function> b"}),)
    ),
    "a quoted tag in reasoning": Case(
        "Not `</think>`.\n</think>\nSo.", "So.", "Not `</think>`.", thinking=True
    ),
}
GLM: dict[str, Case] = {
    **_typed(_glm),
    "compact": Case(
        "<tool_call>weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>",
        calls=(("weather", {"city": "Paris"}),),
    ),
    "an end of a value in it": Case(
        _glm("weather", city="a </arg_value> b"), calls=(("weather", {"city": "a </arg_value> b"}),)
    ),
}
MINISTRAL: dict[str, Case] = {
    "answer": Case("It is sunny.", "It is sunny."),
    "call": Case('[TOOL_CALLS]weather[ARGS]{"city": "Paris"}', calls=(("weather", {"city": "Paris"}),)),
    "no arguments": Case("[TOOL_CALLS]now[ARGS]{}", calls=(("now", {}),)),
    "text and call": Case("I look.[TOOL_CALLS]now[ARGS]{}", "I look.", calls=(("now", {}),)),
    "two calls": Case(
        '[TOOL_CALLS]weather[ARGS]{"days": 3}[TOOL_CALLS]now[ARGS]{}',
        calls=(("weather", {"days": 3}), ("now", {})),
    ),
    "reasoning": Case("[THINK]Why?[/THINK]So.", "So.", "Why?"),
    "reasoning and call": Case("[THINK]Why?[/THINK][TOOL_CALLS]now[ARGS]{}", "", "Why?", (("now", {}),)),
    "a marker in an argument": Case(
        '[TOOL_CALLS]weather[ARGS]{"city": "[TOOL_CALLS]now[ARGS]{}"}',
        calls=(("weather", {"city": "[TOOL_CALLS]now[ARGS]{}"}),),
    ),
    "braces in an argument": Case(
        '[TOOL_CALLS]weather[ARGS]{"city": "}{ \\" ]["}', calls=(("weather", {"city": '}{ " ]['}),)
    ),
    "text after a call": Case("[TOOL_CALLS]now[ARGS]{}Done.", "Done.", calls=(("now", {}),)),
    "a marker in reasoning": Case(
        "[THINK][TOOL_CALLS]now[ARGS]{}?[/THINK]So.", "So.", "[TOOL_CALLS]now[ARGS]{}?"
    ),
}
NEMOTRON: dict[str, Case] = {
    "answer": Case("It is sunny.", "It is sunny."),
    "open reasoning": Case("Why?\n</think>\n\nSo.", "So.", "Why?", thinking=True),
    "reasoning never closed": Case("Why?", "", "Why?", thinking=True),
    "reasoning": Case("<think>\nWhy?\n</think>\nSo.", "So.", "Why?"),
    "a quoted tag in reasoning": Case(
        "Not `</think>`.\n</think>\nSo.", "So.", "Not `</think>`.", thinking=True
    ),
}
CASES: dict[str, dict[str, Case]] = {
    "hebatron": HEBATRON,
    "glm4-tools": GLM,
    "ministral-3": MINISTRAL,
    "nemotron-nano-v2": NEMOTRON,
}
