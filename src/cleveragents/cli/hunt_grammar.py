"""The grammar of `cleveragents hunt`; like `grammar`, it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleveragents.cli.plan_grammar import Add, Commands

_ABOUT = (
    "Reads Python code for state that threads may share, tries each candidate in a confined "
    "process of its own, and calls a bug only what it replayed: an interleaving whose outcome no "
    "order of whole calls has. Nothing in your tree changes, unless you apply what --fix made."
)


def add_hunt(commands: Commands, add: Add) -> None:
    """Add `hunt`."""
    hunt = add(commands, "hunt", "find and prove data races in Python code", run=("hunt", "hunt"))
    hunt.description = _ABOUT
    hunt.add_argument("paths", nargs="*", metavar="PATH", help="files or folders (default: all)")
    what = hunt.add_argument_group("what to try")
    what.add_argument("--list", action="store_true", help="show the candidates, run none of them")
    what.add_argument("--all", action="store_true", help="also what nothing says threads share")
    what.add_argument("--only", action="append", metavar="NAME", help="names that hold this text")
    what.add_argument("--most", type=int, default=200, metavar="N", help="at most (default: 200)")
    what.add_argument(
        "--seconds", type=float, default=20.0, metavar="S", help="for each candidate (default: 20)"
    )
    what.add_argument("--at-once", type=int, default=2, metavar="N", help="tried at once, 1 to 64")
    what.add_argument("--python", metavar="FILE", help="the interpreter of your code")
    what.add_argument("--factories", metavar="FILE", help="how to build objects, see docs/hunt.md")
    what.add_argument(
        "--observe", metavar="COMMAND", help="learn arguments from this, such as 'pytest -q'"
    )
    what.add_argument("--model", metavar="NAME", help="let it write how to build what we cannot")
    what.add_argument("--base-url", metavar="URL", help="where the model is served, if elsewhere")
    what.add_argument("--budget", metavar="USD", help="what the model may cost")
    mend = hunt.add_argument_group("mending")
    mend.add_argument("--fix", action="store_true", help="offer locks that hold, as a changeset")
    check = mend.add_mutually_exclusive_group()
    check.add_argument("--check", metavar="COMMAND", help="must pass; the tests, if they are found")
    check.add_argument("--no-check", action="store_true", help="run without a check")
    mend.add_argument("--yes", action="store_true", help="apply without a question")
    tell = hunt.add_argument_group("telling")
    tell.add_argument("--format", choices=("text", "markdown", "sarif", "json"), default="text")
    tell.add_argument("--out", metavar="FILE", help="write the report there instead")
    tell.add_argument("--tests", metavar="FOLDER", help="write a regression test for each bug")
    tell.add_argument("--baseline", metavar="FILE", help="accept the bugs that it names")
    tell.add_argument("--write-baseline", metavar="FILE", help="accept all bugs from now on")
    tell.add_argument("--report", metavar="PLAN", help="tell an earlier hunt again, run nothing")
