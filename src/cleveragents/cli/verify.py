"""`cleveragents verify`: the books of money, errors and changes, and the trail under them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.cli import output, state
from cleveragents.cli.table import one_line
from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.books import check_books
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.workspace import HOME

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cleveragents.infrastructure.books import Book

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
        books = check_books(connection, _repository())
    for book in books:
        if options.json:
            output.record(_record(book))
        else:
            output.data(_line(book))
    broken = [book for book in books if book.wrong]
    if broken:
        raise _do_not_hold(broken, len(books))
    return 0


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
