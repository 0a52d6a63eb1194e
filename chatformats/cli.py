# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: The chatformats authors
"""The command line: a function for each command, whose docstring is its help.

What is read and printed is UTF-8 whatever the locale: a prompt is exact bytes, not text for a terminal.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys

from .errors import ChatFormatError, expected
from .registry import get, names
from .streams import read_bytes, source_of, write_bytes
from .undefined import UNDEFINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final, NoReturn

    from .formatter import ChatFormatter
    from .spans import Rendered

# Right in a clone that is not installed, and in a copy under another name.
_PROGRAM: Final = f"python -m {__package__}"
_EXAMPLE: Final = f"""\
example:
  echo '[{{"role": "user", "content": "Hi"}}]' | {_PROGRAM} render hebatron --add-generation-prompt"""
_ENDS: Final = {
    "add_generation_prompt": "end where the model's answer begins; ",
    "continue_final_message": "end where the last message's content ends; ",
}
_KINDS: Final = {bool: "a boolean", list: "a list", dict: "an object"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: its own, or 2 after one line on standard error.

    ``argv`` are the arguments after the program's name, by default those of the process.
    ``--help`` ends in SystemExit, as argparse has it.
    """
    try:
        return _run(sys.argv[1:] if argv is None else argv) or 0
    except ChatFormatError as error:
        # Names of files and keys of the input may hold line breaks and terminal escapes.
        line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(error))
        print(f"{__package__}: {line}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 141  # what a shell says of a program that ended by SIGPIPE
    except KeyboardInterrupt:
        return 130


def _run(argv: Sequence[str]) -> int | None:
    commands: dict[str, Callable[[Sequence[str]], int | None]] = {
        "list": _list,
        "parse": _parse,
        "render": _render,
        "show": _show,
        "vendor": _vendor,
        "verify": _verify,
    }
    lines = "".join(f"  {name:<8}{inspect.getdoc(run)}\n" for name, run in commands.items())
    parser = _Parser(
        prog=_PROGRAM,
        usage=f"{_PROGRAM} COMMAND ...",
        description="Write the prompt that a model's chat template makes of a conversation, without Jinja.",
        epilog=f"commands, each with a --help of its own:\n{lines}\n{_EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=commands, metavar="COMMAND", help=", ".join(commands))
    return commands[parser.parse_args(argv[:1]).command](argv[1:])


def _list(argv: Sequence[str]) -> None:
    """Show the formats: name, whose template it is, options with their defaults."""
    _Parser(prog=f"{_PROGRAM} list", description=inspect.getdoc(_list)).parse_args(argv)
    for name in names():
        fmt = get(name)
        options = _options(fmt)
        shown = ", ".join(f"{key}={options[key]!r}" for key in fmt.variables) or "none"
        _write(f"{name}\n    {fmt.template}\n    options: {shown}\n")


def _render(argv: Sequence[str]) -> None:
    """Print the prompt that a format makes of a conversation, exactly: no newline is added."""
    parser = _conversation_parser(_render, argv)
    parser.add_argument("--json", action="store_true", help="print it as a JSON string, in ASCII, on a line")
    args, fmt, messages, tools, keywords = _request(parser, argv)
    render: Callable[..., str] = fmt.render
    prompt = render(messages, tools, **keywords)
    _write(json.dumps(prompt) + "\n" if args.json else prompt)


def _show(argv: Sequence[str]) -> None:
    """Show who wrote what of a prompt: in colours on a terminal, else in markers, or as a web page."""
    from . import show

    parser = _conversation_parser(_show, argv)
    parser.add_argument("--html", metavar="PAGE", help="write it to this file, as a page of its own")
    args, fmt, messages, tools, keywords = _request(parser, argv)
    render_segments: Callable[..., Rendered] = fmt.render_segments
    rendered = render_segments(messages, tools, **keywords)
    if args.html is not None:
        try:
            with open(args.html, "wb") as page:
                # What UTF-8 cannot say is a lone surrogate; a page shows it as a question mark.
                page.write(show.to_html(rendered, fmt.name).encode("utf-8", "replace"))
        except OSError as error:
            raise ChatFormatError(f"cannot be written: {error.strerror}", args.html) from error
    elif sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _write(show.to_terminal(rendered))
    else:
        _write(show.to_plain(rendered))
    for line in show.warnings(rendered):
        print(f"warning: {line}", file=sys.stderr)


def _vendor(argv: Sequence[str]) -> int:
    """Copy the package, with just some formats, into another repository; or check such a copy."""
    from . import vendor

    parser = _Parser(prog=f"{_PROGRAM} vendor", description=inspect.getdoc(_vendor))
    parser.add_argument("directory", metavar="DIRECTORY", help="the copy; its name is the package's")
    names_help = f"formats, by default those of the copy, or all: {', '.join(names())}"
    parser.add_argument("names", metavar="NAME", nargs="*", help=names_help)
    check_help = "only say whether the copy was changed or is behind: exit status 1"
    parser.add_argument("--check", action="store_true", help=check_help)
    args = parser.parse_args(argv)
    if args.check and args.names:
        parser.error("--check takes no NAME: the copy says which formats it has")
    status, report = (
        vendor.check(args.directory) if args.check else (0, vendor.vendor(args.directory, args.names))
    )
    _write(report)
    return status


def _verify(argv: Sequence[str]) -> int:
    """Say whether a format may stand in for a template file, and where they differ."""
    from .tokenizer_config import read_text
    from .verify import verify

    statuses = """exit status:
  0  it may: the fingerprint is the same
  1  it may not: a conversation that shows a difference is printed
  2  it cannot be told: the file is no template, or jinja2 is not installed
  3  undecided: another fingerprint, but no difference was found"""
    parser = _Parser(
        prog=f"{_PROGRAM} verify",
        description=inspect.getdoc(_verify),
        epilog=statuses,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help=f"the format: {', '.join(names())}")
    parser.add_argument("file", metavar="TEMPLATE_FILE", help="a Jinja chat template")
    args = parser.parse_args(argv)
    status, report = verify(get(args.name), read_text(args.file), args.file)
    _write(report)
    return status


def _parse(argv: Sequence[str]) -> None:
    """Read what a model wrote: content, reasoning and tool calls as JSON, and what was malformed."""
    from . import parsing_cli

    parser = _Parser(prog=f"{_PROGRAM} parse", description=inspect.getdoc(_parse))
    parsing_cli.add_arguments(parser)
    parsing_cli.run(parser.parse_intermixed_args(argv))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ChatFormatError(f"{message} (see {self.prog} --help)")

    def print_help(self, file: object = None) -> None:
        _write(self.format_help())


def _conversation_parser(run: Callable[..., None], argv: Sequence[str]) -> _Parser:
    # The format's flags are known once its module is loaded, and only that module is to be loaded.
    fmt = next((get(word) for word in argv if word in names()), None)
    prog = f"{_PROGRAM} {run.__name__[1:]}"
    parser = _Parser(
        prog=prog,
        usage=f"{prog} NAME [FILE] [flags]",
        description=inspect.getdoc(run),
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    file_help = (
        "JSON: a list of messages, or an object like a chat-completions request, of which messages, tools, "
        'add_generation_prompt, continue_final_message and chat_template_kwargs are read; "-", or none, is standard input'
    )
    parser.add_argument("name", metavar="NAME", help=f"the format: {', '.join(names())}")
    parser.add_argument("file", metavar="FILE", nargs="?", default="-", help=file_help)
    title, meaning = "options", f"Each format has more: {prog} NAME --help"
    if fmt:
        # After its first paragraph, render's docstring says what the options mean.
        meaning = (inspect.getdoc(fmt.render) or "").partition("\n\n")[2].replace("``", "")
        title = f"options of {fmt.name}"
    group = parser.add_argument_group(f"{title}, which win over the file's", meaning)
    for key, default in _options(fmt).items():
        about = _ENDS.get(key, "")
        about += f"default: {default!r}".replace("%", "%%")
        if isinstance(default, bool):
            group.add_argument(_flag(key), dest=key, help=about, action=argparse.BooleanOptionalAction)
        else:
            group.add_argument(_flag(key), dest=key, help=about, metavar="TEXT", type=_utf8)
    return parser


def _request(
    parser: _Parser, argv: Sequence[str]
) -> tuple[argparse.Namespace, ChatFormatter, object, object, dict[str, object]]:
    """Return the arguments, the format, and what the file and the flags ask it to render."""
    # Not intermixed, Python 3.10 to 3.12 would refuse a FILE that follows a flag.
    args, unknown = parser.parse_known_intermixed_args(argv)
    fmt = get(args.name)
    options = _options(fmt)
    flags = [word.partition("=")[0] for word in unknown if word.startswith("-")]
    if flags:
        own = ", ".join(map(_flag, options))
        raise ChatFormatError(f"{fmt.name} has no {', '.join(flags)}; its options are {own}")
    if unknown:
        parser.error(f"expected one FILE, got also {', '.join(unknown)}")
    messages, tools, keywords = _conversation(_read_json(args.file), fmt.name, options)
    keywords.update((key, getattr(args, key)) for key in options if getattr(args, key) is not None)
    return args, fmt, messages, tools, keywords


def _options(fmt: ChatFormatter | None) -> dict[str, object]:
    defaults: dict[str, object] = {"add_generation_prompt": False, "continue_final_message": False}
    if fmt:
        parameters = inspect.signature(fmt.render).parameters
        defaults.update((key, parameters[key].default) for key in fmt.variables)
    return defaults


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")


def _utf8(argument: str) -> str:
    # Python has read the argument in the locale's encoding; ASCII, for one, has no "▁".
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _read_json(file: str) -> object:
    data = read_bytes(file)
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = f"not UTF-8: byte 0x{error.object[error.start]:02x} in line {line}"
    except json.JSONDecodeError as error:
        problem = f"not JSON: line {error.lineno} column {error.colno}: {error.msg}"
    except RecursionError:
        problem = "nested too deep to be read"
    except ValueError as error:  # _object's, or an integer of thousands of digits
        problem = str(error)
    raise ChatFormatError(problem, source_of(file))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        # json.loads would keep the last one and drop the others without a word.
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ChatFormatError(f"an object has the key {twice!r} more than once")
    return value


def _conversation(
    value: object, name: str, options: Mapping[str, object]
) -> tuple[object, object, dict[str, object]]:
    if isinstance(value, list):
        return value, None, {}
    if not isinstance(value, dict):
        raise expected("a list of messages, or an object that has them", value, ("input",))
    given = {key: item for key, item in value.items() if item is not None}
    messages = _checked(value.get("messages", UNDEFINED), list, "messages")
    tools = _checked(given["tools"], list, "tools") if "tools" in given else None
    keywords = _checked(given.get("chat_template_kwargs", {}), dict, "chat_template_kwargs")
    unknown = [repr(key) for key in keywords if key not in options]
    if unknown:
        problem = f"{name} has no {', '.join(unknown)}; it has {', '.join(options)}"
        raise ChatFormatError(problem, "chat_template_kwargs")
    for key in _ENDS:
        if key in given:
            keywords = {key: _checked(given[key], bool, key), **keywords}
    # The options' values are the format's to judge: a template takes any value for a truth.
    return messages, tools, keywords


def _checked(value: object, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise expected(_KINDS[kind], value, (name,))
    return value


def _write(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        # With "surrogatepass" it would not be UTF-8, and with a "?" in its place not the prompt.
        code = f"U+{ord(text[error.start]):04X} at character {error.start}"
        problem = f"the prompt has a lone surrogate ({code}), which UTF-8 cannot say: use --json"
        raise ChatFormatError(problem) from error
    write_bytes(data)
