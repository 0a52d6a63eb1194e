# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The command line, as a process where bytes and statuses matter, else by ``main``."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import chatformats
from chatformats.cli import main

from . import oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parent.parent
# Line ends of every kind, no newline at the end, and what a legacy locale cannot say.
MESSAGES = [{"role": "user", "content": "a\r\nb\rc\n\u2028 \x85 שלום 日本 🙂"}]
TOOLS = [{"type": "function", "function": {"name": "søk", "parameters": {"type": "object"}}}]
ASCII_LOCALE = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii",
}


def command(*argv: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what ``subprocess`` needs to run the command line in an environment of its own."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LC_"))}
    return {
        "args": [sys.executable, "-m", "chatformats", *argv],
        "cwd": ROOT,
        "env": {**inherited, **(env or {})},
    }


def run(
    *argv: str, stdin: object = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line; ``stdin`` is bytes as they are, or a value to be written as JSON."""
    data = stdin if isinstance(stdin, bytes) else json.dumps(stdin, ensure_ascii=False).encode()
    return subprocess.run(**command(*argv, env=env), input=data, capture_output=True, timeout=60, check=False)


def printed(*argv: str, stdin: object = None, env: Mapping[str, str] | None = None) -> bytes:
    """Return what a run that must succeed prints."""
    result = run(*argv, stdin=stdin, env=env)
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout


def error_line(result: subprocess.CompletedProcess[bytes]) -> str:
    """Return the one line that a run that must fail prints, without the program's name."""
    assert result.returncode == 2
    assert result.stdout == b""
    line = result.stderr.decode()
    assert line.count("\n") == 1 and line.endswith("\n") and len(line.splitlines()) == 1
    assert "Traceback" not in line
    assert line.startswith("chatformats: ")
    return line.removeprefix("chatformats: ").rstrip("\n")


# What is printed


@pytest.mark.parametrize("env", [{}, ASCII_LOCALE], ids=["utf8", "ascii"])
@pytest.mark.parametrize("name", oracle.NAMES)
def test_prints_the_prompt_and_nothing_else(name: str, env: dict[str, str]) -> None:
    request = {"messages": MESSAGES, "tools": TOOLS, "model": "any", "temperature": 0.5, "stream": None}
    prompt = oracle.render(name, MESSAGES, TOOLS)
    assert printed("render", name, stdin=request, env=env) == prompt.encode()


def test_reads_a_list_of_messages_with_a_byte_order_mark_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ønsker.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(MESSAGES, ensure_ascii=False).encode())
    prompt = oracle.render("glm4-tools", MESSAGES).encode()
    assert printed("render", "glm4-tools", str(file)) == prompt
    assert printed("render", "glm4-tools", str(file), env=ASCII_LOCALE) == prompt


def test_dash_is_standard_input() -> None:
    assert printed("render", "hebatron", "-", stdin=MESSAGES) == oracle.render("hebatron", MESSAGES).encode()


@pytest.mark.parametrize("env", [{}, ASCII_LOCALE], ids=["utf8", "ascii"])
def test_text_of_a_flag_is_utf8(env: dict[str, str]) -> None:
    prompt = oracle.render("joyai-llm-flash", MESSAGES, bos_token="<|begin▁of▁sentence|>")
    argv = ("render", "joyai-llm-flash", "--bos-token", "<|begin▁of▁sentence|>")
    assert printed(*argv, stdin=MESSAGES, env=env) == prompt.encode()


def test_json_is_one_line_of_ascii() -> None:
    messages = [{"role": "user", "content": "\ud83d 🙂\u2028\n"}]
    out = printed("render", "hebatron", "--json", stdin=json.dumps(messages).encode())
    assert out.isascii() and out.endswith(b'"\n') and out.count(b"\n") == 1
    assert json.loads(out) == oracle.render("hebatron", messages)


# Where the options come from


