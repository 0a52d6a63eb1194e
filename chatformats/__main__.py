# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""``python -m chatformats``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
