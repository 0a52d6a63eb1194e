# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The command ``parse``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from chatformats import ChatFormatError, parsing_cli

from .parsers.reading import tool

COMPLETION = "why\n</think>\nשלום\n<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"


def run(capfdbinary: pytest.CaptureFixture[bytes], *argv: str) -> str:
    parser = argparse.ArgumentParser()
    parsing_cli.add_arguments(parser)
    parsing_cli.run(parser.parse_args(argv))
    return capfdbinary.readouterr().out.decode()


@pytest.fixture
def completion(tmp_path: Path) -> str:
    (tmp_path / "completion.txt").write_bytes(COMPLETION.encode())
    return str(tmp_path / "completion.txt")


def test_message(capfdbinary: pytest.CaptureFixture[bytes], completion: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps({"tools": [tool("f", a={"type": "integer"})]}))
    out = run(capfdbinary, "hebatron", completion, "--prompt", "<think>\\n", "--tools", str(tools))
    assert "שלום" in out
    assert json.loads(out) == {
        "content": "שלום",
        "reasoning_content": "why",
        "reasoning_complete": True,
        "tool_calls": [
            {
                "name": "f",
                "arguments": {"a": 1},
                "raw": COMPLETION[COMPLETION.index("<tool") :],
                "status": "ok",
            }
        ],
        "complete": False,
        "problems": [],
    }


def test_events(capfdbinary: pytest.CaptureFixture[bytes], completion: str) -> None:
    out = run(capfdbinary, "hebatron", completion, "--stream", "1000", "--prompt", "<think>\\n")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events[:3]] == ["reasoning_delta", "content_delta", "tool_call_begin"]
    assert "".join(event["text"] for event in events if event["event"] == "arguments_delta") == '{"a": "1"}'
    assert events[-1]["event"] == "tool_call_done"
    assert events[-1]["call"]["status"] == "ok"
    more = run(capfdbinary, "hebatron", completion, "--stream", "1", "--prompt", "<think>\\n")
    assert len(more.splitlines()) > len(events)


def test_bytes_that_are_no_text(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes("é".encode()[:1])
    out = run(capfdbinary, "ministral-3", str(tmp_path / "cut"))
    assert json.loads(out)["content"] == "\udcc3"


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["nobody", "-"], "no format is named"),
        (["hebatron", "/no/such/file"], "/no/such/file: cannot be read"),
        (["hebatron", "{file}", "--stream", "0"], "--stream: expected a number"),
        (["hebatron", "{file}", "--tools", "{file}"], "expected JSON"),
    ],
)
def test_errors(
    capfdbinary: pytest.CaptureFixture[bytes], completion: str, argv: list[str], error: str
) -> None:
    with pytest.raises(ChatFormatError, match=error):
        run(capfdbinary, *(word.replace("{file}", completion) for word in argv))