@pytest.fixture
def rendered(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Any:
    """Run ``render`` in this process, on a file that holds the input."""

    def rendered(value: object, name: str, *argv: str) -> str:
        file = tmp_path / "input.json"
        file.write_text(json.dumps(value), encoding="utf-8")
        assert main(["render", name, str(file), *argv]) == 0
        return capfdbinary.readouterr().out.decode()

    return rendered


@pytest.mark.parametrize(
    ("request_keys", "flags", "variables"),
    [
        ({}, [], {}),
        ({"add_generation_prompt": True}, [], {"add_generation_prompt": True}),
        ({"add_generation_prompt": None, "chat_template_kwargs": None, "tools": None}, [], {}),
        ({}, ["--add-generation-prompt"], {"add_generation_prompt": True}),
        ({"add_generation_prompt": True}, ["--no-add-generation-prompt"], {}),
        (
            {"chat_template_kwargs": {"add_generation_prompt": True, "enable_thinking": False}},
            [],
            {"add_generation_prompt": True, "enable_thinking": False},
        ),
        (
            {"add_generation_prompt": False, "chat_template_kwargs": {"add_generation_prompt": True}},
            [],
            {"add_generation_prompt": True},
        ),
        (
            {"chat_template_kwargs": {"enable_thinking": False}, "add_generation_prompt": True},
            ["--enable-thinking", "--no-truncate-history-thinking"],
            {"add_generation_prompt": True, "enable_thinking": True, "truncate_history_thinking": False},
        ),
        # A template takes any value for a truth.
        (
            {"chat_template_kwargs": {"enable_thinking": None}, "add_generation_prompt": True},
            [],
            {"add_generation_prompt": True, "enable_thinking": None},
        ),
    ],
)
def test_options(
    rendered: Any, request_keys: dict[str, Any], flags: list[str], variables: dict[str, Any]
) -> None:
    messages = [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "2", "reasoning_content": "because"},
        {"role": "user", "content": "3"},
    ]
    prompt = oracle.render("hebatron", messages, **variables)
    assert rendered({"messages": messages, **request_keys}, "hebatron", *flags) == prompt


@pytest.mark.parametrize("name", oracle.NAMES)
def test_every_option_has_a_flag(rendered: Any, name: str) -> None:
    fmt = chatformats.get(name)
    messages = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
    parameters = inspect.signature(fmt.render).parameters
    for variable in fmt.variables:
        flag = variable.replace("_", "-")
        if isinstance(parameters[variable].default, bool):
            cases: list[tuple[object, list[str]]] = [(True, [f"--{flag}"]), (False, [f"--no-{flag}"])]
        else:
            cases = [("%x y", [f"--{flag}", "%x y"]), ("", [f"--{flag}="]), ("-x", [f"--{flag}=-x"])]
        for value, argv in cases:
            expected = oracle.render(name, messages, **{variable: value})
            assert rendered(messages, name, *argv) == expected
            in_file = {"messages": messages, "chat_template_kwargs": {variable: value}}
            assert rendered(in_file, name) == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["ministral-3", "FILE", "--json", "--bos-token", "B"],
        ["ministral-3", "--bos-token", "B", "FILE", "--json"],
        ["ministral-3", "--bos-token", "B", "--json", "FILE"],
        ["--json", "--bos-token", "B", "ministral-3", "FILE"],
        ["--bos-token=B", "ministral-3", "--json", "FILE"],
        ["--json", "--bos-token", "B", "--", "ministral-3", "FILE"],
    ],
)
def test_order_of_arguments(tmp_path: Path, capsysbinary: Any, argv: list[str]) -> None:
    file = tmp_path / "input.json"
    file.write_text(json.dumps(MESSAGES), encoding="utf-8")
    assert main(["render", *(str(file) if word == "FILE" else word for word in argv)]) == 0
    assert json.loads(capsysbinary.readouterr().out) == oracle.render("ministral-3", MESSAGES, bos_token="B")


# What goes wrong

