# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The reference: the Jinja templates, rendered as Hugging Face transformers sets Jinja up.

The one place that imports jinja2.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

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
    context: Mapping[str, Any] = {
        "add_generation_prompt": False,
        **DEFAULTS.get(name, {}),
        **variables,
    }
    return template(name).render(messages=messages, tools=tools, **context)
