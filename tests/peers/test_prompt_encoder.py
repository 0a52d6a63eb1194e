# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Token ids from a cache, held to those of the whole text under real tokenizer pipelines."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chatformats
import chatformats.encoder
from chatformats import PromptEncoder
from chatformats.spans import Rendered, Segment

from .. import oracle
from ..benchmarks.workload import TOOLS, conversation
from ..strategies import FRAGMENTS, Conversation, malformed, well_formed

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import (  # behind the line that skips
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CONTROL = sorted({token for name in oracle.NAMES for token in chatformats.get(name).control_tokens})
# What tokenizers add beside the formats' own; Nemotron's and GLM-4's scaffolds spell some of them out.
OTHERS = ["<TOOLCALL>", "</TOOLCALL>", "<AVAILABLE_TOOLS>", "<|begin_of_text|>", "[MASK]"]
CORPUS = [
    *(fragment for fragment in FRAGMENTS if fragment.isprintable() and not fragment.startswith("<")),
    *(message["content"] for message in conversation(3, tools=False) if isinstance(message["content"], str)),
    json.dumps(TOOLS, ensure_ascii=False),
    "מזג האוויר בתל אביב נעים היום, ומחר יהיה חם יותר. 東京の天気は晴れです。 Погода в Москве: +20 °C.",
]
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = pre_tokenizers.ByteLevel.alphabet()


def trained(tokenizer: Any, trainer: Any, *, special: bool = True) -> Any:
    """Return a tokenizer that has seen the corpus, with the control tokens added."""
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    tokenizer.add_special_tokens(CONTROL)
    add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
    add([AddedToken(token, normalized=False) for token in OTHERS])
    return tokenizer


def byte_level(pre_tokenizer: Any, normalizer: Any = None, **model: Any) -> Any:
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(
        tokenizer, trainers.BpeTrainer(vocab_size=900, initial_alphabet=BYTES, show_progress=False)
    )


def split(pattern: str) -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def gpt_2() -> Any:
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def gpt_2_with_prefix_space() -> Any:
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))


def llama_3() -> Any:
    tokenizer = byte_level(split(LLAMA_3), ignore_merges=True)
    bos = "<|begin_of_text|>"
    template = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def qwen() -> Any:
    return byte_level(split(LLAMA_3), normalizers.NFC())


def tekken_style() -> Any:
    return byte_level(split(TEKKEN), ignore_merges=True)


def tekken() -> Any:
    """Return Mistral's own, with the first 20,000 of its ranks and all of its special tokens."""
    mistral_common = pytest.importorskip("mistral_common")
    import base64

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    if not path.exists():
        pytest.skip("mistral-common has no Tekken")
    data = json.loads(path.read_bytes())
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in data["vocab"][:20_000]}
    # The alphabet of byte-level models: the printable bytes stand for themselves.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}

    def spelled(piece: bytes) -> str:
        return "".join([letters[byte] for byte in piece])

    merges = []
    for token, rank in ranks.items():
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            found = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(itertools.pairwise(parts))]
            best, at = min(found)
            if best >= rank:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            merges.append((spelled(parts[0]), spelled(parts[1])))
    vocab = {spelled(token): rank for token, rank in ranks.items()}
    tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=True))
    tokenizer.pre_tokenizer = split(data["config"]["pattern"])
    tokenizer.decoder = decoders.ByteLevel()
    special = data.get("special_tokens") or []
    tokenizer.add_special_tokens([AddedToken(row["token_str"], normalized=False) for row in special])
    tokenizer.add_special_tokens(CONTROL)
    return tokenizer


def llama_2() -> Any:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>"], show_progress=False)
    return trained(tokenizer, trainer)


def metaspace(scheme: str, model: str = "bpe") -> Any:
    if model == "bpe":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        trainer: Any = trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], show_progress=False)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
        trainer = trainers.UnigramTrainer(
            vocab_size=500, unk_token="<unk>", special_tokens=["<unk>", *CONTROL], show_progress=False
        )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return trained(tokenizer, trainer, special=False)


def word_piece() -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return trained(
        tokenizer, trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]"], show_progress=False)
    )