NAMES = ", ".join(oracle.NAMES)
INPUT_ERRORS: dict[str, tuple[object, str]] = {
    "empty": (b"", "standard input: not JSON: line 1 column 1: Expecting value"),
    "broken_json": (
        b'[\n  {"role": "user" "content": ""}]',
        "standard input: not JSON: line 2 column 19: Expecting ',' delimiter",
    ),
    "not_utf8": (b'[\n"\xff"]', "standard input: not UTF-8: byte 0xff in line 2"),
    "utf16": ("[]".encode("utf-16"), "standard input: not UTF-8: byte 0xff in line 1"),
    "nested_too_deep": (b"[" * 200_000, "standard input: nested too deep to be read"),
    "same_key_twice": (
        b'{"messages": [{"role": "user", "content": "a", "role": "tool"}]}',
        "standard input: an object has the key 'role' more than once",
    ),
    "no_list_no_object": (3, "input: expected a list of messages, or an object that has them, got int"),
    "null": (None, "input: expected a list of messages, or an object that has them, got None"),
    "no_messages": ({"tools": []}, "messages: expected a list, but it is missing"),
    "null_messages": ({"messages": None}, "messages: expected a list, got None"),
    "messages_in_a_string": ({"messages": "Hi"}, "messages: expected a list, got a string"),
    "tools_in_an_object": ({"messages": [], "tools": {}}, "tools: expected a list, got dict"),
    "kwargs_in_a_list": (
        {"messages": [], "chat_template_kwargs": []},
        "chat_template_kwargs: expected an object, got list",
    ),
    "generation_prompt_in_a_string": (
        {"messages": [], "add_generation_prompt": "false"},
        "add_generation_prompt: expected a boolean, got a string",
    ),
    "other_kwargs": (
        {"messages": [], "chat_template_kwargs": {"bos_token": "", "enable_thinking": True, "a\n": 1}},
        (
            "chat_template_kwargs: hebatron has no 'bos_token', 'a\\n'; "
            "it has add_generation_prompt, continue_final_message, enable_thinking, truncate_history_thinking"
        ),
    ),
    "lone_surrogate": (
        b'[{"role": "\\ud83d", "content": ""}]',
        "the prompt has a lone surrogate (U+D83D at character {index}), which UTF-8 cannot say: use --json",
    ),
}


@pytest.mark.parametrize(("stdin", "message"), INPUT_ERRORS.values(), ids=INPUT_ERRORS)
def test_bad_input_is_one_line(stdin: object, message: str) -> None:
    index = oracle.render("hebatron", [{"role": "\ud83d", "content": ""}]).index("\ud83d")
    assert error_line(run("render", "hebatron", stdin=stdin)) == message.replace("{index}", str(index))


def test_integer_of_thousands_of_digits_is_one_line() -> None:
    # Which versions of Python limit them, and how they say so, differs.
    result = run("render", "hebatron", stdin=b"[" + b"9" * 5000 + b"]")
    assert error_line(result)


