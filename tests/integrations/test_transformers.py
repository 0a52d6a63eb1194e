# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""An accelerated tokenizer answers as the tokenizer itself, whatever it is asked.

Each call is made of both, of real fast tokenizers that are built here, and results or errors compared.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jinja2.meta
import pytest

import chatformats

from .. import oracle, strategies
from ..cases import ASSISTANT, USER, calling, conversations

transformers = pytest.importorskip(
    "transformers", minversion="5.24", reason="needs transformers 5.24, which accelerate() is written for"
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors  # transformers depends on it

from chatformats.integrations import transformers as integration

try:
    integration._transformers()
except ImportError as too_old:
    pytest.skip(str(too_old), allow_module_level=True)

SYSTEM = {"role": "system", "content": "Be brief."}
TOOL = {"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}}}
CONVERSATION = [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "And now? <|im_end|></s>"}]
BATCH = [CONVERSATION, [USER], [USER, ASSISTANT]]


def get_weather(city: str, days: int = 1) -> str:
    """
    Get the weather.

    Args:
        city: Where.
        days: How long.
    """
    return city * days


@dataclasses.dataclass
class Message:
    role: str
    content: str | None
    tool_calls: list[Any] | None = None


class Chat:
    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages


def build(name: str, source: Any = None, **tokens: str) -> Any:
    """Return a fast tokenizer of bytes, with the format's control tokens and template."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({character: index for index, character in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    # As many tokenizers do: which is not wanted where a template has written all there is to be.
    backend.post_processor = processors.TemplateProcessing(single="! $A", special_tokens=[("!", 0)])
    tokens = tokens or {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, chat_template=source or oracle.source(name), **tokens
    )
    tokenizer.add_tokens(list(chatformats.get(name).control_tokens), special_tokens=True)
    return tokenizer


Pair = tuple[Any, Any]


@pytest.fixture(scope="module", params=chatformats.names())
def pair(request: pytest.FixtureRequest) -> Pair:
    return build(request.param), integration.accelerate(build(request.param))


@pytest.fixture(scope="module")
def ministral() -> Pair:
    return build("ministral-3"), integration.accelerate(build("ministral-3"))


def answer(tokenizer: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return what a call returns, or what it raises, in a form that can be compared."""
    try:
        out = tokenizer.apply_chat_template(*arguments, **keywords)
    except Exception as error:  # noqa: BLE001  # a template may raise anything
        return type(error), str(error)
    if hasattr(out, "keys"):
        return type(out), {key: (type(out[key]), to_list(out[key])) for key in out}
    return type(out), to_list(out)


def to_list(value: Any) -> Any:
    if isinstance(value, list):
        return [to_list(item) for item in value]
    return to_list(value.tolist()) if hasattr(value, "tolist") else value


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call was rendered natively."""
    taken: list[bool] = []
    prompts = integration._prompts

    def noted(*arguments: Any, **keywords: Any) -> Any:
        result = prompts(*arguments, **keywords)
        taken.append(result is not None)
        return result

    monkeypatch.setattr(integration, "_prompts", noted)
    return taken


ARGUMENTS: dict[str, dict[str, Any]] = {
    "text": {"tokenize": False},
    "ids": {"return_dict": False},
    "dict": {},
    "return_dict_without_tokenize": {"tokenize": False, "return_dict": True},
    "generation_prompt": {"add_generation_prompt": True, "tokenize": False},
    "truthy_generation_prompt": {"add_generation_prompt": 1, "tokenize": False},
    "numpy": {"return_tensors": "np", "padding": True},
    "truncation": {"truncation": True, "max_length": 7},
    "padding_to_length": {"padding": "max_length", "max_length": 900},
    "tensors_that_do_not_fit": {"return_tensors": "np"},
    "tokenizer_kwargs": {"tokenizer_kwargs": {"return_offsets_mapping": True, "return_token_type_ids": True}},
    "tokenizer_kwargs_twice": {"tokenizer_kwargs": {"padding": True}},
    "overflow": {
        "truncation": True,
        "max_length": 9,
        "tokenizer_kwargs": {"return_overflowing_tokens": True, "stride": 2},
    },
    "tools": {"tools": [TOOL], "tokenize": False},
    "no_tools": {"tools": [], "tokenize": False},
    "functions": {"tools": [get_weather, TOOL], "tokenize": False},
    "method": {"tools": [Chat([]).__init__], "tokenize": False},
    "tools_of_odd_values": {
        "tools": [{"name": "f", "x": Message("é", None), "y": object, "z": float("nan"), "n": None}],
        "tokenize": False,
    },
    "builtin": {"tools": [len], "tokenize": False},
    "tool_of_another_kind": {"tools": ["f"], "tokenize": False},
    "tools_as_mapping": {"tools": {"f": 1}, "tokenize": False},
    "documents": {"documents": [{"title": "T", "text": "x"}], "tokenize": False},
    "documents_of_another_kind": {"documents": ["x"], "tokenize": False},
    "unknown_variable": {"no_such_variable": 1, "tokenize": False},
    "enable_thinking": {"enable_thinking": False, "add_generation_prompt": True, "tokenize": False},
    "truncate_history_thinking": {"truncate_history_thinking": False, "tokenize": False},
    "tokens_given": {"bos_token": "<b>", "eos_token": None, "tokenize": False},
    "a_name_of_the_template": {"namespace": 3, "tokenize": False},
    "a_name_that_it_sets": {"system_message": "x", "loop_messages": [], "ns": 3, "tokenize": False},
    "a_name_of_transformers": {"conversations": 3, "tokenize": False},
    "continue": {"continue_final_message": True, "tokenize": False},
    "continue_content": {"continue_final_message": "content", "tokenize": False},
    "continue_reasoning": {"continue_final_message": "reasoning_content", "tokenize": False},
    "continue_no_field": {"continue_final_message": "no_such_field", "tokenize": False},
    "continue_and_prompt": {"continue_final_message": True, "add_generation_prompt": True},
    "continue_and_mask": {"continue_final_message": True, "return_assistant_tokens_mask": True},
    "mask_without_dict": {"return_assistant_tokens_mask": True, "return_dict": False},
    "mask_without_tokenize": {"return_assistant_tokens_mask": True, "tokenize": False},
    "sanitize": {"sanitize_control_tokens": True},
    "sanitize_without_tokenize": {"sanitize_control_tokens": True, "tokenize": False},
    "another_template": {"chat_template": "{{ messages[0].content }}", "tokenize": False},
    "template_of_another_format": {"chat_template": oracle.source("hebatron"), "tokenize": False},
    "template_with_other_layout": {"chat_template": oracle.source("glm4-tools") + "\n", "tokenize": False},
    "a_template_of_another_kind": {"chat_template": 5, "tokenize": False},
    "a_template_that_is_none": {"chat_template": "{% if %}", "tokenize": False},
}
CONVERSATIONS: dict[str, Any] = {
    "one": CONVERSATION,
    "batch": BATCH,
    "tuple": tuple(BATCH[2]),
    "batch_of_tuples": tuple(map(tuple, BATCH)),
    "ends_in_answer": [USER, {"role": "assistant", "content": " Hm. \n", "reasoning": "x"}],
    "empty_answer": [USER, {"role": "assistant", "content": ""}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "Hi "}]}],
    "empty": [],
    "batch_of_empty": [[], [USER]],
    "nulls": [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "tool_calls": None, "thinking": "Hm."},
    ],
    "calls": [USER, {**calling(name="f<", arguments={"a": None}), "content": None}],
    "calls_as_json": [USER, calling(name="f", arguments='{"a": 1}')],
    "objects": [Message("user", "Hi"), Message("assistant", "Hello", None)],
    "chat": Chat([USER]),
    "batch_of_chats": [Chat([USER]), Chat([USER, ASSISTANT])],
    "image_object": [
        {"role": "user", "content": [{"type": "image", "image": object}, {"type": "text", "text": "x"}]}
    ],
    "strings": ["Hi"],
    "no_mapping": [USER, 5],
    "mapping": USER,
    "none": None,
    "refused": [{"role": "moderator", "content": "x"}, {"role": 5, "content": [None]}],
    "subclassed": [{"role": type("Role", (str,), {})("user"), "content": type("Text", (str,), {})("Hi")}],
}
# transformers has no from_json, which JoyAI's template needs for arguments in a string: what is an error there
# is rendered here.
WITHOUT_FROM_JSON = "No filter named 'from_json'"


@pytest.mark.parametrize("keywords", ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_same_result_or_error(pair: Pair, keywords: dict[str, Any]) -> None:
    plain, accelerated = pair
    for title, conversation in CONVERSATIONS.items():
        before = repr((keywords, conversation))
        expected = answer(plain, conversation, **keywords)
        if WITHOUT_FROM_JSON not in str(expected):
            assert answer(accelerated, conversation, **keywords) == expected, title
        assert repr((keywords, conversation)) == before


@pytest.mark.parametrize("name", chatformats.names())
def test_the_same_prompt_of_generated_conversations(name: str, derandomize: bool, conversations: int) -> None:
    plain, accelerated = build(name), integration.accelerate(build(name))

    @hypothesis.settings(
        max_examples=conversations // 4, derandomize=derandomize, database=None, deadline=None
    )
    @hypothesis.given(
        strategies.well_formed(name) | strategies.malformed(name), hypothesis.strategies.booleans()
    )
    def check(conversation: strategies.Conversation, continued: bool) -> None:
        case = {"tools": conversation.tools, "tokenize": False, **conversation.variables}
        if continued:
            case["continue_final_message"] = True
        expected = answer(plain, copy.deepcopy(conversation.messages), **copy.deepcopy(case))
        if WITHOUT_FROM_JSON not in str(expected):
            assert answer(accelerated, conversation.messages, **case) == expected

    check()


def test_calls_are_rendered_natively_where_they_can_be(pair: Pair, native: list[bool]) -> None:
    accelerated = pair[1]
    nemotron = "SPECIAL_11" in accelerated.chat_template
    for name in ("text", "dict", "numpy", "tools", "unknown_variable", "enable_thinking", "continue"):
        answer(accelerated, [USER, ASSISTANT], **ARGUMENTS[name])
        assert native.pop() is not (nemotron and name == "continue"), name
    # Ministral's roles have to alternate, GLM-4 wants content: otherwise all of these are rendered.
    for name in ("batch", "tuple", "parts", "calls", "objects", "batch_of_chats"):
        expected = answer(pair[0], CONVERSATIONS[name], tokenize=False)
        answer(accelerated, CONVERSATIONS[name], tokenize=False)
        assert native.pop() is (expected[0] in (str, list)), name
    assert native == []


@pytest.mark.parametrize("name", ["sanitize", "documents", "continue_reasoning", "mask_without_dict"])
def test_what_is_not_supported_is_not_tried(ministral: Pair, native: list[bool], name: str) -> None:
    answer(ministral[1], [USER], **ARGUMENTS[name])
    assert native == []


@pytest.mark.parametrize("source", [oracle.source(name) for name in oracle.NAMES], ids=oracle.NAMES)
def test_a_keyword_that_may_change_the_template_is_known(source: str) -> None:
    free = jinja2.meta.find_undeclared_variables(
        jinja2.Environment(extensions=["jinja2.ext.loopcontrols"]).parse(source)
    )
    assert "messages" in free
    # GLM-4's sets this one, and never reads it.
    assert {name for name in free if not integration._may_change(source, name)} <= {"system_message"}
    assert not integration._may_change(source, "pad_token")


@pytest.mark.parametrize("name", ["another_template", "a_name_of_the_template", "a_name_of_transformers"])
def test_what_is_not_recognised_is_left(ministral: Pair, native: list[bool], name: str) -> None:
    answer(ministral[1], [USER], **ARGUMENTS[name])
    assert native == [False]


def test_what_can_be_gone_through_once_is_left(ministral: Pair) -> None:
    def generator(items: list[Any]) -> Iterator[Any]:
        yield from items

    for make in (
        lambda: ((generator([USER]),), {}),
        lambda: (([[USER], generator([USER])],), {}),
        lambda: (([USER],), {"tools": generator([TOOL])}),
    ):
        results = [
            answer(tokenizer, *arguments, **keywords)
            for tokenizer in ministral
            for arguments, keywords in [make()]
        ]
        assert results[0] == results[1]
        assert results[0][0] is transformers.BatchEncoding


@pytest.mark.parametrize("tokens", [{"pad_token": "<pad>"}, {"bos_token": "<a>"}, {"eos_token": "<b>"}])
@pytest.mark.parametrize("name", ["ministral-3", "joyai-llm-flash"])
def test_tokens_are_those_of_the_tokenizer(name: str, tokens: dict[str, str]) -> None:
    plain, accelerated = build(name, **tokens), integration.accelerate(build(name, **tokens))
    assert answer(accelerated, CONVERSATION) == answer(plain, CONVERSATION)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"padding": True, "return_tensors": "np"},
        {"padding": "max_length", "max_length": 400, "truncation": True},
        {"truncation": True, "max_length": 60},
    ],
)
def test_masks_mark_what_the_model_writes(pair: Pair, keywords: dict[str, Any], side: str) -> None:
    plain, accelerated = copy.deepcopy(pair)
    for tokenizer in (plain, accelerated):
        tokenizer.padding_side = tokenizer.truncation_side = side
    formatter = integration._formatter(plain.chat_template)
    conversation = [USER, {"role": "assistant", "content": "Zürich 🙂"}, {"role": "user", "content": "And?"}]
    options = {"bos_token": "<s>"} if "bos_token" in formatter.variables else {}
    rendered = formatter.render_segments(conversation, **options)
    for given in (conversation, [conversation, conversation[:1]]):
        out = accelerated.apply_chat_template(given, return_assistant_tokens_mask=True, **keywords)
        zeros = plain.apply_chat_template(given, return_assistant_tokens_mask=True, **keywords)
        masks = to_list(out.pop("assistant_masks"))
        blank = to_list(zeros.pop("assistant_masks"))
        assert {key: to_list(out[key]) for key in out} == {key: to_list(zeros[key]) for key in zeros}
        assert [type(row) for row in masks] == [type(row) for row in to_list(out["input_ids"])]
        ids, masks, blank = (
            value if isinstance(value[0], list) else [value]
            for value in (to_list(out["input_ids"]), masks, blank)
        )
        assert [[0] * len(mask) for mask in masks] == blank
        # The same as of a template that marks its answers by itself.
        texts = [text for text in (rendered.text[start:end] for start, end in rendered.spans(generated=True))]
        written = accelerated.decode([token for token, bit in zip(ids[0], masks[0], strict=True) if bit])
        if "truncation" in keywords and side == "right":
            assert "".join(texts).startswith(written)
        elif "truncation" in keywords:
            assert "".join(texts).endswith(written)
        else:
            assert written == "".join(texts)


def test_masks_are_those_of_a_template_that_marks_its_answers() -> None:
    source = oracle.source("glm4-tools")
    marked = source.replace(
        "答：' + message['content'] -}}",
        "答：' -}}{%- generation -%}{{- message['content'] -}}{%- endgeneration -%}",
    )
    assert marked != source
    accelerated = integration.accelerate(build("glm4-tools"))
    expected = answer(build("glm4-tools", marked), BATCH, return_assistant_tokens_mask=True, padding=True)
    assert answer(accelerated, BATCH, return_assistant_tokens_mask=True, padding=True) == expected


def test_one_of_several_templates(native: list[bool]) -> None:
    templates = {"default": oracle.source("hebatron"), "tool_use": oracle.source("ministral-3"), "other": "x"}
    plain, accelerated = build("hebatron"), integration.accelerate(build("hebatron"))
    for tokenizer in (plain, accelerated):
        tokenizer.chat_template = templates
    for keywords in ({}, {"tools": [TOOL]}, {"chat_template": "tool_use"}, {"chat_template": "other"}):
        assert answer(accelerated, [USER], **keywords) == answer(plain, [USER], **keywords)
    assert native == [True, True, True, False]
    for tokenizer in (plain, accelerated):
        tokenizer.chat_template = {"tool_use": "x"}
    assert answer(accelerated, [USER]) == answer(plain, [USER])


def test_a_message_encoded_after_others(ministral: Pair) -> None:
    ids = [tokenizer.encode_message_with_chat_template(ASSISTANT, [USER]) for tokenizer in ministral]
    assert ids[0] == ids[1]


def test_the_tokenizer_stays_what_it_was(tmp_path: Path, native: list[bool]) -> None:
    plain, accelerated = build("ministral-3"), build("ministral-3")
    assert integration.accelerate(accelerated) is accelerated
    cls = type(accelerated)
    assert integration.accelerate(accelerated) is accelerated
    assert type(accelerated) is cls
    assert isinstance(accelerated, type(plain))
    assert (cls.__name__, cls.__module__, repr(accelerated)) == (
        type(plain).__name__,
        type(plain).__module__,
        repr(plain),
    )
    copies = [copy.copy(accelerated), copy.deepcopy(accelerated), pickle.loads(pickle.dumps(accelerated))]
    for copied in copies:
        assert type(copied) is cls
        assert copied is not accelerated
        assert answer(copied, CONVERSATION) == answer(plain, CONVERSATION)
    assert native == [True, True, True]
    # A copy has a template of its own.
    copies[0].chat_template = "x"
    assert copies[0].apply_chat_template([USER], tokenize=False) == "x"
    assert accelerated.apply_chat_template([USER], tokenize=False) != "x"

    plain.save_pretrained(tmp_path / "plain")
    accelerated.save_pretrained(tmp_path / "accelerated")
    files = sorted(path.name for path in (tmp_path / "plain").iterdir())
    assert sorted(path.name for path in (tmp_path / "accelerated").iterdir()) == files
    for file in files:
        assert (tmp_path / "accelerated" / file).read_bytes() == (tmp_path / "plain" / file).read_bytes()
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "accelerated")
    assert type(loaded) is type(plain)
    assert answer(loaded, CONVERSATION) == answer(plain, CONVERSATION)


def test_subclasses_keep_their_way_to_be_pickled() -> None:
    accelerated = integration.accelerate(build("ministral-3"))

    class Cached(type(accelerated)):  # type: ignore[misc]
        def __reduce__(self) -> Any:
            return list, ()

    accelerated.__class__ = Cached
    assert copy.copy(accelerated) == []
    assert accelerated.apply_chat_template([USER], tokenize=False)


class Own(transformers.PreTrainedTokenizerFast):  # type: ignore[misc]
    def apply_chat_template(self, conversation: Any, **keywords: Any) -> str:
        return "own"


@pytest.mark.parametrize("other", [None, "hebatron", Own(tokenizer_object=Tokenizer(models.BPE()))])
def test_what_is_no_tokenizer_is_refused(other: Any) -> None:
    with pytest.raises(TypeError, match="^expected a tokenizer with transformers' apply_chat_template, got"):
        integration.accelerate(other)


def test_all_conversations_of_the_tests(pair: Pair) -> None:
    plain, accelerated = pair
    name = integration._formatter(plain.chat_template).name
    for title, case in conversations(name).items():
        case = {key: value for key, value in case.items() if key != "continue_final_message"}
        messages = case.pop("messages")
        expected = answer(plain, messages, tokenize=False, **case)
        if WITHOUT_FROM_JSON not in str(expected):
            assert answer(accelerated, messages, tokenize=False, **case) == expected, title


def test_arguments_as_a_json_string_are_rendered_although_transformers_lacks_the_filter() -> None:
    plain, accelerated = build("joyai-llm-flash"), integration.accelerate(build("joyai-llm-flash"))
    given = [USER, calling(name="f", arguments='{"a": 1}')]
    error, sentence = answer(plain, given)
    assert issubclass(error, Exception)
    assert WITHOUT_FROM_JSON in sentence
    prompt = oracle.render("joyai-llm-flash", given, bos_token="<s>")
    assert accelerated.apply_chat_template(given, tokenize=False) == prompt
