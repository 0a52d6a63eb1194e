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

from .errors import ChatFormatError, expected
from .undefined import UNDEFINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeGuard

_NOTHING: Final[Mapping[str, object]] = {}


def fields(value: object, path: str) -> Mapping[str, object]:
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
    raise expected("a mapping", value, path)


def elements(value: object, path: str) -> Sequence[object]:
    """Return the elements that a template finds when it iterates over a value and indexes it.

    Raises ChatFormatError for a mapping, which has keys but no first element.
    """
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, Sequence):
        return list(value)
    raise expected("a sequence", value, path)


def iterated(value: object, path: str) -> Iterable[object]:
    """Return what ``for x in value`` goes through: a mapping's keys, a string's characters."""
    if isinstance(value, Iterable):
        return value
    raise expected("a sequence", value, path)


def has_elements(value: object, path: str) -> bool:
    """Return ``value is iterable and value | length > 0``."""
    if value is None:
        return False
    return isinstance(value, Iterable) and length(value, path) > 0


def length(value: object, path: str) -> int:
    """Return ``value | length``."""
    try:
        return len(value)  # type: ignore[arg-type]  # what has no length raises TypeError
    except TypeError as error:
        raise expected("a sequence", value, path) from error


def is_container(value: object) -> bool:
    """Say whether ``value is mapping or (value is sequence and value is not string)``."""
    return isinstance(value, (dict, list, tuple)) or (
        isinstance(value, (Mapping, Sequence)) and not isinstance(value, str)
    )


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Say whether ``value is mapping``."""
    # isinstance() against the abstract class takes 3 to 6 times as long as against dict.
    return isinstance(value, (dict, Mapping))


def items(value: object, path: str) -> Iterable[tuple[str, object]]:
    """Return ``value | items``."""
    if is_mapping(value):
        return value.items()
    raise expected("a mapping", value, path)


def to_str(value: object, path: str) -> str:
    """Return what a template prints for a value: Python's ``str()``.

    Raises ChatFormatError where that fails: nested too deep, an integer too long to print.
    """
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except RecursionError as error:
        raise ChatFormatError("nested too deep to be printed", path) from error
    except ValueError as error:
        raise ChatFormatError(f"cannot be printed: {error}", path) from error


# json.dumps with keywords builds an encoder a call; these are built once. The C function beneath
# takes another 1.6 to 3.7 times less, but is undocumented: what does not accept these arguments, or
# is not there, leaves the documented encoder. Without `markers` a circular value ends in
# RecursionError, and nothing is kept between calls or shared between threads.
_ENCODER: Final = json_encoder.JSONEncoder(ensure_ascii=False)
_INDENTING_ENCODER: Final = json_encoder.JSONEncoder(ensure_ascii=False, indent=4)
_encode_string: Final[Callable[[str], str]] = json_encoder.encode_basestring


def _compact_encoder() -> Callable[[object], str]:
    make = getattr(json_encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    try:
        encode = make(None, _ENCODER.default, _encode_string, None, ": ", ", ", False, False, True)
        if "".join(encode(["é", 1.5, {"a": None}], 0)) != '["é", 1.5, {"a": null}]':
            return _ENCODER.encode
    except TypeError:
        return _ENCODER.encode
    join = "".join
    return lambda value: join(encode(value, 0))


_encode: Final = _compact_encoder()


def to_json(value: object, path: str) -> str:
    """Return ``value | tojson``: JSON on one line, with what is not ASCII as it is.

    Raises ChatFormatError for what JSON cannot say.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(error, value, path) from error


def to_indented_json(value: object, path: str) -> str:
    """Return ``value | tojson(indent=4)``; raises ChatFormatError for what JSON cannot say."""
    try:
        pieces: list[str] = []
        _write_indented(value, "\n", pieces.append)
        return "".join(pieces)
    except (TypeError, ValueError) as error:
        raise _not_json(error, value, path) from error
    except RecursionError:
        pass
    try:
        # Of the stack, the standard library may need less a level.
        return _INDENTING_ENCODER.encode(value)
    except (ValueError, RecursionError) as error:
        raise _not_json(error, value, path) from error


def _write_indented(value: object, newline: str, write: Callable[[str], object]) -> None:
    # The standard library indents in Python, a generator a level: this takes a third of its time.
    inner = newline + "    "
    if isinstance(value, dict):
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
        before = "[" + inner
        for item in value:
            write(before)
            before = "," + inner
            _write_indented(item, inner, write)
        write(newline + "]" if value else "[]")
    else:
        write(_encode(value))


def _not_json(error: Exception, value: object, path: str) -> ChatFormatError:
    if value is UNDEFINED:
        return expected("a JSON value", value, path)
    if isinstance(error, RecursionError):
        return ChatFormatError("nested too deep for JSON", path)
    return ChatFormatError(f"cannot be written as JSON: {error}", path)