@pytest.mark.parametrize("env", [{}, ASCII_LOCALE], ids=["utf8", "ascii"])
def test_what_the_format_refuses_is_one_line_with_its_place(env: dict[str, str]) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user\n\x1b[31mé\u2028", "content": "b"}]
    with pytest.raises(chatformats.ChatFormatError) as info:
        chatformats.get("ministral-3").render(messages)
    line = error_line(run("render", "ministral-3", stdin=messages, env=env))
    assert line.startswith(info.value.path)
    assert line.isprintable()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: COMMAND (see python -m chatformats --help)"),
        (["render"], "the following arguments are required: NAME (see python -m chatformats render --help)"),
        (["render", "gpt-2"], f"no format is named 'gpt-2'; there are {NAMES}"),
        (["render", "gpt-2", "--bos-token", "x"], f"no format is named 'gpt-2'; there are {NAMES}"),
        (["render", "a\nb"], f"no format is named 'a\\nb'; there are {NAMES}"),
        (
            ["render", "hebatron", "--bos-token", "x"],
            (
                "hebatron has no --bos-token; its options are "
                "--add-generation-prompt, --continue-final-message, --enable-thinking, --truncate-history-thinking"
            ),
        ),
        (
            ["render", "ministral-3", "--bos=x", "--no-enable-thinking"],
            (
                "ministral-3 has no --bos, --no-enable-thinking; its options are "
                "--add-generation-prompt, --continue-final-message, --bos-token, --eos-token"
            ),
        ),
        (
            ["render", "ministral-3", "--bos-token"],
            "argument --bos-token: expected one argument (see python -m chatformats render --help)",
        ),
        (
            ["render", "hebatron", "a", "b", "c"],
            "expected one FILE, got also b, c (see python -m chatformats render --help)",
        ),
        (["render", "hebatron", "no\nfile"], "no\\nfile: cannot be read: No such file or directory"),
        (["render", "hebatron", os.curdir], ".: cannot be read: Is a directory"),
        (["list", "x"], "unrecognized arguments: x (see python -m chatformats list --help)"),
    ],
)
def test_bad_arguments_are_one_line(argv: list[str], message: str) -> None:
    assert error_line(run(*argv, stdin=MESSAGES)) == message


def test_unknown_command_is_one_line_that_names_the_commands() -> None:
    line = error_line(run("lst"))
    assert "lst" in line and "list" in line and "render" in line


def test_status_in_this_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "gpt-2"]) == 2
    assert capsys.readouterr().err == f"chatformats: no format is named 'gpt-2'; there are {NAMES}\n"


# Pipes and signals


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes and signals")
class TestPipes:
    def test_reader_that_leaves_early(self) -> None:
        messages = [{"role": "user", "content": "x" * 1_000_000}]
        process = subprocess.Popen(
            **command("render", "hebatron"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.write(json.dumps(messages).encode())
        process.stdin.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(60) == 141

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
    @pytest.mark.parametrize(
        "argv",
        [["render", "hebatron"], ["show", "hebatron"], ["parse", "hebatron"], ["--help"], ["list"]],
        ids=" ".join,
    )
    def test_full_disk_is_one_line(self, argv: list[str]) -> None:
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                **command(*argv),
                input=json.dumps(MESSAGES).encode(),
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=60,
                check=False,
            )
        assert result.returncode == 2
        assert result.stderr == b"chatformats: standard output: cannot be written: No space left on device\n"

    @pytest.mark.parametrize(
        ("descriptor", "message"),
        [
            (0, "standard input: cannot be read: Bad file descriptor"),
            (1, "standard output: cannot be written: it is closed"),
        ],
    )
    @pytest.mark.parametrize("name", ["render", "show", "parse"])
    def test_closed_stream_is_one_line(
        self, tmp_path: Path, name: str, descriptor: int, message: str
    ) -> None:
        file = tmp_path / "input.json"
        file.write_text(json.dumps(MESSAGES), encoding="utf-8")
        process = command(name, "hebatron", *([str(file)] if descriptor == 1 else []))
        process["args"] = ["sh", "-c", f'exec "$@" {descriptor}>&-', "sh", *process["args"]]
        result = subprocess.run(**process, capture_output=True, timeout=60, check=False)
        assert error_line(result) == message

    def test_interrupt_is_quiet(self) -> None:
        process = subprocess.Popen(
            **command("render", "hebatron"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A process in the background of a script is made to ignore it, and so are its children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
        )
        assert process.stdin
        # A pipe's buffer is smaller: once all of it is written, the process is reading.
        process.stdin.write(b" " * 1_000_000)
        process.stdin.flush()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout, stderr) == (130, b"", b"")


# list, help, start-up


def test_list_shows_each_format_and_its_options() -> None:
    blocks = printed("list", env=ASCII_LOCALE).decode()
    assert [line for line in blocks.splitlines() if not line.startswith(" ")] == list(oracle.NAMES)
    for name in oracle.NAMES:
        fmt = chatformats.get(name)
        parameters = inspect.signature(fmt.render).parameters
        options = ", ".join(f"{key}={parameters[key].default!r}" for key in fmt.variables) or "none"
        assert f"{name}\n    {fmt.template}\n    options: {options}\n" in blocks


def test_list_shows_these_options() -> None:
    blocks = printed("list").decode()
    assert "options: bos_token='<s>', eos_token='</s>'\n" in blocks
    assert "options: enable_thinking=True, truncate_history_thinking=True\n" in blocks


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (["--help"], ["COMMAND", "list", "render", "example:\n  echo "]),
        (["list", "--help"], ["options with their defaults"]),
        (["render", "--help"], ["NAME [FILE]", *oracle.NAMES, "--json", "--add-generation-prompt"]),
        (["render", "ministral-3", "-h"], ["--bos-token TEXT", "default: '<s>'", "options of ministral-3"]),
        (["render", "-h", "hebatron"], ["--no-enable-thinking", "default: True"]),
    ],
)
def test_help(argv: list[str], texts: list[str]) -> None:
    out = printed(*argv, env=ASCII_LOCALE).decode()
    for text in texts:
        assert text in out


