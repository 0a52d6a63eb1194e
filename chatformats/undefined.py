# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The value of a key that is not there.

Templates tell a missing key from a key whose value is ``None``: Jinja gives an ``Undefined``, which
prints as nothing, is false, has the length 0, and refuses everything else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final


class Undefined:
    """Stand for Jinja's ``Undefined`` in the operations that a template may do with it."""

    __slots__ = ()

    def __str__(self) -> str:
        return ""

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[object]:
        return iter(())


UNDEFINED: Final = Undefined()
