# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A template is recognised by its meaning: whatever could change a prompt is not.

``python -m tests.mutations`` tries every change, and renders each; here every 37th is tried, against
Jinja's own lexer, which is the stricter test.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

import chatformats
from chatformats import fingerprint

from . import mutations, oracle

if TYPE_CHECKING:
    from collections.abc import Callable

every_format = pytest.mark.parametrize("name", oracle.NAMES)

KEEPS: dict[str, Callable[[str], str]] = {
    "itself": lambda source: source,
    "windows_line_ends": lambda source: source.replace("\n", "\r\n"),
    "old_mac_line_ends": lambda source: source.replace("\n", "\r"),
    "a_newline_at_the_end": lambda source: source + "\n",
    "a_comment_first": lambda source: "{# Copied from elsewhere.\n{{ not_read }} #}\n" + source,
    "comments_before_tags": lambda source: _replace(source, "begin", _comment_before),
    "comments_after_tags": lambda source: _replace(source, "end", _comment_after),
    "other_space_inside_tags": lambda source: _replace(source, "space", "\t \n"),
    "other_quotes": lambda source: _replace(source, "string", _requoted),
    "escapes": lambda source: _replace(source, "string", _escaped),
}
CHANGES: dict[str, Callable[[str], str]] = {
    "empty": lambda source: "",
    "a_word_last": lambda source: source + "\n\nx",
    "a_word_first": lambda source: "x" + source,
    "cut_short": lambda source: source[:-1],
    "raw": lambda source: "{% raw %}" + source + "{% endraw %}",
    "twice": lambda source: source + source,
}


def _replace(source: str, where: str, by: str | Callable[[str], str]) -> str:
    replace = by if callable(by) else lambda text: by
    return "".join(replace(text) if kind == where else text for kind, text in mutations.pieces(source))


def _comment_before(tag: str) -> str:
    # What the tag strips, the comment has to strip in its place; see also below.
    return ("{#- {{ a }} #}" if tag.endswith("-") else "{# {{ a }} #}") + tag


def _comment_after(tag: str) -> str:
    if tag == "}}":
        return tag + "{# ' +#}"
    return tag + ("{# ' -#}" if tag.startswith("-") else "{# ' #}")


def _requoted(literal: str) -> str:
    other = '"' if literal[0] == "'" else "'"
    return (
        literal if other in literal else other + literal[1:-1].replace(f"\\{literal[0]}", literal[0]) + other
    )


def _escaped(literal: str) -> str:
    first = literal[1:2]
    return literal if first in "\\'\"" else f"{literal[0]}\\U{ord(first):08x}{literal[2:]}"


@every_format
def test_constants_are_the_references(name: str) -> None:
    assert fingerprint._FORMATS[str(fingerprint.fingerprint(oracle.source(name)))] == name
    assert sorted(fingerprint._FORMATS.values()) == list(chatformats.names())


@every_format
@pytest.mark.parametrize("change", KEEPS.values(), ids=KEEPS)
def test_same_meaning_is_recognised(name: str, change: Callable[[str], str]) -> None:
    fmt = chatformats.for_template(change(oracle.source(name)))
    assert type(fmt) is type(chatformats.get(name))


@every_format
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_meaning_is_not(name: str, change: Callable[[str], str]) -> None:
    assert chatformats.for_template(change(oracle.source(name))) is None


@every_format
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_a_change_is_accepted_just_where_jinja_reads_the_same(name: str) -> None:
    source = oracle.source(name)
    right, tokens = fingerprint.fingerprint(source), mutations.jinja_tokens(source)
    accepted: dict[bool, int] = {False: 0, True: 0}
    for kind, mutant in islice(mutations.mutants(source), 0, None, 37):
        recognised = fingerprint.fingerprint(mutant) == right
        assert recognised == (mutations.jinja_tokens(mutant) == tokens), (kind, mutant)
        accepted[recognised] += 1
    assert min(accepted.values()) > 20


@every_format
def test_no_accepted_change_makes_a_difference(name: str) -> None:
    source = oracle.source(name)
    corpus, right = mutations.Corpus(name), fingerprint.fingerprint(source)
    differing = 0
    for kind, mutant in islice(mutations.mutants(source), 0, None, 401):
        differs = corpus.differs(mutant)
        assert not differs or fingerprint.fingerprint(mutant) != right, (kind, mutant)
        differing += differs
    assert differing > 1


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1.5e3 }}{{ 1_0 }}{{ 0x1f }}{{ 0b1 }}{{ 0o7 }}{{ 00 }}{{ a.1.5 }}",
        "{{+ 5 }}{{ -5 }}{{-5}}{{ {'a': {'b': [1]}} }}{{ '}}' }}",
        "a \n  {%+ if x +%}\n b {%- endif -%} \n c\n {% if x %} \n {# d #} \n e{% endif %}\n\n",
        "{#- a -#} \n b {#+ c +#}\n{# d #}\n\n",
        " {# a #} {# b #} {% set x = 1 %}",
        "{{ 'a\\\nb' 'c' ~ \"\\'\\x41\\u00e9\\U0001f600\\t\" }}\x85 {%- set y = 2 %}",
        "{{ x }}}{{ y }}{ { {% set z = '%}' %}%}",
        "",
        "\n",
        "\r\r\n\n",
    ],
)
def test_tokens_are_jinjas(source: str) -> None:
    assert fingerprint._tokens(source) == mutations.jinja_tokens(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% raw %}a{% endraw %}",
        "{%- raw-%}a{% endraw %}",
        "{{ a",
        "{{ ( }}",
        "{{ a) }}",
        "{{ (] }}",
        "{# a",
        "{{ ! }}",
        "{{ '\\d' }}",
        "{{ '\\U00110000' }}",
        "{{ 'a }}",
        "{{ \u0663 }}",
        "{{ 1\u0663 }}",
        "{{ 1" + "0" * 5000 + " }}",
        "{% if x %}{% endif",
    ],
)
def test_what_is_not_understood_has_no_fingerprint(source: str) -> None:
    assert fingerprint.fingerprint(source) is None


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ("{{ 1 }}", "{{ 1.0 }}"),
        ("{{ 1 }}", "{{ '1' }}"),
        ("{{ a }}", "{{ 'a' }}"),
        ("a", "{{ 'a' }}"),
        ("{{ 'a' 'b' }}", "{{ 'ab' }}"),
        ("{{ a }}", "{% a %}"),
        ("{{ none }}", "{{ None }}"),
        ("a b", "a  b"),
        ("{{ 'é' }}", "{{ 'e\u0301' }}"),
        ("{{ '\\n' }}", "{{ '\\\\n' }}"),
        ("{{ a }} b", "{{ a -}} b"),
    ],
)
def test_what_differs_has_another_fingerprint(one: str, another: str) -> None:
    assert fingerprint.fingerprint(one) != fingerprint.fingerprint(another)


def test_a_lone_surrogate_is_text() -> None:
    assert fingerprint.fingerprint("\ud800") == fingerprint.fingerprint("\ud800{##}") is not None


def test_only_text_is_a_template() -> None:
    with pytest.raises(chatformats.ChatFormatError, match="source: expected a template's text, got bytes"):
        chatformats.for_template(b"{{ x }}")  # type: ignore[arg-type]