def test_flags_and_defaults_are_read_off_render(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    defaults = chatformats.get("ministral-3").render.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "bos_token", "100 %%")  # of which argparse would print one
    with pytest.raises(SystemExit) as info:
        main(["render", "ministral-3", "--help"])
    assert info.value.code == 0
    assert "default: '100 %%'" in capsys.readouterr().out


def test_example_of_the_help_runs() -> None:
    example = printed("--help").decode().partition("example:\n  echo '")[2].rstrip("\n")
    message, _, call = example.partition("' | python -m chatformats ")
    prompt = oracle.render("hebatron", json.loads(message), add_generation_prompt=True)
    assert printed(*call.split(), stdin=json.loads(message)) == prompt.encode()


def test_loads_only_the_format_that_renders() -> None:
    process = command()
    process["args"] = [
        sys.executable,
        "-c",
        (
            "import sys; from chatformats.cli import main; main(['render', 'glm4-tools', '--json']);"
            "print(*sorted(name for name in sys.modules if name.startswith('chatformats.formats.')))"
        ),
    ]
    result = subprocess.run(**process, input=b"[]", capture_output=True, timeout=60, check=True)
    assert result.stdout.splitlines()[1:] == [b"chatformats.formats.glm4_tools"]


def test_verify_says_whether_a_format_may_stand_in(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = oracle.source("ministral-3")
    template = tmp_path / "chat_template.jinja"
    template.write_bytes(source.replace("\n", "\r\n").encode())
    assert main(["verify", "ministral-3", str(template)]) == 0
    assert capfdbinary.readouterr().out.decode().startswith(f"ministral-3 may stand in for {template}: ")
    template.write_bytes(source.replace("[INST]", "[USER]").encode())
    assert main(["verify", "ministral-3", str(template)]) == 1
    assert b"\n-'[USER]" in capfdbinary.readouterr().out
    template.write_bytes(b"{% nothing %}")
    assert main(["verify", "ministral-3", str(template)]) == 2
    assert main(["verify", "ministral-3", str(tmp_path / "none")]) == 2
    assert len(capfdbinary.readouterr().err.splitlines()) == 2


def test_vendor_copies_and_checks(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    copy = str(tmp_path / "cf")
    assert main(["vendor", copy, "hebatron"]) == 0
    assert main(["vendor", "--check", copy]) == 0
    (tmp_path / "cf" / "errors.py").write_text("")
    assert main(["vendor", copy, "--check"]) == 1
    assert capfdbinary.readouterr().out.decode().endswith(f"{copy}: changed: errors.py\n")
    for refused in (
        [copy],
        [copy, "none"],
        ["--check", copy, "hebatron"],
        ["--check", str(tmp_path / "no")],
        [],
    ):
        assert main(["vendor", *refused]) == 2
        assert capfdbinary.readouterr().err.count(b"\n") == 1
