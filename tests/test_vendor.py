# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""``vendor`` copies what some formats need, and knows its copies again."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import chatformats
from chatformats import ChatFormatError, vendor

from . import oracle
from .cases import conversations

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "chatformats"
EVERY = chatformats.names()

# Isolated and without site packages (-I -S): an installed chatformats cannot help.
USE = """
import json, sys
how, path, *formats = sys.argv[1:]
if how == "frozen":
    # As a frozen program has it: code objects, and no files.
    import importlib.abc, importlib.util, zipfile
    archive = zipfile.ZipFile(path)
    class Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
        def get_source(self, name):
            file = name.replace(".", "/")
            for candidate in (file + "/__init__.py", file + ".py"):
                if candidate in archive.namelist():
                    return archive.read(candidate).decode()
        def is_package(self, name):
            return name.replace(".", "/") + "/__init__.py" in archive.namelist()
        def find_spec(self, name, path, target=None):
            if self.get_source(name) is not None:
                return importlib.util.spec_from_loader(name, self)
    sys.meta_path.insert(0, Finder())
else:
    sys.path.insert(0, path)
before = set(sys.modules)
from thirdparty._vendor import cf
cases, templates = json.load(sys.stdin)
outcomes = []
for name, case in cases:
    try:
        outcomes.append(cf.get(name).render(**case))
    except cf.ChatFormatError as error:
        outcomes.append(f"{type(error).__name__}: {error}")
found = [fmt and fmt.name for fmt in map(cf.for_template, templates)]
fmt = cf.for_tokenizer_config({"chat_template": templates[0], "bos_token": "<b>"})
segments = fmt.render_segments([{"role": "user", "content": "Hi"}]).text
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([cf.names(), outcomes, found, segments, sorted(loaded - sys.stdlib_module_names)]))
"""


def outcome(name: str, case: dict[str, object]) -> str:
    write = chatformats.get(name).render
    try:
        return write(**case)  # type: ignore[arg-type]
    except ChatFormatError as error:
        return f"{type(error).__name__}: {error}"


def tree(tmp_path: Path, *formats: str) -> Path:
    """Vendor formats under another name; return what to put on the path."""
    copy = tmp_path / "tree" / "thirdparty" / "_vendor" / "cf"
    vendor.vendor(str(copy), formats)
    for package in (copy.parent, copy.parent.parent):
        (package / "__init__.py").touch()
    return tmp_path / "tree"


@pytest.mark.parametrize("how", ["directory", "zip", "frozen"])
@pytest.mark.parametrize("formats", [("hebatron",), ("ministral-3", "glm4-tools"), EVERY], ids="-".join)
def test_a_copy_works_anywhere(tmp_path: Path, formats: tuple[str, ...], how: str) -> None:
    path = tree(tmp_path, *formats)
    if how != "directory":
        archive = tmp_path / "tree.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for source in sorted(path.rglob("*")):
                file.write(source, source.relative_to(path))
        path = archive
    cases = [(name, case) for name in formats for case in conversations(name).values()]
    templates = [oracle.source(name) for name in (*formats, *EVERY)]
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", USE, how, str(path), *formats],
        input=json.dumps([cases, templates]).encode(),
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    names, outcomes, found, segments, loaded = json.loads(result.stdout)
    assert names == sorted(formats)
    assert outcomes == [outcome(name, case) for name, case in cases]
    assert found == [*formats, *(name if name in formats else None for name in EVERY)]
    fmt = chatformats.for_tokenizer_config({"chat_template": templates[0], "bos_token": "<b>"})
    assert fmt is not None
    assert segments == fmt.render([{"role": "user", "content": "Hi"}])
    assert loaded == ["thirdparty"]


