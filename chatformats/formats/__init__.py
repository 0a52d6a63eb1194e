# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""One module a format."""
