# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A tokenizer's configuration names its formatter, with the tokenizer's own bos and eos."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import chatformats
from chatformats import ChatFormatError, for_tokenizer_config
from chatformats.bound import BoundFormatter

from . import oracle

if TYPE_CHECKING:
    from pathlib import Path

MINISTRAL = oracle.source("ministral-3")
HEBATRON = oracle.source("hebatron")
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello</eos>"}]
TOKENS = {"bos_token": "<bos>", "eos_token": {"__type": "AddedToken", "content": "</eos>", "lstrip": False}}


def render(config: Any, **keywords: Any) -> str | None:
    fmt = for_tokenizer_config(config, **keywords)
    return None if fmt is None else fmt.render(MESSAGES)


def reference(bos: str, eos: str) -> str:
    return oracle.render("ministral-3", MESSAGES, bos_token=bos, eos_token=eos)


def named(**templates: str) -> list[dict[str, str]]:
    return [{"name": name, "template": source} for name, source in templates.items()]


def write(directory: Path, config: Any, **templates: str) -> Path:
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    for name, source in templates.items():
        path = directory / "additional_chat_templates" / f"{name}.jinja"
        if name == "default":
            path = directory / "chat_template.jinja"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source.encode())
    return directory


def test_tokens_are_the_tokenizers() -> None:
    assert render({"chat_template": MINISTRAL, **TOKENS}) == reference("<bos>", "</eos>")


def test_a_call_may_still_say_otherwise() -> None:
    fmt = for_tokenizer_config({"chat_template": MINISTRAL, **TOKENS})
    assert isinstance(fmt, BoundFormatter)
    assert fmt.render(MESSAGES, bos_token="<s>") == reference("<s>", "</eos>")
    assert fmt.render_segments(MESSAGES, bos_token="<s>").text == reference("<s>", "</eos>")


def test_a_bound_formatter_is_a_formatter() -> None:
    fmt = for_tokenizer_config({"chat_template": MINISTRAL, **TOKENS})
    plain = chatformats.get("ministral-3")
    assert fmt is not None
    assert (fmt.name, fmt.template, fmt.variables) == (plain.name, plain.template, plain.variables)
    assert {"<bos>", "</eos>"} == set(fmt.control_tokens) - set(plain.control_tokens)
    assert {"<s>", "</s>"} == set(plain.control_tokens) - set(fmt.control_tokens)
    rendered = fmt.render_segments(MESSAGES)
    assert rendered.text == fmt.render(MESSAGES)
    assert [(found.token, found.message) for found in rendered.injected] == [("</eos>", 1)]
    # Also where the format writes no such token itself.
    assert fmt.render_segments([{"role": "user", "content": "</eos>"}]).injected != []
    with pytest.raises(TypeError):
        fmt.render(MESSAGES, no_such_variable=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("config", [{}, {"bos_token": None, "eos_token": None, "tokenizer_class": "Llama"}])
def test_no_token_prints_nothing(config: dict[str, Any]) -> None:
    assert render({"chat_template": MINISTRAL, **config}) == reference("", "")


def test_a_class_may_know_a_token_that_is_missing() -> None:
    config = {"chat_template": MINISTRAL, "eos_token": "</s>", "tokenizer_class": "LlamaTokenizerFast"}
    assert for_tokenizer_config(config) is None
    assert for_tokenizer_config({**config, "bos_token": "<s>"}) is not None
    assert for_tokenizer_config({**config, "tokenizer_class": "PreTrainedTokenizerFast"}) is not None
    # Where the template reads none, none is missing.
    assert type(for_tokenizer_config({**config, "chat_template": HEBATRON})) is type(
        chatformats.get("hebatron")
    )


@pytest.mark.parametrize(
    ("templates", "template", "name"),
    [
        (named(default=MINISTRAL, rag="x"), None, "ministral-3"),
        (named(default=MINISTRAL, tool_use=MINISTRAL + "{##}"), None, "ministral-3"),
        (named(default=MINISTRAL, tool_use=HEBATRON), None, None),
        (named(default=MINISTRAL, tool_use=HEBATRON), "default", "ministral-3"),
        (named(default=MINISTRAL, tool_use=HEBATRON), "tool_use", "hebatron"),
        (named(default=MINISTRAL, tool_use="x"), None, None),
        (named(default="x", tool_use=HEBATRON), None, None),
        (named(tool_use=HEBATRON), None, None),
        (named(tool_use=HEBATRON), "tool_use", "hebatron"),
        (named(default=MINISTRAL), "rag", None),
        ({"default": HEBATRON}, None, "hebatron"),
        (HEBATRON, "default", "hebatron"),
        (HEBATRON, "tool_use", None),
        ([], None, None),
        ("x", None, None),
        (None, None, None),
    ],
)
def test_of_several_templates(templates: object, template: str | None, name: str | None) -> None:
    fmt = for_tokenizer_config({"chat_template": templates}, template=template)
    assert (fmt.name if fmt else None) == name


def test_paths(tmp_path: Path) -> None:
    write(tmp_path, {"chat_template": MINISTRAL, **TOKENS})
    for path in (tmp_path, str(tmp_path), tmp_path / "tokenizer_config.json"):
        assert render(path) == reference("<bos>", "</eos>")


def test_a_file_beside_it_wins(tmp_path: Path) -> None:
    write(tmp_path, {"chat_template": HEBATRON, **TOKENS}, default=MINISTRAL.replace("\n", "\r\n"))
    assert render(tmp_path) == reference("<bos>", "</eos>")
    write(tmp_path, {"chat_template": HEBATRON, **TOKENS}, tool_use=HEBATRON)
    assert render(tmp_path) is None
    assert render(tmp_path, template="default") == reference("<bos>", "</eos>")


def test_an_old_tokenizers_tokens_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    tokens = tmp_path / "special_tokens_map.json"
    tokens.write_text(json.dumps(TOKENS), encoding="utf-8")
    config = {"chat_template": MINISTRAL, "tokenizer_class": "LlamaTokenizer"}
    assert render(write(tmp_path, config)) == reference("<bos>", "</eos>")
    newer = {**config, "added_tokens_decoder": {}, "bos_token": "<s>", "eos_token": "</s>"}
    assert render(write(tmp_path, newer)) == reference("<s>", "</s>")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"chat_template": 5}, "chat_template: expected a string or a list of named templates, got int"),
        ({"chat_template": ["x"]}, "chat_template: expected a name and a template's text in each"),
        ({"chat_template": [{"name": "default"}]}, "chat_template: expected a name and a template's text"),
        ({"chat_template": MINISTRAL, "bos_token": 5}, "bos_token: expected a string, or an object"),
        ({"chat_template": MINISTRAL, "eos_token": {"content": 1}}, "eos_token: expected a string, or"),
    ],
)
def test_configurations_that_are_none(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ChatFormatError, match=message):
        for_tokenizer_config(config)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"{", "not JSON: Expecting property name"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "expected an object"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer_config.json").write_bytes(content)
    with pytest.raises(ChatFormatError, match=rf"tokenizer_config.json: {message}"):
        for_tokenizer_config(tmp_path)