@pytest.mark.parametrize("formats", [*((name,) for name in EVERY), EVERY], ids="-".join)
def test_a_copy_has_what_it_needs_and_no_more(tmp_path: Path, formats: tuple[str, ...]) -> None:
    copy = tree(tmp_path, *formats) / "thirdparty" / "_vendor" / "cf"
    modules = {path.relative_to(copy).as_posix() for path in copy.rglob("*.py")}
    own = {f"formats/{type(chatformats.get(name)).__module__.rpartition('.')[2]}.py" for name in formats}
    assert {path for path in modules if path.startswith("formats/") and "/_" not in path} == own
    assert ("formats/_xml_tools.py" in modules) == bool({"hebatron", "joyai-llm-flash"} & {*formats})
    assert modules.isdisjoint({"cli.py", "__main__.py", "vendor.py", "verify.py", "probes.py"})
    registry = (copy / "registry.py").read_text("utf-8")
    assert [name for name in EVERY if name in registry.partition("def names")[0]] == sorted(formats)
    assert registry.count("@overload") == len(formats) + 1
    assert {path.name for path in copy.iterdir()} >= {"LICENSE", "VENDORED", "py.typed"}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "thirdparty"]
    for check in (command, [sys.executable, "-m", "ruff", "check", "--isolated", "thirdparty"]):
        result = subprocess.run(check, cwd=tmp_path / "tree", capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_record(tmp_path: Path) -> None:
    for directory in ("one", "another"):
        vendor.vendor(str(tmp_path / directory), ["ministral-3", "glm4-tools"])
    record = (tmp_path / "one" / "VENDORED").read_bytes()
    assert record == (tmp_path / "another" / "VENDORED").read_bytes()
    title, formats, *lines = record.decode().splitlines()
    assert title == f"# chatformats {chatformats.__version__}"
    assert formats == "# formats: glm4-tools, ministral-3"
    files = {path for path in (tmp_path / "one").rglob("*") if path.is_file() and path.name != "VENDORED"}
    for line in lines:
        digest, path = line.split("  ")
        file = tmp_path / "one" / path
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
        files.remove(file)
    assert files == set()


def test_a_copy_of_everything_changes_nothing(tmp_path: Path) -> None:
    vendor.vendor(str(tmp_path / "cf"))
    for path in (tmp_path / "cf").rglob("*.py"):
        assert path.read_bytes() == (PACKAGE / path.relative_to(tmp_path / "cf")).read_bytes()


def test_the_licence_and_the_version_are_the_projects() -> None:
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert chatformats.__version__ == version


def test_the_package_may_be_in_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "chatformats.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in PACKAGE.rglob("*"):
            file.write(path, path.relative_to(ROOT))
    program = "import sys; sys.path.insert(0, sys.argv[1]); from chatformats import vendor as v; v.vendor(*sys.argv[2:])"
    command = [sys.executable, "-I", "-S", "-c", program, str(archive), str(tmp_path / "cf"), "hebatron"]
    subprocess.run([*command[:-1]], check=True)
    assert vendor.check(str(tmp_path / "cf"))[0] == 0


def test_check_says_what_is_not_as_it_was_written(tmp_path: Path) -> None:
    copy = tmp_path / "cf"
    vendor.vendor(str(copy), ["hebatron"])
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "errors.cpython-311.pyc").touch()
    assert vendor.check(str(copy)) == (0, f"{copy}: as chatformats {chatformats.__version__} writes it\n")
    (copy / "errors.py").write_bytes(b"\n" + (copy / "errors.py").read_bytes())
    (copy / "LICENSE").unlink()
    (copy / "mine.py").touch()
    lines = [
        f"{copy}: {finding}\n" for finding in ("missing: LICENSE", "changed: errors.py", "added: mine.py")
    ]
    assert vendor.check(str(copy)) == (1, "".join(lines))


