# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
