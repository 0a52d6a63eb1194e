# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Growing conversations: at every step the text is the reference's, and nothing is written twice."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chatformats
import chatformats.conversation
from chatformats import ChatFormatError
from chatformats.conversation import Conversation
from chatformats.formatter import Sink

from . import oracle
from .strategies import malformed, well_formed

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello", "reasoning_content": "A greeting."}


@dataclass
class Growth:
    """Messages to add, and from what number to choose what to do between."""

    messages: list[Any]
    tools: Any
    variables: dict[str, Any]
    seed: int


@st.composite
def growths(draw: Callable[[Any], Any], name: str) -> Growth:
    one = st.one_of(well_formed(name), well_formed(name), malformed(name))
    parts = draw(st.lists(one, min_size=1, max_size=4))
    messages: list[Any] = []
    for part in parts:
        if isinstance(part.messages, (list, tuple)):
            messages.extend(part.messages)
    variables = {**parts[0].variables}
    variables.pop("add_generation_prompt", None)
    return Growth(messages, parts[0].tools, variables, draw(st.integers(0, 2**32)))


@dataclass
class Branch:
    chat: Conversation
    accepted: list[Any]
    previous: str


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ChatFormatError as error:
        return (type(error), str(error))


def assert_extends(name: str, branch: Branch, batch: list[Any], growth: Growth, ways: Counter[str]) -> None:
    render: Any = chatformats.get(name).render
    wanted = outcome(lambda: render([*branch.accepted, *batch], growth.tools, **growth.variables))
    if len(batch) == 1:
        refused = outcome(lambda: branch.chat.append(batch[0]))
    else:
        refused = outcome(lambda: branch.chat.extend(batch))
    if refused is None:
        branch.accepted = [*branch.accepted, *batch]
        # What cannot be rendered as yet lacks something: no message is at fault.
        assert not batch or isinstance(wanted, str) or wanted[1].startswith("messages: ")
    else:
        assert refused == wanted
        ways["refused"] += 1
    assert len(branch.chat) == len(branch.accepted)


def assert_renders(name: str, branch: Branch, prompt: bool, growth: Growth, ways: Counter[str]) -> None:
    render: Any = chatformats.get(name).render
    options = {"add_generation_prompt": prompt}
    wanted = outcome(lambda: render(branch.accepted, growth.tools, **options, **growth.variables))
    if isinstance(wanted, str):
        assert wanted == oracle.render(name, branch.accepted, growth.tools, **options, **growth.variables)
    if growth.seed % 3 == 0:
        assert outcome(lambda: branch.chat.render(**options)) == wanted
    rendered = None
    if growth.seed % 3 == 1:
        rendered = outcome(lambda: branch.chat.render(add_generation_prompt=not prompt))
    delta = outcome(lambda: branch.chat.delta(**options))
    if not isinstance(wanted, str):
        assert delta == wanted
        return
    if growth.seed % 2 == 0:
        segments: Any = chatformats.get(name).render_segments
        alone = segments(branch.accepted, growth.tools, **options, **growth.variables)
        grown = branch.chat.render_segments(**options)
        assert grown.text == wanted
        assert grown.segments == alone.segments
        assert grown.dropped == alone.dropped
    ways["delta"] += 1
    assert branch.previous[: delta.keep] + delta.text == wanted
    given = [branch.previous, wanted]
    if isinstance(rendered, str):
        # A delta may be applied to what was rendered since the last one, too.
        assert rendered[: delta.keep] + delta.text == wanted
        given.append(rendered)
    assert delta.keep == len(os.path.commonprefix(given))
    branch.previous = wanted


def assert_grows(name: str, growth: Growth, ways: Counter[str]) -> None:
    random = Random(growth.seed)
    make: Any = chatformats.get(name).conversation
    segments = growth.seed % 2 == 0
    branch = Branch(make((), growth.tools, segments=segments, **growth.variables), [], "")
    branches = [branch]
    left = growth.messages
    while left:
        count = random.choice((0, 1, 1, 1, 2, 3))
        batch, left = left[:count], left[count:]
        assert_extends(name, branch, batch, growth, ways)
        if random.random() < 0.2:
            branches.append(Branch(branch.chat.fork(), branch.accepted, branch.previous))
        while random.random() < 0.6:
            assert_renders(name, branch, random.random() < 0.5, growth, ways)
        if random.random() < 0.2:
            branch = random.choice(branches)
    for branch in branches:
        assert_renders(name, branch, random.random() < 0.5, growth, ways)


