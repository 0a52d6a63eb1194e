# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""mistral-common's tokenizer, as far as Ministral 3's template goes.

mistral-common ships Tekken's vocabulary, but no file of a version that Ministral 3 has. So the tokenizer is
put together here: that vocabulary with the control tokens of version 13, whose encoder writes what the
template writes. mistral-common needs Python 3.11, and is imported when it is asked for.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chatformats

# Those of Tekken's version 13 that no template writes, beside the format's own.
OTHER_TOKENS = (
    *("<unk>", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"),
    *("[TOOL_CONTENT]", "[CALL_ID]", "[THINK]", "[/THINK]"),
)


def module(name: str) -> Any:
    """Return a module of mistral-common; raises ImportError where that is not installed."""
    return importlib.import_module(f"mistral_common{name}")


@functools.cache
def tekken() -> Any:
    """Return Tekken with the control tokens of version 13."""
    path = Path(module("").__file__).parent / "data" / "tekken_240911.json"
    data = json.loads(path.read_bytes())
    names = (*OTHER_TOKENS, *chatformats.get("ministral-3").control_tokens)
    special = [{"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(names)]
    config = data["config"]
    return module(".tokens.tokenizers.tekken").Tekkenizer(
        data["vocab"],
        special,
        config["pattern"],
        config["default_vocab_size"],
        config["default_num_special_tokens"],
        module(".tokens.tokenizers.base").TokenizerVersion.v13,
    )


def tekken_of_nothing() -> Any:
    """Return one that finds no token in any text: what is left is the work around it."""
    blank = tekken.__wrapped__()
    blank.encode = lambda text, bos, eos: []
    return blank


@functools.cache
def mistral_tokenizer(tokens: Callable[[], Any] = tekken) -> Any:
    """Return what encodes a request."""
    validator = module(".protocol.instruct.validator")
    # "Agnostic" accepts a conversation that ends in an answer, and one whose tool calls have no results yet.
    mode = validator.ValidationMode.agnostic
    return module(".tokens.tokenizers.mistral").MistralTokenizer(
        module(".tokens.tokenizers.instruct").InstructTokenizerV13(tokens()),
        validator.MistralRequestValidatorV13(mode),
        module(".protocol.instruct.normalize").InstructRequestNormalizerV13.normalizer(),
    )


def request(messages: Any, tools: Any) -> Any:
    """Return a request to complete a conversation in OpenAI's shape."""
    return module(".protocol.instruct.request").ChatCompletionRequest.from_openai(messages, tools)


def decode(ids: list[int]) -> str:
    """Return the text of token ids, control tokens included."""
    policy = module(".tokens.tokenizers.base").SpecialTokenPolicy.KEEP
    text: str = tekken().decode(ids, special_token_policy=policy)
    return text
