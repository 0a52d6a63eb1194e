# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""A prompt to look at: who wrote what, in a terminal's colours, in plain markers, or as a web page."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from .spans import Rendered, Segment

# Of a terminal: magenta, cyan, green, yellow; blue for every other role, and for tools.
_COLOURS: Final = {"system": "35", "user": "36", "assistant": "32", "tool": "33"}
_OTHER_COLOUR: Final = "34"
_DIM, _UNDERLINED, _INJECTED = "2", "4", "1;7;31"


class _Piece(NamedTuple):
    text: str
    segment: Segment
    injected: bool


def warnings(rendered: Rendered) -> list[str]:
    """Return what a reader should know of a prompt, a line each: dropped messages, injected tokens."""
    lines = [f"messages[{index}] left nothing in the prompt" for index in rendered.dropped]
    for token, start, message in rendered.injected:
        source = "a tool definition" if message is None else f"messages[{message}]"
        lines.append(f"control token {token} at character {start} comes from {source}")
    return lines


def to_terminal(rendered: Rendered) -> str:
    """Return the prompt with a terminal's colours: text of the format dim, generated text underlined."""
    shown = []
    for text, segment, injected in _pieces(rendered):
        if injected:
            style = _INJECTED
        else:
            colour = _COLOURS.get(segment.role or "", _OTHER_COLOUR)
            style = colour if segment.origin == "content" else _DIM
            if segment.generated:
                style += ";" + _UNDERLINED
        # Line by line: a style that is left open over a line's end colours the rest of the screen.
        lines = _visible(text).split("\n")
        shown.append("\n".join([f"\x1b[{style}m{line}\x1b[0m" if line else "" for line in lines]))
    return "".join(shown)


def to_plain(rendered: Rendered) -> str:
    """Return the prompt with what the caller wrote in markers: ``{user: …}``, ``{assistant*: …}``.

    The star marks what the model generates, and ``{!…!}`` an injected control token.
    """
    shown = []
    for text, segment, injected in _pieces(rendered):
        if injected:
            shown.append(f"{{!{_visible(text)}!}}")
        elif segment.origin == "content":
            star = "*" if segment.generated else ""
            shown.append(f"{{{segment.role or 'tools'}{star}: {_visible(text)}}}")
        else:
            shown.append(text)
    return "".join(shown)


def to_html(rendered: Rendered, name: str) -> str:
    """Return a page of its own, without anything to load: the prompt, a legend, what to know of it."""
    spans = []
    for text, segment, injected in _pieces(rendered):
        role = segment.role or ""
        classes: list[str] = [segment.origin]
        if segment.origin == "content":
            classes.append(role if role in _COLOURS else "other")
        if segment.generated:
            classes.append("generated")
        if injected:
            classes.append("injected")
        owner = "no message" if segment.message is None else f"messages[{segment.message}]"
        facts = [owner, segment.role or "no role", segment.origin]
        facts += ["generated"] if segment.generated else []
        facts += ["control token that the format did not write"] if injected else []
        title = escape(" · ".join(facts))
        spans.append(f'<span class="{" ".join(classes)}" title="{title}">{escape(text)}</span>')
    notes = "".join(f"<li>{escape(line)}</li>" for line in warnings(rendered))
    return _PAGE.format(
        name=escape(name),
        characters=len(rendered.text),
        warnings=f'<ul class="warnings">{notes}</ul>' if notes else "",
        prompt="".join(spans),
    )


def _pieces(rendered: Rendered) -> Iterator[_Piece]:
    """Yield the segments, cut where an injected control token begins or ends."""
    injected = [(start, start + len(token)) for token, start, _ in rendered.injected]
    end = 0
    for segment in rendered.segments:
        start, end = end, end + len(segment.text)
        cuts = {start, end}
        for span in injected:
            cuts.update(cut for cut in span if start < cut < end)
        edges = sorted(cuts)
        for left, right in pairwise(edges):
            inside = any(first <= left and right <= last for first, last in injected)
            yield _Piece(rendered.text[left:right], segment, inside)


def _visible(text: str) -> str:
    # What moves a terminal's cursor or colours it is not the caller's to say.
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: who wrote each character</title>
<style>
:root {{ color-scheme: light dark; --bg: #fff; --fg: #1d2330; --dim: #7b8494; --line: #d9dee7;
  --system: #f3e4fb; --user: #dcefff; --assistant: #def5e1; --tool: #fdf0cc; --other: #e8e8f7; --red: #c4151c; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --bg: #12151c; --fg: #e6e9ef; --dim: #808a9c; --line: #323948;
    --system: #412a52; --user: #1d3a57; --assistant: #1f4428; --tool: #4a3d16; --other: #33335a; --red: #ff6b6b; }}
}}
body {{ background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; margin: 0 0 .25rem; }}
p {{ margin: .25rem 0; color: var(--dim); }}
pre {{ font: 13px/1.6 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  border: 1px solid var(--line); border-radius: 6px; padding: 1rem; }}
.legend span {{ font: 13px/1.6 ui-monospace, monospace; padding: 0 .3em; margin-right: .6em; }}
.scaffold {{ color: var(--dim); }}
.control {{ color: var(--dim); font-weight: 600; }}
.content {{ border-radius: 3px; }}
.system {{ background: var(--system); }}
.user {{ background: var(--user); }}
.assistant {{ background: var(--assistant); }}
.tool {{ background: var(--tool); }}
.other {{ background: var(--other); }}
.generated {{ text-decoration: underline; text-underline-offset: 3px; }}
.injected, .warnings {{ color: var(--red); }}
.injected {{ font-weight: 700; outline: 1px solid var(--red); }}
span[title]:hover {{ outline: 1px solid currentColor; }}
</style>
</head>
<body>
<h1>{name}</h1>
<p>{characters} characters. Rest the pointer on a piece for its message, role and origin.</p>
<p class="legend"><span class="control">control token</span><span class="scaffold">scaffold</span>\
<span class="content system">system</span><span class="content user">user</span>\
<span class="content assistant">assistant</span><span class="content tool">tool</span>\
<span class="content other">tools, other roles</span><span class="generated">generated</span>\
<span class="injected">injected</span></p>
{warnings}
<pre>{prompt}</pre>
</body>
</html>
"""
