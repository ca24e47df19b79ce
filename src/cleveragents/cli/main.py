"""The command `cleveragents`: reads the arguments, calls one command, answers with an exit code."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cleveragents.cli.grammar import parser

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing unexpected shows a stack."""
    options = parser().parse_args(arguments)
    from cleveragents.cli import output
    from cleveragents.cli.log_file import kept_log

    with kept_log() as log:
        try:
            code = _exit_code_of(options)
            if log.has_news:
                from cleveragents.cli.failure import concluded

                code = concluded(code, log, as_json=options.json)
            output.flush()
        except output.ReaderGone:
            return 0
    return code


def run() -> None:
    """Entry point of the installed commands `cleveragents` and `clever`."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character must not end the work.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        from cleveragents.cli.leaving import leave

        leave(code)
    sys.exit(code)


def _open_missing_streams() -> None:
    """Put nothing in the place of streams that were closed, as service managers may do.

    The next file that is opened would take their number, and programs would read or write it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  # to the end
            setattr(sys, name, nothing)


def _exit_code_of(options: Namespace) -> int:
    from cleveragents.cli.output import ReaderGone

    module, function = options.run
    try:
        _finish_interrupted_apply()
        command = getattr(import_module(f"cleveragents.cli.{module}"), function)
        code: int = command(options)
    except ReaderGone:
        raise
    except Exception as error:  # noqa: BLE001  # the last door: every error gets a code and a hint
        from cleveragents.cli.failure import fail

        return fail(error, as_json=options.json)
    return code


def _finish_interrupted_apply() -> None:
    """Leave no tree half-changed: whatever is asked, an apply that died is seen to first."""
    from cleveragents.settings import root_of

    if os.path.lexists(root_of() / ".cleveragents" / "apply"):
        from cleveragents.cli.interrupted import finish

        finish()
