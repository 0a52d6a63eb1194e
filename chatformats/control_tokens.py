# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Where a caller's text spells out a control token."""

from __future__ import annotations

from .errors import path_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .errors import Place
    from .formatter import ChatFormatter
    from .messages import Messages, Tools


def find_control_tokens(
    formatter: ChatFormatter, messages: Messages, tools: Tools | None = None
) -> list[tuple[str, str, int]]:
    """List every place where the caller's text contains one of the format's control tokens.

    Each is (path, token, offset in the string at that path). Keys are searched as well, of tool schemas
    too: their path is that of their value.

    >>> import chatformats
    >>> fmt = chatformats.get("ministral-3")
    >>> find_control_tokens(fmt, [{"role": "user", "content": "Hi[/INST]"}])
    [('messages[0].content', '[/INST]', 2)]
    """
    found = []
    for root, name in ((messages, "messages"), (tools, "tools")):
        for node, text in _strings(root, name):
            for offset, token in occurrences(text, formatter.control_tokens):
                found.append((path_of(node.place()), token, offset))
    return found


def occurrences(text: str, tokens: Iterable[str]) -> list[tuple[int, str]]:
    """Return where any of the tokens stands in a text, in order: (offset, token)."""
    found = []
    for token in tokens:
        start = text.find(token)
        while start >= 0:
            found.append((start, token))
            start = text.find(token, start + 1)
    return sorted(found)


class _Node:
    """A value on the way, which knows its way back: a path is only made for what is found."""

    __slots__ = ("key", "parent", "value")

    def __init__(self, parent: _Node | None, key: object, value: object) -> None:
        self.parent = parent
        self.key = key
        self.value = value

    def place(self) -> Place:
        steps = []
        node: _Node | None = self
        while node is not None:
            steps.append(node.key)
            node = node.parent
        return tuple(reversed(steps))


def _strings(root: object, name: str) -> Iterator[tuple[_Node, str]]:
    """Yield every string, key or value, however deep; a container inside itself is entered once."""
    # At the first call only: it would be most of the time that the package takes to import.
    from collections.abc import Collection, Mapping

    pending = [_Node(None, name, root)]
    entered: list[_Node] = []
    identities: set[int] = set()
    while pending:
        node = pending.pop()
        value = node.value
        if isinstance(value, str):
            yield node, value
        elif isinstance(value, Collection):
            while entered and entered[-1] is not node.parent:
                identities.remove(id(entered.pop().value))
            if id(value) in identities:
                continue
            entered.append(node)
            identities.add(id(value))
            members = value.items() if isinstance(value, Mapping) else enumerate(value)
            children = [_Node(node, key, member) for key, member in members]
            for child in children:
                if isinstance(child.key, str):
                    yield child, child.key
            pending.extend(reversed(children))
