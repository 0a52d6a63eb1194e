# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The reference: the Jinja templates, rendered as Hugging Face transformers sets Jinja up.

The one place that imports jinja2; so the trace of the templates' branches lives here too.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

REFERENCE = Path(__file__).parent.parent / "reference"
NAMES = ("glm4-tools", "hebatron", "joyai-llm-flash", "ministral-3", "nemotron-nano-v2")

# What a host passes to a template beside the messages; the formatters' defaults are the same.
DEFAULTS: dict[str, dict[str, Any]] = {
    "joyai-llm-flash": {"bos_token": ""},
    "ministral-3": {"bos_token": "<s>", "eos_token": "</s>"},
}


def environment() -> ImmutableSandboxedEnvironment:
    """Return the Jinja environment that every reference is read in."""

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(value: object, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads  # JoyAI's template leaves this one to its host
    env.globals["raise_exception"] = raise_exception
    return env


def source(name: str) -> str:
    """Return a reference's text, as it stands in the file."""
    return (REFERENCE / f"{name}.jinja").read_bytes().decode()


@functools.cache
def template(name: str) -> Template:
    """Return a reference, compiled."""
    return environment().from_string(source(name))


def render(name: str, messages: Any, tools: Any = None, **variables: Any) -> str:
    """Render a reference; raises whatever the template raises."""
    return _render(template(name), name, messages, tools, variables)


def _render(compiled: Template, name: str, messages: Any, tools: Any, variables: Mapping[str, Any]) -> str:
    context = {"add_generation_prompt": False, **DEFAULTS.get(name, {}), **variables}
    return compiled.render(messages=messages, tools=tools, **context)


def raised_sentence(error: Exception) -> str | None:
    """Return what the template itself said (``raise_exception``), or None if anything else raised."""
    return str(error) if type(error) is TemplateError else None


class BranchTrace:
    """Render a reference and note the way it takes at every branch.

    Branches are the tests of ``if``, ``elif`` and inline ``if``, each operand of ``and`` and ``or``, what
    ``default`` replaces, and loops and their filters. Each ends in both outcomes, so that an ``if``
    without ``else`` counts twice; a loop is empty or not. ``possible`` and ``taken`` hold them as
    ``line 12, test 1: true``, the tests of a line being counted from 1 in the order of the text.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.possible: set[str] = set()
        self.taken: set[str] = set()
        env = environment()
        env.filters["note_test"] = self._note_test
        env.filters["note_loop"] = self._note_loop
        tree = env.parse(source(name))
        _Instrument(self.possible).visit(tree)
        tree.set_environment(env)
        self._template = Template.from_code(env, env.compile(tree), env.make_globals(None))

    def render(self, messages: Any, tools: Any = None, **variables: Any) -> str:
        """Render as ``oracle.render`` does."""
        return _render(self._template, self.name, messages, tools, variables)

    def _note_test(self, value: object, place: str) -> object:
        self.taken.add(f"{place}: {'true' if value else 'false'}")
        return value

    def _note_loop(self, value: Any, place: str) -> list[object]:
        items = list(value)
        self.taken.add(f"{place}: {'items' if items else 'empty'}")
        return items


class _Instrument(NodeTransformer):
    def __init__(self, possible: set[str]) -> None:
        self._possible = possible
        self._counts: dict[tuple[int, str], int] = {}

    def _noting(self, node: Any, what: str, outcomes: tuple[str, str]) -> nodes.Expr:
        number = self._counts[node.lineno, what] = self._counts.get((node.lineno, what), 0) + 1
        place = f"line {node.lineno}, {what} {number}"
        self._possible.update(f"{place}: {outcome}" for outcome in outcomes)
        return nodes.Filter(node, f"note_{what}", [nodes.Const(place)], [], None, None, lineno=node.lineno)

    def _noting_test(self, node: Any) -> Any:
        if isinstance(node, (nodes.And, nodes.Or)):
            return node  # its operands are noted instead
        if isinstance(node, nodes.Not):
            node.node = self._noting_test(node.node)
            return node
        return self._noting(node, "test", ("true", "false"))

    def visit_If(self, node: nodes.If | nodes.CondExpr) -> nodes.Node:
        self.generic_visit(node)
        node.test = self._noting_test(node.test)
        return node

    visit_CondExpr = visit_If

    def visit_And(self, node: nodes.And | nodes.Or) -> nodes.Node:
        self.generic_visit(node)
        node.left = self._noting_test(node.left)
        node.right = self._noting_test(node.right)
        return node

    visit_Or = visit_And

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:
        self.generic_visit(node)
        if node.name == "default":
            node.node = self._noting_test(node.node)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = self._noting(node.iter, "loop", ("items", "empty"))
        if node.test is not None:
            node.test = self._noting_test(node.test)
        return node
