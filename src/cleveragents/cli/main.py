"""The command `cleveragents`: reads the arguments, calls one command, answers with an exit code."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from cleveragents._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT = "Run many AI actors on one codebase at once; every dollar, error and change accounted for."
_INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """Return the whole grammar of the command line; commands themselves are imported late."""
    top = argparse.ArgumentParser(prog="cleveragents", description=_ABOUT, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"cleveragents {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="watch many actors share one budget, without a key or a server",
        description="Twenty scripted actors at once spend, fail, look for context and change files "
        "in a temporary git repository; at the end the books are checked and shown.",
        allow_abbrev=False,
    )
    demo.add_argument("--actors", type=int, default=20, metavar="N", help="1 to 256 (default: 20)")
    demo.add_argument("--seed", type=int, default=7, metavar="N", help="script of the actors")
    demo.add_argument("--budget-usd-max", default="0.60", metavar="USD", help="default: 0.60")
    _add_json(demo)
    settings = commands.add_parser(
        "settings",
        help="show every setting, its value and where it comes from",
        allow_abbrev=False,
    )
    _add_json(settings)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing unexpected shows a stack."""
    options = parser().parse_args(arguments)
    try:
        if options.command == "demo":
            from cleveragents.cli.demo import demo

            return demo(options)
        from cleveragents.cli.settings import show_settings

        return show_settings(options)
    except Exception as error:  # noqa: BLE001  # the last door: every error gets a code and a hint
        from cleveragents.cli.failure import fail

        return fail(error, as_json=options.json)


def run() -> None:
    """Entry point of the installed commands `cleveragents` and `clever`."""
    try:
        code = main()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.exit(code)


def _add_json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="answer as JSON on stdout")
