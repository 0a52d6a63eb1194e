# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""How a template reads a value and turns it into text.

Each function is named for the Jinja construct that it stands for. They are the slow, exact way: a
formatter asks first for what a well-formed conversation has (``isinstance(text, str)``), and calls
these for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from json import encoder as json_encoder

from .errors import ChatFormatError, expected, path_of
from .undefined import UNDEFINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final, TypeGuard

    from .errors import Place
    from .messages import Messages

_NOTHING: Final[Mapping[str, object]] = {}


def fields(value: object, place: Place) -> Mapping[str, object]:
    """Return what a template can read of a value by name (``value.key``, ``value["key"]``).

    Anything else that JSON knows has no names to read, and every one is undefined: as in an empty
    mapping. Objects of other kinds are refused.
    """
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if value is None or isinstance(value, (str, int, float, list, tuple)):
        return _NOTHING
    raise expected("a mapping", value, place)


def as_messages(value: object) -> Messages:
    """Return what a template finds when it iterates over ``messages`` and indexes them.

    They need not be mappings: see ``roles_of``. Raises ChatFormatError for a mapping, which has keys
    but no first element, and for what is no sequence.
    """
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, Sequence):
        return list(value)
    raise expected("a sequence of messages", value, ("messages",))


def roles_of(messages: Messages, first: int = 0) -> list[object]:
    """Return each message's role, undefined where it has none: only a mapping has one.

    ``first`` is the first one's index, for errors.
    """
    try:
        return [message["role"] for message in messages]
    except (LookupError, TypeError):
        return [
            fields(message, ("messages", index)).get("role", UNDEFINED)
            for index, message in enumerate(messages, first)
        ]


def iterated(value: object, place: Place) -> Iterable[object]:
    """Return what ``for x in value`` goes through: a mapping's keys, a string's characters."""
    # isinstance() against an abstract class takes 3 to 6 times as long as against a built-in one.
    if isinstance(value, (list, Iterable)):
        return value
    raise expected("a sequence", value, place)


def has_elements(value: object, place: Place) -> bool:
    """Return ``value is iterable and value | length > 0``."""
    return isinstance(value, (list, Iterable)) and length(value, place) > 0


def length(value: object, place: Place) -> int:
    """Return ``value | length``."""
    try:
        return len(value)  # type: ignore[arg-type]  # what has no length raises TypeError
    except TypeError as error:
        raise expected("a sequence", value, place) from error


def is_container(value: object) -> bool:
    """Say whether ``value is mapping or (value is sequence and value is not string)``."""
    if value is None or isinstance(value, (str, int, float)):
        return False
    return isinstance(value, (dict, list, Mapping, Sequence))


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Say whether ``value is mapping``."""
    return isinstance(value, (dict, Mapping))


def items(value: object, place: Place) -> Iterable[tuple[str, object]]:
    """Return ``value | items``."""
    if is_mapping(value):
        return value.items()
    raise expected("a mapping", value, place)


def to_str(value: object, place: Place) -> str:
    """Return what a template prints for a value: Python's ``str()``.

    Raises ChatFormatError where that fails: nested too deep, an integer too long to print.
    """
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except RecursionError as error:
        raise ChatFormatError("nested too deep to be printed", path_of(place)) from error
    except ValueError as error:
        raise ChatFormatError(f"cannot be printed: {error}", path_of(place)) from error


# json.dumps with keywords builds an encoder a call; these are built once. The C function beneath
# takes another 1.6 to 3.7 times less, but is undocumented: where it is not there, has another
# signature or cannot indent (before Python 3.13), the documented way is taken. Without ``markers`` a
# circular value ends in RecursionError, and nothing is kept between calls or shared between threads.
_ENCODER: Final = json_encoder.JSONEncoder(ensure_ascii=False)
_INDENTING_ENCODER: Final = json_encoder.JSONEncoder(ensure_ascii=False, indent=4)
_encode_string: Final[Callable[[str], str]] = json_encoder.encode_basestring


def _c_encoder(documented: json_encoder.JSONEncoder, indent: str | None) -> Callable[[object], str] | None:
    make: Any = getattr(json_encoder, "c_make_encoder", None)
    separators = (documented.key_separator, documented.item_separator)
    join = "".join
    example = ["é", 1.5, {"a": None, "b": [[]]}]
    try:
        encode = make(None, _ENCODER.default, _encode_string, indent, *separators, False, False, True)
        if join(encode(example, 0)) != documented.encode(example):
            return None
    except TypeError:
        return None
    return lambda value: join(encode(value, 0))


_encode: Final = _c_encoder(_ENCODER, None) or _ENCODER.encode
_encode_indented: Final = _c_encoder(_INDENTING_ENCODER, "    ")


def to_json(value: object, place: Place) -> str:
    """Return ``value | tojson``: JSON on one line, with what is not ASCII as it is.

    Raises ChatFormatError for what JSON cannot say.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error, value, place) from error


def to_indented_json(value: object, place: Place) -> str:
    """Return ``value | tojson(indent=4)``; raises ChatFormatError for what JSON cannot say."""
    try:
        if _encode_indented is not None:
            return _encode_indented(value)
        pieces: list[str] = []
        _write_indented(value, "\n", pieces.append)
        return "".join(pieces)
    except (TypeError, ValueError) as error:
        raise _not_json(error, value, place) from error
    except RecursionError:
        pass
    try:
        # Of the stack, the standard library may need less a level.
        return _INDENTING_ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error, value, place) from error


def _write_indented(value: object, newline: str, write: Callable[[str], object]) -> None:
    # The standard library indents in Python too, a generator a level: this takes a third of its time.
    if isinstance(value, dict):
        inner = newline + "    "
        before = "{" + inner
        for key, item in value.items():
            write(before)
            before = "," + inner
            # What is no string becomes one as a key, or is refused: the encoder knows how.
            write(_encode_string(key) if isinstance(key, str) else _encode({key: None})[1:-7])
            write(": ")
            if type(item) is str:
                write(_encode_string(item))
            else:
                _write_indented(item, inner, write)
        write(newline + "}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        inner = newline + "    "
        before = "[" + inner
        for item in value:
            write(before)
            before = "," + inner
            _write_indented(item, inner, write)
        write(newline + "]" if value else "[]")
    else:
        write(_encode(value))


def _not_json(error: Exception, value: object, place: Place) -> ChatFormatError:
    if value is UNDEFINED:
        return expected("a JSON value", value, place)
    if isinstance(error, RecursionError):
        return ChatFormatError("nested too deep for JSON", path_of(place))
    return ChatFormatError(f"cannot be written as JSON: {error}", path_of(place))
