# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What the commands read and print: bytes, whatever the locale, and no fault of a file a traceback."""

from __future__ import annotations

import os
import sys

from .errors import ChatFormatError


def source_of(file: str) -> str:
    """Return the name of a file in an error; "-" is standard input."""
    return "standard input" if file == "-" else file


def read_bytes(file: str) -> bytes:
    """Return what is in a file, or for "-" in standard input; raises ChatFormatError where that fails."""
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as stream:
            return stream.read()
    except OSError as error:
        raise ChatFormatError(f"cannot be read: {error.strerror}", source_of(file)) from error


def write_bytes(data: bytes) -> None:
    """Print bytes as they are; raises ChatFormatError where that fails, and BrokenPipeError."""
    if sys.stdout is None:
        raise ChatFormatError("cannot be written: it is closed", "standard output")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        # The interpreter flushes again as it ends, and would complain: to nowhere then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ChatFormatError(f"cannot be written: {error.strerror}", "standard output") from error