@pytest.mark.parametrize("name", oracle.NAMES)
def test_growth(name: str, conversations: int, derandomize: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ways: Counter[str] = Counter()

    @settings(
        max_examples=conversations,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(growths(name))
    def examine(growth: Growth) -> None:
        # Texts are short here: pieces that are shorter still are linked as long ones are.
        monkeypatch.setattr(chatformats.conversation, "_CHUNK", growth.seed % 100)
        assert_grows(name, growth, ways)

    examine()
    assert ways["delta"] > 2 * conversations
    assert ways["refused"] >= conversations // 200


def conversation_of(count: int, *, words: int = 40) -> list[dict[str, Any]]:
    """Return user and assistant messages in turn, with tool calls and their results between."""
    call = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "river"}}}
    messages: list[dict[str, Any]] = []
    while len(messages) < count:
        text = f"{len(messages)} " + "word " * words
        messages += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "content": text},
            {"role": "assistant", "content": text},
        ]
    return messages[:count]


def test_a_refused_message_leaves_everything_as_it_was() -> None:
    chat = chatformats.get("ministral-3").conversation([USER], bos_token="")
    before = chat.delta().text
    with pytest.raises(ChatFormatError, match=r"^messages\[2\]\.role: Only user"):
        chat.extend([{"role": "assistant", "content": "Hello"}, {"role": "developer", "content": "x"}])
    with pytest.raises(ChatFormatError, match=r"^messages\[1\]\.role: After the optional system message"):
        chat.append(USER)
    assert len(chat) == 1
    assert chat.render() == before
    assert chat.delta() == (len(before), "")


@pytest.mark.parametrize("name", ["hebatron", "ministral-3", "nemotron-nano-v2"])
def test_an_empty_conversation_waits_for_its_first_message(name: str) -> None:
    chat = chatformats.get(name).conversation()
    for give in (chat.render, chat.delta):
        with pytest.raises(ChatFormatError, match="^messages: expected at least one message$"):
            give()
    chat.append(USER)
    assert chat.render() == chatformats.get(name).render([USER])


def test_nemotron_waits_for_a_message_after_the_system_message() -> None:
    system = {"role": "system", "content": "Be brief. /no_think"}
    chat = chatformats.get("nemotron-nano-v2").conversation([system])
    with pytest.raises(ChatFormatError, match="^messages: expected a message after the system message$"):
        chat.render()
    chat.append(USER)
    assert chat.delta().text == chatformats.get("nemotron-nano-v2").render([system, USER])


def test_nemotron_refuses_what_it_could_not_print_last() -> None:
    # In history the template skips such calls; at the end it asks for their number.
    answer = {"role": "assistant", "content": "Hello", "tool_calls": None}
    chat = chatformats.get("nemotron-nano-v2").conversation([USER])
    for add_generation_prompt in (False, True):
        # Behind a generation prompt the calls are not asked for: the next message is refused all the same.
        chat.delta(add_generation_prompt=add_generation_prompt)
        with pytest.raises(
            ChatFormatError, match=r"^messages\[1\]\.tool_calls: expected a sequence, got None"
        ):
            chat.append(answer)
        nameless = [{"function": {"arguments": {}}}]
        with pytest.raises(ChatFormatError, match=r"^messages\[1\]\.tool_calls\[0\]\.function\.name: "):
            chat.append(answer | {"tool_calls": nameless})
    chat.extend([answer, USER])
    assert chat.render() == oracle.render("nemotron-nano-v2", [USER, answer, USER])


def test_hebatron_opens_no_turn_for_a_result_right_behind_the_head() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "tool", "content": "5"}, USER]
    chat = chatformats.get("hebatron").conversation(messages[:2])
    chat.append(messages[2])
    assert chat.render() == oracle.render("hebatron", messages)


def test_what_is_no_sequence_of_messages_is_refused() -> None:
    chat = chatformats.get("glm4-tools").conversation([USER])
    with pytest.raises(ChatFormatError, match="^messages: expected a sequence of messages, got int$"):
        chat.extend(5)  # type: ignore[arg-type]  # which is what is tested
    assert len(chat) == 1


