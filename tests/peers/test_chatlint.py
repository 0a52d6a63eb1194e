# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""chatlint's conversation shapes, a public test suite of chat templates, all meet the contract.

A shape is a conversation as a client sends it step by step; each step is rendered.
"""

from __future__ import annotations

from typing import Any

import pytest

import chatformats

from .. import oracle
from ..cases import native

shapes = pytest.importorskip("chatlint.shapes", reason="chatlint is not installed (extra: peers)")
SHAPES: dict[str, Any] = {shape.name: shape for shape in shapes.all_shapes()}


def test_no_shape_is_left_out() -> None:
    assert len(SHAPES) == len(shapes.all_shapes()) >= 49


@pytest.mark.parametrize("generation_prompt", [False, True], ids=["history", "prompt"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("name", chatformats.names())
def test_contract(name: str, shape: Any, generation_prompt: bool) -> None:
    for messages in shape.snapshots:
        # glm4-tools and ministral-3 refuse null content, and so half of the shapes at their first tool
        # call: with empty content they go on.
        filled = [message | {"content": message.get("content") or ""} for message in messages]
        for given in (messages, filled):
            assert_contract(name, given, shape.tools, generation_prompt)


def assert_contract(name: str, messages: Any, tools: Any, add_generation_prompt: bool) -> None:
    formatter = chatformats.get(name)
    case = {"messages": messages, "tools": tools, "add_generation_prompt": add_generation_prompt}
    try:
        prompt = oracle.render(name, **case)
    except Exception:  # noqa: BLE001  # a template may raise anything
        with pytest.raises(chatformats.ChatFormatError):
            native(formatter, **case)
    else:
        assert native(formatter, **case) == prompt
