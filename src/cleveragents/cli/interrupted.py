"""An apply that died half-way: every command finishes it, or takes it back, before it begins."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output, state
from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.apply.tree_apply import TreeApply
from cleveragents.infrastructure.changes.apply_rows import record_recovered
from cleveragents.workspace import HOME

if TYPE_CHECKING:
    from cleveragents.infrastructure.apply.target import Recovered

_ENDS: Final = {"new": "was finished", "old": "was taken back"}


def finish() -> None:
    """See to what is left, and say what became of it; one that is still running is left alone."""
    root = state.root()
    for one in TreeApply(root, root / HOME, on_recovered=_write_down).recover():
        output.talk(
            f"warning[CA4109]: Apply `{one.apply_id}` died half-way and {_ENDS[one.outcome]}"
        )
        for path in one.edited:
            output.talk(output.facts({"edited since, left as it is": repr(path)}))


def _write_down(recovered: Recovered) -> None:
    # The tree is whole by now. If the books cannot be written the journal stays, and tells them
    # of it the next time.
    try:
        with state.writing() as store:
            record_recovered(store, recovered, time.time())
    except StoreError as error:
        error.facts["apply"] = f"{recovered.apply_id} {_ENDS[recovered.outcome]} in the tree"
        raise
