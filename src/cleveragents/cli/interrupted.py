"""An apply that died half-way: every command finishes it, or takes it back, before it begins."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output, state
from cleveragents.cli.table import one_line
from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.rescue import RESCUED
from cleveragents.infrastructure.apply.tree_apply import TreeApply
from cleveragents.infrastructure.changes.apply_rows import plan_and_commit, record_recovered
from cleveragents.workspace import HOME, check_own

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.apply.target import Recovered

_ENDS: Final = {"new": "was finished", "old": "was taken back"}


def finish() -> None:
    """See to what is left, and say what became of it; one that is still running is left alone."""
    root = state.root()
    check_own(root / HOME)
    for one in TreeApply(root, root / HOME, on_recovered=_write_down).recover():
        if one.outcome == "left":
            _tell_left(one)
            continue
        output.talk(
            f"warning[CA4109]: Apply `{one.apply_id}` died half-way and {_ENDS[one.outcome]}"
        )
        for path in one.edited:
            output.talk(output.facts({"edited since, left as it is": repr(path)}))
        tell_rescued(one.apply_id, one.rescued)
        plan, commit = plan_and_commit(one.note)
        if plan is not None and commit is not None and one.outcome == "new":
            command = shlex.join(["cleveragents", "changes", "apply", plan, "--commit"])
            output.talk(f"\nhint: Run `{command}` to make its commit, if it is not there yet")


def tell_rescued(apply_id: str, paths: Sequence[str]) -> None:
    """Say where old files are that somebody still wrote to while they were replaced."""
    for path in paths:
        output.talk(f"warning: {path!r} was still written to while it was replaced")
        output.talk(output.facts({"kept": f"{HOME}/{RESCUED}/{apply_id}"}))


def _tell_left(one: Recovered) -> None:
    """Say that a journal is not followed; whatever else was asked for goes on."""
    # Both may be a stranger's words.
    why = refusals.journal_damaged(one_line(one.apply_id), one_line(one.reason))
    output.talk(f"warning[{why.code}]: {why.message}\n\nhint: {why.hint}")


def _write_down(recovered: Recovered) -> None:
    # The tree is whole by now. If the books cannot be written the journal stays, and tells them
    # of it the next time.
    try:
        with state.writing() as store:
            record_recovered(store, recovered, time.time())
    except StoreError as error:
        error.facts["apply"] = f"{recovered.apply_id} {_ENDS[recovered.outcome]} in the tree"
        raise
