# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""``verify`` proves that a formatter may stand in for a template, or shows where it may not."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import pytest

import chatformats
from chatformats import ChatFormatError, probes
from chatformats.verify import verify

from . import oracle
from .test_branches import UNREACHED

every_format = pytest.mark.parametrize("name", oracle.NAMES)

# One change a template, and the lines that show it.
CHANGES = {
    "glm4-tools": ("答：' + message", "答: ' + message", ["-'答: '", "+'答：'"]),
    "hebatron": ("</parameter>\\n' -}}", "</Parameter>\\n' -}}", []),
    "joyai-llm-flash": ("+ '\\n\\n' +", "+ '\\n' +", []),
    "ministral-3": ("'[ARGS]' +", "'[ARGS] ' +", ["-' {}'", "+'{}'"]),
    "nemotron-nano-v2": ("replace('/no_think', '')", "replace('/nothink', '')", []),
}


@every_format
def test_the_reference_is_known_without_jinja(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    status, report = verify(chatformats.get(name), oracle.source(name) + "{# x #}", "x.jinja")
    assert (status, report) == (
        0,
        f"{name} may stand in for x.jinja: one fingerprint, so Jinja reads one program in both.\n",
    )


@every_format
def test_without_a_difference_it_is_undecided(name: str) -> None:
    status, report = verify(chatformats.get(name), oracle.source(name) + "{{ '' }}", "x.jinja")
    assert status == 3
    assert report.startswith("Undecided: x.jinja has another fingerprint than the template of ")
    assert "That is no proof" in report


@every_format
def test_a_change_is_shown(name: str) -> None:
    old, new, lines = CHANGES[name]
    source = oracle.source(name).replace(old, new)
    assert source != oracle.source(name)
    status, report = verify(chatformats.get(name), source, "x.jinja")
    assert status == 1
    assert report.startswith(f"{name} may not stand in for x.jinja: they differ in ")
    assert [line for line in lines if line not in report.splitlines()] == []
    # What is shown does show it.
    request, _, diff = report.partition("\n\n")[2].partition("\n\n--- ")
    case = json.loads(request)
    assert all("role" in message for message in case["messages"])
    case.update(case.pop("chat_template_kwargs", {}))
    context = {"add_generation_prompt": False, "tools": None, **oracle.DEFAULTS.get(name, {}), **case}
    theirs = oracle.environment().from_string(source).render(context)
    assert theirs != chatformats.get(name).render(**case)
    assert diff.startswith(f"x.jinja\n+++ {name}\n@@ ")


def test_the_conversation_is_a_small_one() -> None:
    source = oracle.source("hebatron").replace("<|im_start|>user", "<|im_start|>User")
    _, report = verify(chatformats.get("hebatron"), source)
    assert json.loads(report.split("\n\n")[1]) == {
        "messages": [{"role": "assistant", "content": ""}, {"role": "tool", "content": ""}]
    }


def test_a_variables_default_is_looked_at() -> None:
    source = oracle.source("ministral-3").replace("{{- bos_token }}", "{{- '<s>' }}")
    status, report = verify(chatformats.get("ministral-3"), source)
    assert status == 1
    assert '"bos_token": ' in report
    source = oracle.source("hebatron").replace("else True", "else False")
    assert verify(chatformats.get("hebatron"), source)[0] == 1


def test_a_refusal_is_shown_where_there_is_no_other_difference() -> None:
    source = oracle.source("ministral-3").replace("'Only user, assistant and tool", "'Other: ")
    assert verify(chatformats.get("ministral-3"), source)[0] == 3  # in other words, it refuses the same
    source = oracle.source("ministral-3").replace("{{- raise_exception('User message must", "{{- ('User must")
    source = source.replace("{{- raise_exception('Only user", "{{- ('Only user")
    status, report = verify(chatformats.get("ministral-3"), source)
    assert status == 1
    assert "+refuses it: TemplateRaisedError: " in report
    # Two prompts tell more.
    _, report = verify(chatformats.get("ministral-3"), source.replace("'[ARGS]' +", "'[ARGS] ' +"))
    assert "refuses it" not in report


@pytest.mark.parametrize(
    "source",
    ["{% generation %}x{% endgeneration %}", "{{ strftime_now('%Y') }}", "{% break %}", "{{ a.b.c }}"],
)
def test_templates_as_transformers_reads_them(source: str) -> None:
    if "break" in source:
        source = "{% for a in 'x' %}" + source + "{% endfor %}"
    assert verify(chatformats.get("glm4-tools"), source)[0] == 1


def test_another_format_is_no_substitute() -> None:
    assert verify(chatformats.get("hebatron"), oracle.source("ministral-3"))[0] == 1


def test_what_jinja_cannot_read_is_said() -> None:
    with pytest.raises(ChatFormatError, match="x.jinja: line 2: Encountered unknown tag 'nothing'"):
        verify(chatformats.get("hebatron"), "\n{% nothing %}", "x.jinja")


def test_without_jinja_it_cannot_be_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ChatFormatError, match=r"x\.jinja: has another fingerprint, and jinja2, .* not installed"
    ):
        verify(chatformats.get("hebatron"), "x", "x.jinja")


@every_format
def test_probes_are_the_same_at_every_run_and_stay_as_they_are(name: str) -> None:
    fmt = chatformats.get(name)
    cases: list[dict[str, Any]] = list(probes.probes(fmt))
    before = json.dumps(cases)
    assert len(cases) > 4_000
    write: Any = fmt.render
    for case in cases:
        with contextlib.suppress(ChatFormatError):
            write(**case)
    assert json.dumps(cases) == json.dumps(list(probes.probes(fmt))) == before


@every_format
def test_probes_take_every_branch(name: str) -> None:
    trace = oracle.BranchTrace(name)
    for case in probes.probes(chatformats.get(name)):
        with contextlib.suppress(Exception):  # a template may raise anything
            trace.render(**case)
    assert trace.possible - trace.taken == UNREACHED[name].keys()