@pytest.mark.parametrize("name", oracle.NAMES)
def test_forks_go_their_own_ways(name: str) -> None:
    trunk = chatformats.get(name).conversation([USER])
    given = trunk.delta(add_generation_prompt=True).text
    answers = [{**ANSWER, "content": f"Hello {number}"} for number in range(3)]
    branches = [trunk.fork() for _ in answers]
    for branch, answer in zip(branches, answers, strict=True):
        branch.extend([answer, USER])
    for branch, answer in zip(branches, answers, strict=True):
        delta = branch.delta()
        assert given[: delta.keep] + delta.text == oracle.render(name, [USER, answer, USER])
    assert trunk.delta(add_generation_prompt=True) == (len(given), "")


@pytest.mark.parametrize("remake", [copy.copy, copy.deepcopy, lambda chat: pickle.loads(pickle.dumps(chat))])
@pytest.mark.parametrize("name", oracle.NAMES)
def test_conversations_survive_copies_and_pickles(name: str, remake: Callable[[Any], Any]) -> None:
    chat = chatformats.get(name).conversation([USER, ANSWER, USER])
    given = chat.delta().text
    remade = remake(chat)
    remade.append(ANSWER)
    delta = remade.delta()
    assert given[: delta.keep] + delta.text == oracle.render(name, [USER, ANSWER, USER, ANSWER])
    assert chat.render() == given


STEADY: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in oracle.NAMES},
    "hebatron_keeping_thoughts": ("hebatron", {"truncate_history_thinking": False}),
}


@pytest.mark.parametrize(("name", "variables"), STEADY.values(), ids=STEADY)
def test_work_does_not_depend_on_length(
    name: str, variables: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    make: Any = chatformats.get(name).conversation

    def work(count: int) -> list[tuple[int, int]]:
        """Return pieces written and characters given, for each of the next eight messages."""
        messages = conversation_of(count + 8)
        chat = make(messages[:count], **variables)
        chat.delta()
        sinks: list[Sink] = []
        start = Sink.__init__

        def noted(sink: Sink) -> None:
            start(sink)
            sinks.append(sink)

        done = []
        with monkeypatch.context() as patch:
            patch.setattr(Sink, "__init__", noted)
            for message in messages[count:]:
                chat.append(message)
                text = chat.delta(add_generation_prompt=True).text
                done.append((sum(len(sink.pieces) for sink in sinks), len(text)))
                sinks.clear()
        return done

    short, long = work(20), work(2_000)
    for (few, brief), (many, longer) in zip(short, long, strict=True):
        assert many == few
        assert abs(longer - brief) < 20  # the numbers in the texts


@pytest.mark.parametrize(("name", "variables"), STEADY.values(), ids=STEADY)
def test_memory_is_less_than_twice_the_text(name: str, variables: dict[str, Any]) -> None:
    make: Any = chatformats.get(name).conversation
    for words in (0, 5, 100):
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            chat = make(**variables)
            for number in range(250):
                # Made here: what the conversation holds of them counts too.
                for message in conversation_of(4, words=words):
                    chat.append({**message, "content": f"{number} {message['content']}"})
                chat.delta(add_generation_prompt=True)
            held = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        text = chat.render(add_generation_prompt=True)
        assert len(chat) == 1_000
        assert held < 2 * sys.getsizeof(text)


def test_memory_of_one_long_turn() -> None:
    # HebaTron has to write all of it again when the next user message cuts the reasoning out.
    chat = chatformats.get("hebatron").conversation([USER])
    messages = conversation_of(1_000, words=100)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        chat.extend([message for message in messages if message["role"] != "user"])
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 2 * sys.getsizeof(chat.render())


def test_segments_are_kept_where_they_are_asked_for() -> None:
    chat = chatformats.get("glm4-tools").conversation([USER])
    with pytest.raises(ValueError, match="segments=True"):
        chat.render_segments()


def test_formatters_hold_nothing_of_a_conversation() -> None:
    formatter = chatformats.get("hebatron")
    formatter.conversation([USER]).append(ANSWER)
    assert not hasattr(formatter, "__dict__")
