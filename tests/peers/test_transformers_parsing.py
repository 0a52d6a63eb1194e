# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""transformers' response parsing, on the completions of the one grammar of ours that it has a template for.

``transformers serve`` has a response template for Qwen 3.5, whose calls are HebaTron's.
"""

from __future__ import annotations

from typing import Any

import pytest

from ..parsers.reading import calls, read
from .completions import HEBATRON, TOOLS, Case

pytest.importorskip("transformers", minversion="5.24", reason="needs transformers 5.24")
pytest.importorskip("regex", reason="regex is not installed (extra: peers)")
chat_parsing = pytest.importorskip("transformers.utils.chat_parsing", reason="needs transformers 5.24")
serving = pytest.importorskip("transformers.cli.serving.utils", reason="needs transformers 5.24")

TEMPLATE: Any = next(
    template for models, template in serving._RESPONSE_TEMPLATE_FALLBACKS.items() if "qwen3_5" in models
)
#: Where the peer differs, and why.
DIFFERENT = {
    "white space": "it trims values, where the template writes one line break at each end",
    "a call in open reasoning": "it takes the call for reasoning, since nothing closed that",
    "an end of a value in it": "it cuts the value at the first </parameter>",
    "a quoted tag in reasoning": "it takes the first </think> for the end",
}


def peer(case: Case, chunks: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    prefix = "<|im_start|>assistant\n" + ("<think>\n" if case.thinking else "")
    parser = chat_parsing.ResponseParser(TEMPLATE, prefix=prefix, tools=TOOLS)
    for chunk in chunks:
        parser.feed(chunk)
    message, _ = parser.finalize()
    found = [call["function"] for call in message.get("tool_calls", [])]
    return (
        (message.get("content") or "").strip(),
        (message.get("reasoning_content") or "").strip(),
        [(call["name"], call["arguments"]) for call in found],
    )


@pytest.mark.parametrize("title", HEBATRON)
def test_the_same_or_listed(title: str) -> None:
    case = HEBATRON[title]
    message = read("hebatron", case.completion, "<think>\n" if case.thinking else None, TOOLS)
    ours = (message.content, message.reasoning_content or "", calls(message))
    same = peer(case, [case.completion]) == ours == peer(case, case.completion)
    assert same is (title not in DIFFERENT), peer(case, [case.completion])


def test_no_case_is_listed_that_is_not_there() -> None:
    assert DIFFERENT.keys() <= HEBATRON.keys()
