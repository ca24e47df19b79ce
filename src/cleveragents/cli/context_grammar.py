"""The grammar of `cleveragents context`; like `grammar`, it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleveragents.cli.plan_grammar import Add, Commands

_ABOUT = (
    "Finds the parts of the tree that matter for a task, as an actor of a plan gets them: the text "
    "goes to stdout, and who found what to stderr. The first time, the tree is indexed in your "
    "cache folder; after that, only what changed."
)


def add_context(commands: Commands, add: Add) -> None:
    """Add `context`."""
    context = add(
        commands,
        "context",
        "find the code that matters for a task",
        run=("context", "show_context"),
    )
    context.description = _ABOUT
    context.add_argument(
        "task", nargs="?", metavar="TASK", help="in words, names or a traceback; - reads stdin"
    )
    context.add_argument(
        "--tokens", type=int, metavar="N", help="room (default: setting `context_tokens_max`)"
    )
    context.add_argument(
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="a file that belongs to it; may be repeated",
    )
    context.add_argument(
        "--explain", action="store_true", help="show what was chosen and why, not the text"
    )
    context.add_argument(
        "--wait",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds to wait for files that are not indexed yet (default: 10)",
    )
    context.add_argument(
        "--rebuild", action="store_true", help="first delete the index, and build it anew"
    )
