# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Formatters in the shapes that other libraries ask for: each module is loaded by who wants it."""