def with_tokens(*tokens: Any) -> Any:
    tokenizer = gpt_2()
    tokenizer.add_tokens(list(tokens))
    return tokenizer


def spaces_added() -> Any:
    return with_tokens(*[AddedToken(" " * count, normalized=False) for count in range(2, 6)], "\n\n", "\t")


def touching() -> Any:
    return with_tokens(AddedToken("<|pad|>", lstrip=True, rstrip=True), AddedToken("xyzzy", single_word=True))


def truncating() -> Any:
    tokenizer = gpt_2()
    tokenizer.enable_truncation(20)
    return tokenizer


def padding() -> Any:
    tokenizer = gpt_2()
    tokenizer.enable_padding(length=64)
    return tokenizer


def stripping() -> Any:
    tokenizer = gpt_2()
    stripped = [AddedToken(token, lstrip=True, normalized=False, special=True) for token in CONTROL]
    tokenizer.add_special_tokens(stripped)
    return tokenizer


def overlapping() -> Any:
    return with_tokens(*[AddedToken(token[-1] + "\n", normalized=False) for token in CONTROL])


# Whether prompts are cut.
PIPELINES: dict[str, tuple[Callable[[], Any], bool]] = {
    "gpt_2": (gpt_2, True),
    "gpt_2_with_prefix_space": (gpt_2_with_prefix_space, True),
    "llama_3": (llama_3, True),
    "qwen": (qwen, True),
    "tekken_style": (tekken_style, True),
    "tekken": (tekken, True),
    "llama_2": (llama_2, True),
    "metaspace": (lambda: metaspace("always"), True),
    "metaspace_never": (lambda: metaspace("never"), True),
    "metaspace_first": (lambda: metaspace("first"), False),
    "unigram": (lambda: metaspace("always", "unigram"), True),
    "word_piece": (word_piece, True),
    "spaces_added": (spaces_added, True),
    "touching": (touching, True),
    "truncating": (truncating, False),
    "padding": (padding, False),
    "stripping": (stripping, False),
    "overlapping": (overlapping, False),
}


@functools.cache
def tokenizer_of(pipeline: str) -> Any:
    return PIPELINES[pipeline][0]()


@functools.cache
def plain_of(pipeline: str) -> Any:
    state = json.loads(tokenizer_of(pipeline).to_str())
    return Tokenizer.from_str(json.dumps({**state, "added_tokens": [], "truncation": None, "padding": None}))


