"""`cleveragents undo`: take back what came into the tree last, or one actor's part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.cli import output
from cleveragents.cli.changes import apply_record, counted, opened
from cleveragents.cli.interrupted import tell_rescued
from cleveragents.cli.table import one_line
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.changes.merge_rows import unknown
from cleveragents.infrastructure.changes.undo import Undo, nothing_there
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.plan_apply import Prospect


def undo(options: Namespace) -> int:
    """Take back an apply, a plan's last one, the tree's last one, or the part of an actor."""
    what = None if options.what is None else plain(options.what)
    with opened() as changes:
        if changes is None:
            raise nothing_there() if what is None else _unknown(what)
        undoing = Undo(changes.store, changes.repository)
        prospect = _prospect(undoing, what, options)
        if options.dry_run:
            _tell_prospect(Difference(changes.repository, prospect.before, prospect.after), options)
            return 0
        applied = undoing.carry_out(prospect)
        assert applied is not None, "only an apply can have nothing to do"
        tell_rescued(applied.id, applied.rescued)
        _tell(applied, options, puts_back=undoing.puts_back(applied))
    return 0


def _prospect(undoing: Undo, what: str | None, options: Namespace) -> Prospect:
    if options.actor is not None:
        plan_id = undoing.last().plan_id if what is None else what
        return undoing.part_prospect(plan_id, plain(options.actor), take=options.take)
    known = any(one.id == what for one in undoing.applies())
    apply_id = what if what is not None and known else undoing.last(what).id
    return undoing.revert_prospect(apply_id, take=options.take)


def _tell_prospect(difference: Difference, options: Namespace) -> None:
    if options.json:
        for record in difference.records():
            output.record({**record, "dry_run": True})
        return
    output.raw(difference.summary())
    output.talk("Nothing was changed: this is what would be")


def _tell(applied: Applied, options: Namespace, *, puts_back: bool) -> None:
    back = f"cleveragents undo {applied.id}"
    if options.json:
        output.record({**apply_record(applied), "take_back": back})
        return
    whose = f" of `{one_line(applied.actors[0])}`" if applied.of_apply is None else ""
    what = f"{counted(applied.files, 'file')}{whose} of plan `{one_line(applied.plan_id)}`"
    so_already = "" if applied.files else ": the tree was so already"
    output.talk(f"{'Put back' if puts_back else 'Took back'} {what}{so_already}")
    output.talk(f"\nhint: Run `{back}` to {'take that back' if puts_back else 'put that back'}")


def _unknown(what: str) -> Exception:
    hint = "Run `cleveragents changes show` to see which there are"
    return unknown("Plan or apply", what, hint)
