# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""check_format passes the formats that keep the contract, and no other; formats of one's own are found."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import chatformats
from chatformats import ChatFormatError, registry
from chatformats.base import BaseFormatter
from chatformats.errors import expected
from chatformats.formatter import Sink
from chatformats.messages import Messages, Tools
from chatformats.testing import FormatDifference, check_format

from . import oracle
from .cases import ASSISTANT, USER

TEMPLATE = """\
{%- for message in messages %}
{{- '<turn>' + message.role + '\n' + message.content + '<end>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<turn>' + (name or 'assistant') + '\n' }}
{%- endif %}
"""
VARIABLES = {"name": ["Ada", "", None]}
SETTINGS: dict[str, dict[str, Any]] = {
    "glm4-tools": {},
    "hebatron": {"variables": {"enable_thinking": [True, False], "truncate_history_thinking": [True, False]}},
    "joyai-llm-flash": {"variables": {"bos_token": ["<s>"]}, "filters": {"from_json": json.loads}},
    "ministral-3": {"variables": {"bos_token": ["", "<b>"], "eos_token": ["", "<e>"]}},
    "nemotron-nano-v2": {"variables": {"continue_final_message": [True, False]}},
}


class Turns(BaseFormatter):
    name = "turns"
    control_tokens = ("<turn>", "<end>")

    def write(
        self,
        out: Sink,
        messages: Messages,
        tools: Tools | None,
        add_generation_prompt: bool,
        *,
        name: str | None = None,
    ) -> None:
        for index, message in out.turns(messages, 0):
            out.control("<turn>")
            out.content(self.text(message.get("role"), index, "role"))
            out.scaffold("\n")
            out.content(self.text(message.get("content"), index, "content"))
            out.control("<end>")
            out.scaffold("\n")
        if add_generation_prompt:
            out.control("<turn>")
            out.scaffold((name or "assistant") + "\n")

    def text(self, value: object, index: int, key: str) -> str:
        if not isinstance(value, str):
            raise expected("a string", value, ("messages", index, key))
        return value


class Trims(Turns):
    def text(self, value: object, index: int, key: str) -> str:
        return super().text(value, index, key).strip()


class Accepts(Turns):
    def text(self, value: object, index: int, key: str) -> str:
        return "" if value is None else super().text(value, index, key)


class Refuses(Turns):
    def text(self, value: object, index: int, key: str) -> str:
        if value == "tool":
            raise expected("another role", value, ("messages", index, key))
        return super().text(value, index, key)


class Leaks(Turns):
    def text(self, value: Any, index: int, key: str) -> str:
        return str(value + "")


class Changes(Turns):
    def render(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        prompt = super().render(messages, *args, **kwargs)
        messages.pop()
        return prompt


class OtherDefault(Turns):
    def write(self, *args: Any, name: str | None = "Ada") -> None:  # type: ignore[override]
        super().write(*args, name=name)


class OtherSegments(Turns):
    def render_segments(self, messages: Messages, *args: Any, **kwargs: Any) -> Any:
        return super().render_segments(messages[:1], *args, **kwargs)


class Everything:
    def render(self, messages: Any, tools: Any = None, **variables: Any) -> str:
        raise ChatFormatError("no")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    yield
    registry._REGISTERED.clear()


@pytest.mark.parametrize("name", chatformats.names())
def test_formats_of_the_package_pass(name: str) -> None:
    host = oracle.DEFAULTS.get(name, {})
    check_format(chatformats.get(name), oracle.source(name), host=host, **SETTINGS[name], examples=500)


def test_a_format_of_ones_own_passes() -> None:
    check_format(Turns(), TEMPLATE, variables=VARIABLES)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (Trims(), "\n-' <end>\\n'\n+'<end>\\n'"),
        (Accepts(), "-refuses it: "),
        (Refuses(), "+refuses it: messages[0].role: expected another role, got a string"),
        (Leaks(), "+raises what is no ChatFormatError: TypeError: "),
        (Changes(), "+changes what it is given"),
        (OtherDefault(), "-'<turn>assistant\\n'\n+'<turn>Ada\\n'"),
        (OtherSegments(), "+has another text in render_segments"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_wrong_one_is_reported_by_the_smallest_conversation(wrong: Any, sentence: str) -> None:
    with pytest.raises(FormatDifference) as info:
        check_format(wrong, TEMPLATE, variables=VARIABLES)
    report = str(info.value)
    assert sentence in report
    request = json.loads(report[report.index("{") : report.index("\n\n---")])
    assert len(json.dumps(request)) < 120
    assert "+++ the formatter" in report


def test_a_check_that_shows_nothing_fails() -> None:
    with pytest.raises(FormatDifference, match="nothing is shown"):
        check_format(Everything(), "{{ raise_exception('no') }}", examples=20)


@pytest.mark.parametrize("name", chatformats.names())
def test_the_contract_of_one_format_is_not_that_of_another(name: str) -> None:
    other = next(other for other in oracle.NAMES if other != name)
    with pytest.raises(FormatDifference):
        check_format(chatformats.get(name), oracle.source(other), filters={"from_json": json.loads})


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['hypothesis'] = None; import chatformats.testing"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.stderr.endswith(
        "ImportError: chatformats.testing needs hypothesis and jinja2: pip install hypothesis jinja2\n"
    )


def test_a_base_formatter_gives_the_rest() -> None:
    formatter: chatformats.ChatFormatter = Turns()
    assert (formatter.variables, formatter.content_parts) == (("name",), ())
    assert Turns.variables == ("name",)
    rendered = formatter.render_segments([USER, ASSISTANT], add_generation_prompt=True)
    assert rendered.text == formatter.render([USER, ASSISTANT], add_generation_prompt=True)
    assert [segment.text for segment in rendered.segments if segment.origin == "content"] == [
        "user",
        "What's up?",
        "assistant",
        "Not much.",
    ]
    assert formatter.render([USER, ASSISTANT], continue_final_message=True).endswith("assistant\nNot much.")
    with pytest.raises(TypeError, match="unexpected keyword argument 'nam'"):
        Turns().render([USER], nam="Ada")
    with pytest.raises(TypeError, match="abstract"):
        type("Empty", (BaseFormatter,), {})()


def test_a_registered_format_is_found() -> None:
    chatformats.register("turns", Turns)
    assert isinstance(chatformats.get("turns"), Turns)
    assert "turns" in chatformats.names()
    assert chatformats.names() == tuple(sorted(chatformats.names()))
    with pytest.raises(ChatFormatError, match="no format is named 'turn'; there are .*, turns$"):
        chatformats.get("turn")


@pytest.mark.parametrize("name", ["turns", "hebatron"])
def test_a_name_is_registered_once(name: str) -> None:
    chatformats.register("turns", Turns)
    with pytest.raises(ChatFormatError, match=f"^a format is already named '{name}'$"):
        chatformats.register(name, Turns)


@pytest.mark.parametrize(
    ("name", "factory"), [(5, Turns), ("turns", Turns()), ("turns", None), (["x"], Turns)]
)
def test_what_is_no_name_or_factory_is_refused(name: Any, factory: Any) -> None:
    with pytest.raises(ChatFormatError, match="^expected a name and what makes a formatter"):
        chatformats.register(name, factory)
    assert registry._REGISTERED == {}


def test_of_threads_one_registers_a_name() -> None:
    winners = []

    def register() -> None:
        barrier.wait()
        try:
            chatformats.register("turns", Turns)
        except ChatFormatError:
            return
        winners.append(threading.get_ident())

    barrier = threading.Barrier(8)
    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