def whole(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def control_of(tokenizer: Any) -> dict[int, str]:
    """Return the added tokens that are more than white space, and not what stands for the unknown."""
    added = {number: token.content for number, token in tokenizer.get_added_tokens_decoder().items()}
    return {
        number: token
        for number, token in added.items()
        if len(token) > 1 and token.strip() and token not in ("<unk>", "[UNK]")
    }


def assert_ids(encoder: PromptEncoder, pipeline: str, rendered: Rendered) -> bool:
    """Assert that a prompt's ids are right, and return whether something is injected."""
    tokenizer = tokenizer_of(pipeline)
    ids = encoder.encode(rendered)
    control = control_of(tokenizer)
    added = [*control.values(), "<unk>", "[UNK]"]
    injected = any(injections for _, _, injections in rendered._runs(added))
    if not injected:
        assert ids == whole(tokenizer, rendered.text)
        return False
    # Under truncation and padding, and with tokens of two pieces' characters, a part has no ids of its own.
    if pipeline not in ("truncating", "padding", "overlapping"):
        written = [
            token
            for segment in rendered.segments
            if segment.origin != "content"
            for token in [control[number] for number in whole(tokenizer, segment.text) if number in control]
        ]
        assert [control[number] for number in ids if number in control] == written
    return True


def segments(name: str, one: Conversation) -> Rendered | None:
    render: Any = chatformats.get(name).render_segments
    try:
        rendered: Rendered = render(one.messages, one.tools, **one.variables)
        rendered.text.encode()
    except ValueError:  # refused, or no text that could be sent to a tokenizer
        return None
    return rendered


@pytest.mark.parametrize("name", oracle.NAMES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_ids_of_generated_conversations(
    pipeline: str, name: str, conversations: int, derandomize: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Texts are short here: they are cut into lines as long ones are.
    monkeypatch.setattr(chatformats.encoder, "_LONG", 0)
    encoder = PromptEncoder(chatformats.get(name), tokenizer_of(pipeline))
    seen = []

    @settings(
        max_examples=conversations // 20,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(well_formed(name) | malformed(name))
    def examine(one: Conversation) -> None:
        rendered = segments(name, one)
        if rendered is not None:
            seen.append(assert_ids(encoder, pipeline, rendered))

    examine()
    assert seen.count(False) >= conversations // 1_000
    assert seen.count(True) >= conversations // 1_000


@pytest.mark.parametrize("name", oracle.NAMES)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_ids_of_a_growing_conversation(pipeline: str, name: str) -> None:
    formatter = chatformats.get(name)
    encoder = PromptEncoder(formatter, tokenizer_of(pipeline))
    messages = conversation(12, tools=True)
    chats = [formatter.conversation(messages[:1], tools, segments=True) for tools in (None, TOOLS)]
    for end in range(2, len(messages) + 1):
        for chat in chats:
            chat.append(messages[end - 1])
        rendered = chats[end % 2].render_segments(add_generation_prompt=end % 3 == 0)
        injected = assert_ids(encoder, pipeline, rendered)
        assert not injected or pipeline == "overlapping"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_what_is_unsafe_is_noticed(pipeline: str) -> None:
    for name in oracle.NAMES:
        formatter = chatformats.get(name)
        if formatter.control_tokens:
            assert PromptEncoder(formatter, tokenizer_of(pipeline)).cuts == PIPELINES[pipeline][1]


@pytest.mark.parametrize("pipeline", ["gpt_2", "llama_3", "tekken_style", "tekken"])
def test_lines_are_cut_where_the_pre_tokenizer_does(
    pipeline: str, conversations: int, derandomize: bool
) -> None:
    tokenizer = tokenizer_of(pipeline)
    assert PromptEncoder(chatformats.get("glm4-tools"), tokenizer)._cuts_lines
    odd = (
        "\n",
        "\n",
        "\r\n",
        "\r",
        "/",
        " ",
        "  ",
        "\t",
        "a",
        "Ab",
        "'s",
        "12",
        "é",
        "\u0301",
        "\x1c",
        "\x85",
    )
    pieces = st.sampled_from(
        (*odd, "\u2028", "\u3000", "\u200b", "問", "[", "::", "<|im_end|>", "<|im", "मि")
    )

    @settings(max_examples=conversations, derandomize=derandomize, deadline=None, database=None)
    @given(st.lists(pieces, max_size=30).map("".join))
    def examine(text: str) -> None:
        lines = chatformats.encoder._LINES.split(text)
        assert "".join(lines) == text
        assert [number for line in lines for number in whole(tokenizer, line)] == whole(tokenizer, text)

    examine()


@pytest.mark.parametrize("pipeline", ["qwen", "llama_2", "gpt_2_with_prefix_space", "touching", "unigram"])
def test_lines_are_left_together_elsewhere(pipeline: str) -> None:
    assert not PromptEncoder(chatformats.get("glm4-tools"), tokenizer_of(pipeline))._cuts_lines


@pytest.mark.parametrize("name", oracle.NAMES)
def test_an_earlier_turn_is_encoded_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = chatformats.get(name)
    encoder = PromptEncoder(formatter, tokenizer_of("llama_3"))
    encoded: list[str] = []
    encode = encoder._encode

    def noted(text: str) -> list[int]:
        encoded.append(text)
        return encode(text)

    monkeypatch.setattr(encoder, "_encode", noted)
    messages = conversation(20, tools=False)
    encoder.encode(formatter.render_segments(messages, TOOLS))
    encoded.clear()
    longer = [*messages, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Thanks!"}]
    encoder.encode(formatter.render_segments(longer, TOOLS))
    # The new messages, and what was written behind the last one or is not behind it any more.
    assert sum(map(len, encoded)) < 2 * len("user\nThanks!assistant\nDone.") + 600
    encoded.clear()
    encoder.encode(formatter.render_segments(longer, TOOLS))
    assert encoded == []


@pytest.mark.parametrize("pipeline", ["spaces_added", "tekken", "tekken_style"])
def test_an_earlier_prompt_ends_at_a_line_only_where_another_begins(pipeline: str) -> None:
    # The same up to a line break: behind it a line begins in one, and the break goes on in the others.
    formatter = chatformats.get("glm4-tools")
    tokenizer = tokenizer_of(pipeline)
    for last in ("b", "\nb", " b", "/b", "\n", ""):
        encoder = PromptEncoder(formatter, tokenizer)
        for end in ("b", last, "c"):
            texts = [*["a\n"] * 8, *[end] * bool(end)]
            parts = [Segment(text, "content", index, "user", False) for index, text in enumerate(texts)]
            rendered = Rendered(formatter, tuple(parts), [])
            assert encoder.encode(rendered) == whole(tokenizer, rendered.text)


PIECES = st.sampled_from(
    [
        *(
            ("content", text)
            for text in ("a", "a\n", "\n", "\n\n", " a", " ", "/", "'s", "1", "é\r\n", "x" * 9)
        ),
        *(("scaffold", text) for text in ("user\n", "\n", "<TOOLCALL>[", "\n\n")),
        *(("control", token) for token in ("<|im_start|>", "<|im_end|>")),
    ]
)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_prompts_that_have_much_in_common(pipeline: str, conversations: int, derandomize: bool) -> None:
    formatter = chatformats.get("hebatron")
    tokenizer = tokenizer_of(pipeline)

    @settings(
        max_examples=conversations // 10,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(PIECES, min_size=4, max_size=20),
        st.lists(st.tuples(st.integers(0, 20), st.lists(PIECES, max_size=6)), min_size=2, max_size=6),
    )
    def examine(first: list[Any], changes: list[tuple[int, list[Any]]]) -> None:
        encoder = PromptEncoder(formatter, tokenizer)
        pieces = first
        for kept, new in changes:
            pieces = pieces[:kept] + new
            parts = [Segment(text, origin, index, None, False) for index, (origin, text) in enumerate(pieces)]
            rendered = Rendered(formatter, tuple(parts), [])
            assert encoder.encode(rendered) == whole(tokenizer, rendered.text)

    examine()


def test_prompts_of_many_conversations_are_told_apart() -> None:
    tokenizer = tokenizer_of("llama_3")
    for name in oracle.NAMES:
        formatter = chatformats.get(name)
        encoder = PromptEncoder(formatter, tokenizer)
        chats = [formatter.conversation(conversation(2, tools=False), segments=True) for _ in range(5)]
        for step in range(6):
            for number, chat in enumerate(chats):
                answer = {"role": "assistant", "content": f"{number % 2} {step // 3}"}
                chat.extend([answer, {"role": "user", "content": f"{number % 3} {step}"}])
                rendered = chat.render_segments(add_generation_prompt=bool(number % 2))
                assert encoder.encode(rendered) == whole(tokenizer, rendered.text)


def test_cache_is_bounded() -> None:
    formatter = chatformats.get("ministral-3")
    encoder = PromptEncoder(formatter, tokenizer_of("gpt_2"), cache_size=1_000)
    for number in range(200):
        text = f"{number} " * (number % 50 + 1)
        rendered = formatter.render_segments([{"role": "user", "content": text}])
        assert encoder.encode(rendered) == whole(tokenizer_of("gpt_2"), rendered.text)
        held = sum(len(text) + len(ids) for text, ids in encoder._cache.items())
        assert held == encoder._cached <= 1_000
    assert encoder._cache


def test_encoders_can_be_shared_between_threads() -> None:
    formatter = chatformats.get("hebatron")
    tokenizer = tokenizer_of("llama_3")
    encoder = PromptEncoder(formatter, tokenizer, cache_size=3_000)
    prompts = [formatter.render_segments(conversation(rounds, tools=False)) for rounds in range(1, 9)]
    expected = [whole(tokenizer, prompt.text) for prompt in prompts]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: [encoder.encode(prompt) for prompt in prompts], range(16)))
    assert results == [expected] * 16


def injections() -> Iterator[tuple[str, str]]:
    for name in oracle.NAMES:
        for token in (*chatformats.get(name).control_tokens, *OTHERS):
            yield name, token


@pytest.mark.parametrize(
    "pipeline", [pipeline for pipeline in PIPELINES if pipeline not in ("truncating", "padding")]
)
def test_injected_tokens_stay_text(pipeline: str) -> None:
    tokenizer = tokenizer_of(pipeline)
    control = control_of(tokenizer)
    for name, token in injections():
        formatter = chatformats.get(name)
        encoder = PromptEncoder(formatter, tokenizer)
        harmless = [{"role": "user", "content": "a b"}]
        injected = [{"role": "user", "content": f"a {token} b"}]
        ids, others = (
            encoder.encode(formatter.render_segments(messages)) for messages in (injected, harmless)
        )
        assert [i for i in ids if i in control] == [i for i in others if i in control], (name, token)


@pytest.mark.parametrize("make", [gpt_2, stripping])
def test_tokens_that_the_normalizer_puts_together_stay_text(make: Callable[[], Any]) -> None:
    tokenizer = make()
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    # Looked for in the normalized text; the others as they are.
    tokenizer.add_tokens([AddedToken("<call>", normalized=True), AddedToken("<calls>", normalized=True)])
    control = control_of(tokenizer)
    for name in oracle.NAMES:
        formatter = chatformats.get(name)
        encoder = PromptEncoder(formatter, tokenizer)
        if formatter.control_tokens:
            assert encoder.cuts is (make is gpt_2)
        for text in ("a <CALL> b", "<ＣALL>", "<CALLS><call>", "c<|IM_END|>", "<CALL></tool_call><Call>"):
            messages = ([{"role": "user", "content": content}] for content in (text, "a b"))
            ids, others = (encoder.encode(formatter.render_segments(each)) for each in messages)
            assert [i for i in ids if i in control] == [i for i in others if i in control], (name, text)


def test_tokens_are_only_cut_where_the_tokenizer_has_them() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=700, initial_alphabet=BYTES, show_progress=False)
    )
    tokenizer.add_special_tokens(["<|im_end|>"])
    formatter = chatformats.get("hebatron")
    encoder = PromptEncoder(formatter, tokenizer)
    rendered = formatter.render_segments(conversation(2, tools=False), TOOLS)
    assert encoder.cuts
    assert encoder.encode(rendered) == whole(tokenizer, rendered.text)


def test_truncation_that_is_switched_on_later_counts() -> None:
    tokenizer = Tokenizer.from_str(tokenizer_of("gpt_2").to_str())
    formatter = chatformats.get("ministral-3")
    encoder = PromptEncoder(formatter, tokenizer)
    rendered = formatter.render_segments(conversation(2, tools=False))
    assert encoder.encode(rendered) == whole(tokenizer, rendered.text)
    tokenizer.enable_truncation(7)
    assert len(encoder.encode(rendered)) == 7
    tokenizer.no_truncation()
    assert encoder.encode(rendered) == whole(tokenizer, rendered.text)
    tokenizer.encode_special_tokens = True
    assert encoder.encode(rendered) == whole(tokenizer, rendered.text)


def test_variables_that_spell_tokens_are_the_formats() -> None:
    tokenizer = tokenizer_of("gpt_2")
    formatter = chatformats.get("ministral-3")
    encoder = PromptEncoder(formatter, tokenizer)
    for bos in ("", "<s>", "<s><s>", "x<s>", "[MASK]"):
        rendered = formatter.render_segments([{"role": "user", "content": "Hi"}], bos_token=bos)
        assert encoder.encode(rendered) == whole(tokenizer, rendered.text)


def test_fast_tokenizers_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer_of("llama_3"))
    formatter = chatformats.get("hebatron")
    rendered = formatter.render_segments(conversation(3, tools=False), TOOLS, add_generation_prompt=True)
    encoder = PromptEncoder(formatter, fast)
    assert encoder.cuts
    assert encoder.encode(rendered) == fast.encode(rendered.text, add_special_tokens=False)


def test_other_tokenizers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^expected a tokenizers\.Tokenizer or a fast .*, got object$"):
        PromptEncoder(chatformats.get("hebatron"), object())
