# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""What is here is for a type checker: nothing is imported, nothing run."""

collect_ignore_glob = ["check_*.py"]
