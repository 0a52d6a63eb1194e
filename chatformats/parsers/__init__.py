# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The grammars in which the models call tools, one module each; a formatter loads its own when asked to parse."""
