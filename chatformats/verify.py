# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Whether a formatter may stand in for a template: by fingerprint, or by looking for a difference.

Jinja is asked for only where the fingerprints differ.
"""

from __future__ import annotations

import difflib
import json
import re
from datetime import datetime

from .errors import ChatFormatError
from .fingerprint import for_template
from .probes import defaults, probes, smaller_cases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from .formatter import ChatFormatter
    from .probes import Case


def verify(formatter: ChatFormatter, source: str, label: str = "the template") -> tuple[int, str]:
    """Say whether a formatter may stand in for a template; return an exit status and a report.

    0: it may, Jinja reads the same program; 1: it may not, the report shows where they differ; 3: undecided,
    the program is another one and no difference was found. Raises ChatFormatError where that cannot be
    looked for: jinja2 is not installed, or does not understand the template.

    >>> import chatformats
    >>> status, report = verify(chatformats.get("hebatron"), "{{ messages[0].content }}")
    >>> status
    1
    """
    name = formatter.name
    found = for_template(source)
    if found and found.name == name:
        return 0, f"{name} may stand in for {label}: one fingerprint, so Jinja reads one program in both.\n"
    render = _compile(source, label)
    cases = list(probes(formatter))
    kinds = [_difference(*_outcomes(formatter, render, case)) for case in cases]
    differing = [case for case, kind in zip(cases, kinds, strict=True) if kind]
    if not differing:
        return 3, (
            f"Undecided: {label} has another fingerprint than the template of {name}, and no difference was "
            f"found.\nOf {len(cases):,} built-in conversations both make the same prompt, or both refuse them. "
            f"That is no proof: one\nthat differs may not be among them, nor are variables that {name} does not "
            "have. chatformats.for_template\nanswers None for it.\n"
        )
    # Two prompts tell more than a prompt and a refusal.
    kind = max(kinds)
    case = min((c for c, k in zip(cases, kinds, strict=True) if k == kind), key=_size)
    while smaller := next(
        (c for c in smaller_cases(formatter, case) if _difference(*_outcomes(formatter, render, c)) == kind),
        None,
    ):
        case = smaller
    return 1, (
        f"{name} may not stand in for {label}: they differ in {len(differing):,} of {len(cases):,} built-in "
        f"conversations.\nThe smallest found:\n\n{_request(formatter, case)}\n\n"
        + _diff(formatter, label, *_outcomes(formatter, render, case))
    )


def jinja_environment(filters: Mapping[str, Callable[..., object]]) -> ImmutableSandboxedEnvironment:
    """Return a Jinja environment as transformers sets it up, with the filters that a template's host adds.

    Raises ImportError where jinja2 is not installed.
    """
    from jinja2 import TemplateError, ext, nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(ext.Extension):
        tags = {"generation"}  # noqa: RUF012  # as jinja2 declares it

        def parse(self, parser: Any) -> list[nodes.Node]:
            next(parser.stream)
            return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.LoopControlExtension]
    )
    env.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    env.filters.update(filters)
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return env


def _compile(source: str, label: str) -> Callable[..., str]:
    """Return the template as a function."""
    try:
        from jinja2 import TemplateSyntaxError

        # JoyAI's template leaves this filter to its host.
        env = jinja_environment({"from_json": json.loads})
    except ImportError as error:
        problem = "has another fingerprint, and jinja2, which would find a difference, is not installed"
        raise ChatFormatError(problem, label) from error
    try:
        return env.from_string(source).render
    except TemplateSyntaxError as error:
        raise ChatFormatError(f"line {error.lineno}: {error.message}", label) from error


def _outcomes(formatter: ChatFormatter, render: Callable[..., str], case: Case) -> tuple[str, str]:
    """Return what the template and the formatter make of a conversation: a prompt, or how they refuse."""
    try:
        theirs = render(**case)
    except Exception as error:  # noqa: BLE001  # a template may raise anything
        theirs = f"\0{type(error).__name__}: {error}"
    write: Callable[..., str] = formatter.render
    try:
        ours = write(**case)
    except ChatFormatError as error:
        ours = f"\0{type(error).__name__}: {error}"
    return theirs, ours


def _difference(theirs: str, ours: str) -> int:
    """Return 0 for none, 1 where just one of them refuses, 2 for two prompts."""
    refusals = (theirs[:1] == "\0") + (ours[:1] == "\0")
    return 0 if theirs == ours or refusals == 2 else 2 - refusals


def _size(case: Case) -> tuple[int, int]:
    odd = sum("content" not in message for message in case["messages"])
    return odd, len(json.dumps(case))


def _request(formatter: ChatFormatter, case: Case) -> str:
    """Return a conversation as ``render`` of the command line reads it."""
    usual = defaults(formatter)
    variables = {key: case[key] for key in usual if case.get(key, usual[key]) != usual[key]}
    given = {"tools": case.get("tools"), "add_generation_prompt": case.get("add_generation_prompt")}
    request = {"messages": case["messages"], **given, "chat_template_kwargs": variables}
    request = {
        key: value for key, value in request.items() if key == "messages" or value not in (None, False, {})
    }
    return json.dumps(request, ensure_ascii=False, indent=2)


def _diff(formatter: ChatFormatter, label: str, theirs: str, ours: str) -> str:
    tokens = "|".join(map(re.escape, formatter.control_tokens)) or "(?!)"

    def lines(text: str) -> list[str]:
        if text[:1] == "\0":
            return [f"refuses it: {text[1:]}"]
        # Prompts have few lines: they are cut at control tokens and after sentences, too.
        return [repr(piece) for piece in re.split(rf"({tokens})|(?<=\n)|(?<=[.:] )", text) if piece]

    diff = difflib.unified_diff(lines(theirs), lines(ours), label, formatter.name, n=2, lineterm="")
    return "\n".join(diff) + "\n"
