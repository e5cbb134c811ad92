"""The command line: `cuda-fork-guard COMMAND`, the same as `python -m cuda_fork_guard COMMAND`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class _Command(Protocol):
        SUMMARY: str

        def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
        def run(self, args: argparse.Namespace) -> int: ...


_DEFAULT = "doctor"

# Command: its module in this package. Each has SUMMARY, add_arguments(parser) and run(args) -> exit code.
_COMMANDS = {
    "doctor": "doctor",
    "demo": "demo",
    "check-import": "check_import",
    "holders": "holders",
}
_ABOUT_ALL = ("-h", "--help", "--version")


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    # `cuda-fork-guard --json` is doctor's: only a word that is no option can name a command.
    if not words or (words[0].startswith("-") and words[0] not in _ABOUT_ALL):
        words.insert(0, _DEFAULT)
    args = _parser(words[0]).parse_args(words)
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        code = run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 128 + 2
    except BrokenPipeError:
        # Whoever read has gone (`| head`). What is left to write would fail once more at exit, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + 13


def _parser(wanted: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cuda-fork-guard", description="Finds forks that break CUDA.")
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module_name in _COMMANDS.items():
        module = f"{__name__}.{module_name}"
        if find_spec(module) is None:
            continue
        if wanted in ("-h", "--help", name):
            command: _Command = importlib.import_module(module)
            sub = commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
        else:
            # Its name only, for the message that lists them all: each command pays for its own imports.
            commands.add_parser(name)
    return parser


class _Version(argparse.Action):
    # importlib.metadata costs more than `holders` itself: only for who asks.
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(version("cuda-fork-guard"))
        parser.exit()