def test_check_says_what_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "cf"
    vendor.vendor(str(copy), ["hebatron"])
    monkeypatch.setattr(vendor, "__version__", "9.0")
    assert vendor.check(str(copy)) == (1, f"{copy}: behind: chatformats 9.0 has other notes\n")
    monkeypatch.undo()
    # As an older version would have written it.
    record = copy / "VENDORED"
    old = (copy / "values.py").read_bytes()
    older = old + b"# older\n"
    (copy / "values.py").write_bytes(older)
    written, digest = (hashlib.sha256(data).hexdigest() for data in (old, older))
    record.write_text(record.read_text("utf-8").replace(written, digest), "utf-8")
    behind = f"{copy}: behind: chatformats {chatformats.__version__} has other values.py\n"
    assert vendor.check(str(copy)) == (1, behind)
    vendor.vendor(str(copy))
    assert (copy / "values.py").read_bytes() == old
    assert vendor.check(str(copy))[0] == 0
    record.write_text(record.read_text("utf-8").replace("hebatron", "gone", 1), "utf-8")
    behind = f"{copy}: behind: chatformats {chatformats.__version__} has no gone\n"
    assert vendor.check(str(copy)) == (1, behind)


def test_a_copy_keeps_its_formats_until_told(tmp_path: Path) -> None:
    copy = tmp_path / "cf"
    vendor.vendor(str(copy), ["hebatron", "glm4-tools"])
    vendor.vendor(str(copy))
    assert (copy / "VENDORED").read_text("utf-8").splitlines()[1] == "# formats: glm4-tools, hebatron"
    report = vendor.vendor(str(copy), ["glm4-tools"])
    assert report.endswith(" files, with glm4-tools\n")
    assert not (copy / "formats" / "hebatron.py").exists()
    assert not (copy / "formats" / "_xml_tools.py").exists()
    assert vendor.check(str(copy))[0] == 0


def test_what_is_not_known_is_never_overwritten(tmp_path: Path) -> None:
    copy = tmp_path / "cf"
    copy.mkdir()
    (copy / "__init__.py").write_text("mine = 1\n")
    with pytest.raises(ChatFormatError, match="not overwritten, .*: __init__.py "):
        vendor.vendor(str(copy), ["hebatron"])
    assert [path.name for path in copy.iterdir()] == ["__init__.py"]
    (copy / "__init__.py").unlink()

    vendor.vendor(str(copy), ["hebatron"])
    (copy / "formats" / "hebatron.py").write_text("mine = 2\n")
    for formats in (["hebatron"], ["glm4-tools"]):  # it would be overwritten, or deleted
        with pytest.raises(ChatFormatError, match="not overwritten, .*: formats/hebatron.py "):
            vendor.vendor(str(copy), formats)
    assert (copy / "formats" / "hebatron.py").read_text() == "mine = 2\n"
    assert not (copy / "formats" / "glm4_tools.py").exists()


@pytest.mark.parametrize(
    "record", ["", "x\ny\n", "# chatformats 1\n# formats: hebatron\nx\n", b"\xff", "# chatformats 1\n"]
)
def test_a_record_that_is_none(tmp_path: Path, record: str | bytes) -> None:
    (tmp_path / "cf").mkdir()
    (tmp_path / "cf" / "VENDORED").write_bytes(record if isinstance(record, bytes) else record.encode())
    for call in (vendor.vendor, vendor.check):
        with pytest.raises(ChatFormatError, match="VENDORED: not a record that chatformats wrote"):
            call(str(tmp_path / "cf"))


def test_a_record_reaches_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_bytes(b"")
    vendor.vendor(str(tmp_path / "cf"), ["hebatron"])
    with (tmp_path / "cf" / "VENDORED").open("a") as file:
        file.write(f"{hashlib.sha256(b'').hexdigest()}  ../mine.txt\n")
    with pytest.raises(ChatFormatError, match="not a record"):
        vendor.vendor(str(tmp_path / "cf"))
    assert (tmp_path / "mine.txt").exists()


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    with pytest.raises(ChatFormatError, match="no copy is recorded there: No such file"):
        vendor.check(str(tmp_path / "none"))
    with pytest.raises(ChatFormatError, match="name can be imported"):
        vendor.vendor(str(tmp_path / "my-formats"))
    with pytest.raises(ChatFormatError, match="no format is named 'none'"):
        vendor.vendor(str(tmp_path / "cf"), ["none"])
    (tmp_path / "file").touch()
    with pytest.raises(ChatFormatError, match="cannot be written: "):
        vendor.vendor(str(tmp_path / "file"))
