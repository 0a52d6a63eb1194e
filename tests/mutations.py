# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Templates changed in one place: what ``for_template`` must tell from the template itself.

``python -m tests.mutations`` renders every one over the conversations of the tests and prints a table.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from chatformats import fingerprint

from . import cases, oracle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_TAG = re.compile(r"(?P<begin>\{[%{][-+]?)|(?P<comment>\{\#.*?\#\})|(?P<text>(?:(?!\{[%{\#]).)+)", re.DOTALL)
_INSIDE = re.compile(
    r"""(?P<end>[-+]?[%}]\})|(?P<space>\s+)|(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"|(?P<number>\d+)|(?P<name>\w+)|(?P<operator>[!=<>]=|//|\*\*|[^\s\w])",
    re.DOTALL,
)
OPERATORS = (
    "+",
    "-",
    "~",
    "*",
    "/",
    "%",
    "//",
    "**",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "=",
    ".",
    "|",
    ",",
    ":",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
)
_SIGNS = ("", "-", "+")
_ENVIRONMENT = oracle.environment()
_LEXER = _ENVIRONMENT.lexer


def pieces(source: str) -> list[tuple[str, str]]:
    """Cut a template into pieces with their kinds; joined, they are the template."""
    found: list[tuple[str, str]] = []
    position, inside = 0, False
    while position < len(source):
        match = (_INSIDE if inside else _TAG).match(source, position)
        assert match and match.lastgroup, source[position : position + 20]
        kind = match.lastgroup
        found.append((kind, match.group()))
        inside = kind == "begin" or (inside and kind != "end")
        position = match.end()
    return found


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield the kind of each change, and the template with it."""
    cut = pieces(source)
    names = sorted({text for kind, text in cut if kind == "name"})
    start = 0
    for kind, text in cut:
        end = start + len(text)
        if kind in ("begin", "text", "comment"):
            for inserted in ("{##}", "{#- -#}", " ", "\n"):
                yield "inserted", source[:start] + inserted + source[start:]
        for changed in dict.fromkeys(_changes(kind, text, names)):
            if changed != text:
                yield kind, source[:start] + changed + source[end:]
        start = end


def _changes(kind: str, text: str, names: list[str]) -> Iterator[str]:
    if kind == "begin":
        yield from (text[:2] + sign for sign in _SIGNS)
        yield "{{" if text[1] == "%" else "{%"
        yield text[0]
    elif kind == "end":
        yield from (sign + text[-2:] for sign in _SIGNS)
        yield "%}" if text[-2] == "}" else "}}"
        yield text[:-1]
    elif kind == "space":
        yield from ("", " ", "\n", "\t \r\n", "\N{NO-BREAK SPACE}", "\u200b")
    elif kind == "comment":
        yield from ("", "{#a#}", "{#-a#}", "{#a-#}", "{#+a+#}", "a", "{#")
    elif kind == "text":
        for run in re.finditer(r"\s+|\S+", text):
            head, tail = text[: run.start()], text[run.end() :]
            if run.group().isspace():
                replacements = ["", " ", "\n", "\r\n", "\n\n", run.group() + " ", " " + run.group()]
            else:
                replacements = ["", run.group() + "x", run.group()[1:], run.group().swapcase()]
            yield from (head + replacement + tail for replacement in replacements)
    elif kind == "string":
        quote, value = text[0], text[1:-1]
        other = '"' if quote == "'" else "'"
        if other not in value:
            yield other + value.replace("\\" + quote, quote) + other
        yield f"{quote}{value}x{quote}"
        yield f"{quote} {value}{quote}"
        yield f"{quote}\\n{value}{quote}"
        yield quote + value.replace("\\n", "\n") + quote
        yield quote + value.replace("\n", "\r\n") + quote
        yield quote + value.swapcase() + quote
        yield quote * 2
        # At most twelve characters of a literal, spread over it: deleted, and escaped.
        for index in range(0, len(value), len(value) // 12 + 1):
            yield quote + value[:index] + value[index + 1 :] + quote
            yield f"{quote}{value[:index]}\\u{ord(value[index]):04x}{value[index + 1 :]}{quote}"
    elif kind == "number":
        yield from (str(int(text) + 1), f"-{text}", f"{text}.0", f"{int(text):#x}", f"0{text}", "")
    elif kind == "name":
        yield from ("", text + "x", text[:-1], text.swapcase(), f"not {text}", f"'{text}'")
        yield names[(names.index(text) + 1) % len(names)]
        swaps = {"and": "or", "true": "false", "True": "False", "if": "elif", "none": "None", "is": "is not"}
        for one, another in swaps.items():
            yield {one: another, another: one}.get(text, text)
    elif kind == "operator":
        place = OPERATORS.index(text)
        yield from ("", text * 2, *(OPERATORS[place - step] for step in (1, 2, 3)))


def jinja_tokens(source: str) -> list[tuple[str, object]] | None:
    """Return what Jinja's own lexer reads, named as in ``fingerprint``; None where it refuses."""
    tokens: list[tuple[str, object]] = []
    try:
        for token in _LEXER.wrap(_LEXER.tokeniter(source, None)):
            kind, value = token.type, token.value
            if kind.endswith(("_begin", "_end")):
                delimiter, kind = kind.split("_")
                value = {"block": "%", "variable": "{"}[delimiter]
            elif kind == "data":
                kind = "text"
                if tokens and tokens[-1][0] == "text":
                    value = f"{tokens.pop()[1]}{value}"
            elif kind not in ("integer", "float", "name", "string"):
                kind = "operator"
            tokens.append((kind, value))
    except Exception:  # noqa: BLE001  # a number too long, for one, raises what it likes
        return None
    return tokens


class Corpus:
    """The conversations of the tests with what a reference makes of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.prompts: list[tuple[dict[str, Any], str | None]] = []
        for case in cases.conversations(name).values():
            for both in (case, {**case, "add_generation_prompt": not case.get("add_generation_prompt")}):
                self.prompts.append((both, self._prompt(oracle.template(name), both)))

    def differs(self, source: str) -> bool:
        """Say whether a template makes something else of any conversation."""
        try:
            template = _ENVIRONMENT.from_string(source)
        except Exception:  # noqa: BLE001  # Jinja's compiler may raise more than TemplateSyntaxError
            return True
        for index, (case, prompt) in enumerate(self.prompts):
            if self._prompt(template, case) != prompt:
                # What shows one difference shows the next: it is asked first from here on.
                self.prompts.insert(0, self.prompts.pop(index))
                return True
        return False

    def _prompt(self, template: Any, case: dict[str, Any]) -> str | None:
        variables = {"tools": None, "add_generation_prompt": False, **oracle.DEFAULTS.get(self.name, {})}
        try:
            return str(template.render({**variables, **case}))
        except Exception:  # noqa: BLE001  # a template may raise anything
            return None


def main(names: list[str]) -> int:
    """Print how many changes of each kind are accepted, and how many make a difference."""
    wrong = 0
    print(f"{'template':<18}{'change':<10}{'mutants':>8}{'accepted':>9}{'same, refused':>14}{'wrong':>6}")
    for name in names or oracle.NAMES:
        corpus, reference = Corpus(name), oracle.source(name)
        right, tokens = fingerprint.fingerprint(reference), jinja_tokens(reference)
        counts: dict[str, list[int]] = {}
        for kind, source in mutants(reference):
            accepted = fingerprint.fingerprint(source) == right
            # Where Jinja reads the same tokens it is the same program, and nothing has to be rendered.
            differs = not (accepted and jinja_tokens(source) == tokens) and corpus.differs(source)
            count = counts.setdefault(kind, [0, 0, 0, 0])
            for column, counted in enumerate(
                (1, accepted, not accepted and not differs, accepted and differs)
            ):
                count[column] += counted
        counts["all"] = [sum(column) for column in zip(*counts.values(), strict=True)]
        for kind, (total, accepted_, same, bad) in counts.items():
            print(f"{name:<18}{kind:<10}{total:>8}{accepted_:>9}{same:>14}{bad:>6}", flush=True)
        wrong += counts["all"][3]
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
