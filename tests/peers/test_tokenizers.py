# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Hugging Face's tokenizers: what a caller wrote becomes no control token, and the mask is the model's text.

The tokenizers are byte-level BPE ones, trained here on the references' own texts. To ``tokenizers`` an added
token is special or not, and its switch ``encode_special_tokens`` turns off the special ones only; so
``encode_plain`` is a copy of the tokenizer to which none was added.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings

import chatformats
from chatformats import ChatFormatError
from chatformats.spans import Rendered

from .. import oracle
from ..cases import conversations
from ..strategies import Conversation, well_formed

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra: peers)")
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

# Of GLM-4's tokenizer, whose tokens its template for tools does not write.
GLM4_TOKENS = ("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "[gMASK]", "<sop>")
GENERATED = 200


class Trained(NamedTuple):
    """A tokenizer with a format's control tokens, and the same without."""

    tokenizer: Any
    plain: Any
    control_tokens: tuple[str, ...]

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def encode_plain(self, text: str) -> list[int]:
        ids: list[int] = self.plain.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def controls(self, ids: list[int]) -> list[str]:
        """Return the control tokens among token ids."""
        added = self.tokenizer.get_added_tokens_decoder()
        return [added[number].content for number in ids if number in added]


@functools.cache
def trained(name: str) -> Trained:
    """Return a format's tokenizer, the same at every run."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    corpus = [oracle.source(reference) for reference in oracle.NAMES]
    tokenizer.train_from_iterator([*corpus, "答：“Yes.” 答：“No.” What's up?\n" * 20], trainer)
    plain = Tokenizer.from_str(tokenizer.to_str())
    control_tokens = chatformats.get(name).control_tokens or GLM4_TOKENS
    # Half of them special, as in the models' own files, where think tags, for example, are not.
    for number, token in enumerate(control_tokens):
        tokenizer.add_tokens([AddedToken(token, special=number % 2 == 0, normalized=False)])
    return Trained(tokenizer, plain, control_tokens)


def encoded(name: str, result: Rendered) -> list[int]:
    """Return the token ids, once nothing but the format's control tokens is one, and nothing is lost."""
    encoder = trained(name)
    added = () if chatformats.get(name).control_tokens else encoder.control_tokens
    ids = result.encode(encoder.encode, encoder.encode_plain, added)
    written = [segment.text for segment in result.segments if segment.origin == "control"]
    # What the host calls bos or eos is a control token where the tokenizer says so.
    assert encoder.controls(ids) == [token for token in written if token in encoder.control_tokens]
    assert encoder.decode(ids) == result.text
    return ids


def injecting(name: str, text: str) -> dict[str, Any]:
    """Return a conversation with a text in every place that a caller fills."""
    schema = {
        "type": "object",
        "properties": {text: {"type": text, "description": text, "enum": [text, {text: text}], text: text}},
        "required": [text],
        text: {text: [text]},
    }
    tools = [
        {"type": "function", "function": {"name": text, "description": text, "parameters": schema, text: 1}}
    ]
    call = {"type": "function", "function": {"name": text, "arguments": {text: text, "a": {text: [text]}}}}
    text_call = {"function": {"name": text, "arguments": f'{{"{text}": "{text}"}}'}}
    calls = [call] if name == "hebatron" else [call, text_call]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": text},
        {"role": "user", "content": f"a{text}b {text}{text}"},
        {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": calls},
        {"role": "tool", "content": text},
        {
            "role": "tool",
            "content": {text: [text]} if name not in ("glm4-tools", "joyai-llm-flash") else text,
        },
        {"role": "assistant", "content": f"{text}\n", "reasoning_content": text},
        {"role": "user", "content": [{"type": "text", "text": text}] if name == "ministral-3" else text},
        {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": calls},
    ]
    if name == "hebatron":
        messages.insert(1, {"role": text, "content": text})
        # Or what stands before </think> in earlier answers is cut out.
        return {"messages": messages, "tools": tools, "truncate_history_thinking": False}
    return {"messages": messages, "tools": tools}


def rendered(name: str, messages: Any, tools: Any = None, **variables: Any) -> Rendered:
    render_segments: Callable[..., Rendered] = chatformats.get(name).render_segments
    return render_segments(messages, tools, **variables)


@pytest.mark.parametrize(
    ("name", "token"), [(name, token) for name in oracle.NAMES for token in trained(name).control_tokens]
)
def test_injected_token_stays_text(name: str, token: str) -> None:
    result = rendered(name, **injecting(name, token))
    ids = encoded(name, result)
    # The string alone does not tell them apart.
    encoder = trained(name)
    assert len(encoder.controls(encoder.encode(result.text))) > len(encoder.controls(ids))
    if name != "glm4-tools":
        assert {injection.token for injection in result.injected} == {token}
        messages = {injection.message for injection in result.injected}
        assert messages >= {None, 0, 1, 2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("name", oracle.NAMES)
def test_text_without_injected_tokens_is_encoded_as_it_is(name: str) -> None:
    # Pieces of tokens, and another format's, are nobody's control tokens.
    others = [token for other in oracle.NAMES if other != name for token in trained(other).control_tokens]
    foreign = [token for token in others if token not in trained(name).control_tokens]
    pieces = [token[:-1] for token in trained(name).control_tokens]
    cases = [injecting(name, text) for text in ("Hi", " two  words\n", "".join(foreign), "\n".join(pieces))]
    cases += [{**case, "tools": None} for case in cases]
    for case in [*cases, *conversations(name).values()]:
        try:
            result = rendered(name, **case)
        except ChatFormatError:
            continue
        if not result.injected:
            assert encoded(name, result) == trained(name).encode(result.text)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_generated_conversations(name: str) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=GENERATED,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(well_formed(name))
    def examine(conversation: Conversation) -> None:
        messages, tools, variables = conversation.messages, conversation.tools, dict(conversation.variables)
        for token in ("bos_token", "eos_token"):
            variables.pop(token, None)
        try:
            result = rendered(name, messages, tools, **variables)
            result.text.encode()
        except (ChatFormatError, UnicodeEncodeError):  # a lone surrogate is not for tokenizers
            return
        ids = encoded(name, result)
        if not result.injected:
            assert ids == trained(name).encode(result.text)
        seen["injected" if result.injected else "harmless"] += 1

        encoding = trained(name).tokenizer.encode(result.text, add_special_tokens=False)
        assert result.mask(encoding.offsets) == expected_mask(result, encoding.offsets)
        owners = [segment.message for segment in result.segments for _ in segment.text]
        assert result.message_index(encoding.offsets) == [owners[start] for start, _ in encoding.offsets]

    examine()
    assert seen["harmless"] >= 0.1 * GENERATED
    assert seen["injected"] >= 0.02 * GENERATED or name == "glm4-tools"


def expected_mask(result: Rendered, offsets: list[tuple[int, int]]) -> list[int]:
    generated = [segment.generated for segment in result.segments for _ in segment.text]
    return [int(any(generated[start:end])) for start, end in offsets]


def test_mask_of_tokens_that_straddle_a_border() -> None:
    messages = [{"role": "user", "content": "What's up?"}, {"role": "assistant", "content": "“Yes.” Or"}]
    result = rendered("glm4-tools", messages)
    encoding = trained("glm4-tools").tokenizer.encode(result.text, add_special_tokens=False)
    generated = [
        result.text[start:end]
        for (start, end), one in zip(encoding.offsets, result.mask(encoding.offsets), strict=True)
        if one
    ]
    # The first token begins with the template's colon: it overlaps what the model writes.
    assert generated[0] == "：“"
    assert "".join(dict.fromkeys(generated)).startswith("：“Yes")


@pytest.mark.parametrize("name", oracle.NAMES)
def test_mask_of_the_injecting_conversation(name: str) -> None:
    for token in trained(name).control_tokens:
        result = rendered(name, **injecting(name, token))
        offsets = trained(name).tokenizer.encode(result.text, add_special_tokens=False).offsets
        mask = result.mask(offsets)
        assert mask == expected_mask(result, offsets)
        assert 0 in mask
        assert 1 in mask
