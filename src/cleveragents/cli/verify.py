"""`cleveragents verify`: the books of money, errors and changes, and the trail under them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output, state
from cleveragents.cli.table import one_line
from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.books import check_books
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.sandbox import sandbox_rows
from cleveragents.infrastructure.sandbox.owner import Owner
from cleveragents.infrastructure.sandbox.sandbox import SandboxState
from cleveragents.workspace import HOME

if TYPE_CHECKING:
    import sqlite3
    from argparse import Namespace
    from collections.abc import Sequence

    from cleveragents.infrastructure.books import Book
    from cleveragents.infrastructure.sandbox.sandbox import SandboxInfo

_SHOWN_MAX: Final = 20
#: Counts that come of money alone are checked, and made anew, elsewhere.
_HINTS: Final = {"money": "Run `cleveragents audit rebuild` to make the balances anew"}


def verify(options: Namespace) -> int:
    """Check every book; ends with 1 when one does not hold, and names what is wrong."""
    with state.reading() as connection:
        if connection is None:
            return state.nothing("Nothing to verify yet", "Run a plan, then look again")
        # A text that is no UTF-8 any more must be found wrong, not stop the reading of it.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        left = _left_by_the_dead(connection)
        books = tuple(_with_left(one, left) for one in check_books(connection, _repository()))
    for book in books:
        if options.json:
            output.record(_record(book))
        else:
            output.data(_line(book))
    broken = [book for book in books if book.wrong]
    if left:
        _tell_left(left)
    if broken:
        raise _do_not_hold(broken, len(books))
    return 0


def _left_by_the_dead(connection: sqlite3.Connection) -> tuple[SandboxInfo, ...]:
    """Return sandboxes whose process died before their changes were in the store."""
    now = time.time()

    def is_dead(one: SandboxInfo) -> bool:
        owner = Owner.parse(one.owner)
        return one.lease_until < now or (owner is not None and owner.is_gone)

    kept = sandbox_rows.find_all(connection, kept_only=True)
    return tuple(one for one in kept if one.state is SandboxState.LIVE and is_dead(one))


def _with_left(book: Book, left: Sequence[SandboxInfo]) -> Book:
    """Count them with the changes: how many each holds is known when it is collected."""
    if book.name != "changes":
        return book
    return replace(book, counts={**book.counts, "uncollected": len(left)})


def _tell_left(left: Sequence[SandboxInfo]) -> None:
    plans = ", ".join(f"`{one}`" for one in sorted({one_line(info.plan) for info in left}))
    holding = (
        "1 sandbox of a dead process holds"
        if len(left) == 1
        else (f"{len(left)} sandboxes of dead processes hold")
    )
    output.talk(f"warning[CA5003]: {holding} work that is not in the store yet")
    output.talk(output.facts({"plans": plans}))
    output.talk("\nhint: Run `cleveragents doctor --clean` to put it there")


def _repository() -> GitRepository | None:
    """Return the repository of all versions if it is there: looking must not make one."""
    root = state.root()
    home = root / HOME
    return GitRepository(root, home) if (home / "git" / "config").is_file() else None


def _line(book: Book) -> str:
    counts = ", ".join(f"{name} {count:,}" for name, count in book.counts.items())
    return f"{book.name:<8} {'broken' if book.wrong else 'holds':<7} {counts}".rstrip()


def _record(book: Book) -> dict[str, object]:
    wrong = [{"about": one.about, "says": one.says} for one in book.wrong]
    return {
        "kind": "book",
        "book": book.name,
        "holds": not wrong,
        "counts": book.counts,
        "wrong": wrong,
    }


def _do_not_hold(broken: Sequence[Book], books: int) -> StoreError:
    facts: dict[str, str] = {}
    found = [one for book in broken for one in book.wrong]
    for one in found[:_SHOWN_MAX]:
        about, says = one_line(one.about), one_line(one.says)
        facts[about] = f"{facts[about]}; {says}" if about in facts else says
    if len(found) > _SHOWN_MAX:
        facts["and"] = f"{len(found) - _SHOWN_MAX} more; `--json` tells all"
    names = [book.name for book in broken]
    hint = _HINTS.get(names[0]) if len(names) == 1 else None
    return StoreError(
        f"{len(broken)} of {books} books do not hold: {', '.join(names)}",
        code="CA6004",
        facts=facts,
        hint=hint or "Compare the store with a backup to see what was changed",
    )
