# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""Copies of the package in other repositories: only the formats that they use, under any name.

A copy has a file ``VENDORED`` with the version, the formats and each file's sha256, in the form that
``sha256sum --check`` reads. By it a copy is known again: what was changed there is never overwritten.
"""

from __future__ import annotations

import ast
from hashlib import sha256
from importlib.resources import files as resources
from pathlib import Path

from . import __version__
from .errors import ChatFormatError
from .registry import get, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RECORD = "VENDORED"


def vendor(directory: str, formats: Sequence[str] = ()) -> str:
    """Write a copy with the named formats, or bring one up to date; return a report.

    Without names, a copy keeps the formats that it has, and a new one gets all. Raises ChatFormatError, and
    writes nothing, where a file in the way is not as it was written here.
    """
    target = Path(directory)
    if not target.resolve().name.isidentifier():
        raise ChatFormatError("expected a directory whose name can be imported", directory)
    old_formats, old = _recorded(target) if (target / _RECORD).exists() else ((), {})
    wanted = tuple(sorted({get(name).name for name in formats} or old_formats or names()))
    contents = _copied(wanted)
    record = _record(wanted, contents)
    try:
        present = {
            path: (target / path).read_bytes() for path in {*contents, *old} if (target / path).exists()
        }
        kept = [p for p, data in present.items() if _hash(data) != old.get(p) and data != contents.get(p)]
        if kept:
            problem = f"not overwritten, for they are not as they were written: {', '.join(sorted(kept))}"
            raise ChatFormatError(f"{problem} (move them away first)", directory)
        for path in old.keys() - contents.keys() & present.keys():
            (target / path).unlink()
        for path, data in {**contents, _RECORD: record.encode()}.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
    except OSError as error:
        raise ChatFormatError(f"cannot be written: {error.strerror}", str(error.filename)) from error
    return f"{directory}: {len(contents)} files, with {', '.join(wanted)}\n"


def check(directory: str) -> tuple[int, str]:
    """Say whether a copy is as this version would write it; return an exit status, 0 or 1, and a report.

    Raises ChatFormatError where there is no copy.
    """
    target = Path(directory)
    formats, old = _recorded(target)
    files = {f.relative_to(target).as_posix(): f for f in sorted(target.rglob("*")) if f.is_file()}
    found = {path: _hash(file.read_bytes()) for path, file in files.items() if "__pycache__" not in path}
    findings = [f"missing: {path}" for path in old if path not in found]
    findings += [f"changed: {path}" for path in old if path in found and found[path] != old[path]]
    findings += [f"added: {path}" for path in found if path not in old and path != _RECORD]
    gone = sorted(set(formats) - set(names()))
    if gone:
        findings.append(f"behind: chatformats {__version__} has no {', '.join(gone)}")
    elif files[_RECORD].read_text(encoding="utf-8") != _record(formats, contents := _copied(formats)):
        stale = sorted(p for p in {*old, *contents} if p not in contents or old.get(p) != _hash(contents[p]))
        findings.append(f"behind: chatformats {__version__} has other {', '.join(stale) or 'notes'}")
    lines = "".join(f"{directory}: {finding}\n" for finding in findings)
    return (1, lines) if findings else (0, f"{directory}: as chatformats {__version__} writes it\n")


def _record(formats: Sequence[str], contents: dict[str, bytes]) -> str:
    hashes = "".join(f"{_hash(contents[path])}  {path}\n" for path in sorted(contents))
    return f"# chatformats {__version__}\n# formats: {', '.join(formats)}\n{hashes}"


def _recorded(target: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return what a copy's record says: its formats, and the hash of each file."""
    file = target / _RECORD
    try:
        title, formats, *lines = file.read_text(encoding="utf-8").splitlines()
        hashes = {path: digest for digest, path in (line.split("  ") for line in lines)}
    except OSError as error:
        raise ChatFormatError(f"no copy is recorded there: {error.strerror}", str(file)) from error
    except ValueError:
        title = formats = ""
        hashes = {}
    outside = any(".." in path or path.startswith("/") for path in hashes)
    if outside or not title.startswith("# chatformats ") or not formats.startswith("# formats: "):
        raise ChatFormatError("not a record that chatformats wrote", str(file))
    return tuple(formats.removeprefix("# formats: ").split(", ")), hashes


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _copied(formats: Sequence[str]) -> dict[str, bytes]:
    """Return the files of a copy: what the package's first module and the formats import, and no more."""
    package = resources(__package__)
    contents = {path: package.joinpath(path).read_bytes() for path in ("LICENSE", "py.typed")}
    modules = [type(get(name)).__module__.removeprefix(f"{__package__}.") for name in formats]
    pending = ["__init__.py", *(f"{module.replace('.', '/')}.py" for module in modules)]
    while pending:
        path = pending.pop()
        if path in contents or not package.joinpath(path).is_file():
            continue
        data = package.joinpath(path).read_bytes()
        contents[path] = _without_others(data, formats) if path == "registry.py" else data
        pending += _imported(path, contents[path])
    return contents


def _imported(path: str, source: bytes) -> Iterator[str]:
    """Yield the files that a module's relative imports may be, also those for type checkers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = path.split("/")[: -node.level]
            for name in (node.module or "").split(".") if node.module else ():
                parts.append(name)
                yield "/".join([*parts, "__init__.py"])
            yield "/".join(parts) + ".py"
            yield from ("/".join([*parts, f"{alias.name}.py"]) for alias in node.names)


def _without_others(registry: bytes, formats: Sequence[str]) -> bytes:
    """Return the registry without the lines of the formats that are not copied."""
    classes = {type(get(name)).__name__: name for name in names() if name not in formats}
    dropped: set[int] = set()

    def drop(first: ast.stmt | ast.expr, last: ast.stmt | ast.expr) -> None:
        dropped.update(range(first.lineno, (last.end_lineno or 0) + 1))

    for node in ast.walk(ast.parse(registry)):
        if isinstance(node, ast.ImportFrom) and any(alias.name in classes for alias in node.names):
            drop(node, node)
        elif isinstance(node, ast.FunctionDef) and getattr(node.returns, "id", None) in classes:
            drop(node.decorator_list[0], node)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in classes.values():
                    drop(key, value)
    lines = registry.splitlines(keepends=True)
    return b"".join(line for number, line in enumerate(lines, 1) if number not in dropped)
