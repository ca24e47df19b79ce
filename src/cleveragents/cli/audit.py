"""`cleveragents audit`: show what happened, and prove that nobody changed it afterwards."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output, state
from cleveragents.cli.arguments import count_of, moment_of
from cleveragents.cli.table import one_line
from cleveragents.domain.budget import zone_of
from cleveragents.domain.errors import StoreError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.audit import (
    Filter,
    events,
    rebuild_balances,
    verify_balances,
    verify_chain,
)
from cleveragents.settings import load

if TYPE_CHECKING:
    import sqlite3
    from argparse import Namespace
    from collections.abc import Callable
    from datetime import tzinfo

    from cleveragents.infrastructure.audit import Verdict

#: Parts of an event's body that are pico-dollars.
_AMOUNTS: Final = frozenset({"spent", "held", "amount"})
_NO_EVENTS: Final = ("No events yet", "Run `cleveragents budget set day 5` to make the first")
#: Looking at the clock for every row would cost more than it tells.
_ROWS_BETWEEN_LOOKS: Final = 1000


def show_events(options: Namespace) -> int:
    """Print the events that pass the filters, oldest first."""
    zone = zone_of(load()[0].zone)
    wanted = Filter(
        plan=options.plan,
        actor=options.actor,
        kind=options.kind,
        since=moment_of("--since", options.since, zone),
        until=moment_of("--until", options.until, zone),
    )
    limit = count_of("--limit", options.limit)
    with state.reading() as connection:
        if connection is None:
            return state.nothing(*_NO_EVENTS)
        event = None
        for event in events(connection, wanted, limit):
            if options.json:
                output.record(event)
            else:
                output.data(_as_line(event, zone))
    if event is None:
        return state.nothing("No event passes", "Run `cleveragents audit show` to see all")
    return 0


def verify(options: Namespace) -> int:
    """Check the chain of all events, and that all entries add up to the balances."""
    with state.reading() as connection:
        if connection is None:
            return state.nothing(*_NO_EVENTS)
        # A text that is no UTF-8 any more must break the chain, not this reading of it.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        last = connection.execute("SELECT coalesce(max(seq), 0) FROM chain").fetchone()[0]
        _watch(connection, f"checked {{:,}} of {last:,} events")
        chain = verify_chain(connection)
        if not chain.holds:
            raise _broken("audit trail", chain)
        _watch(connection, "added up {:,} entries")
        balances = verify_balances(connection)
        if not balances.holds:
            raise _broken("ledger", balances, "Run `cleveragents audit rebuild`")
    if options.json:
        output.record({"kind": "verdict", "events": chain.checked, "entries": balances.checked})
    else:
        output.data(
            f"{chain.checked:,} events hold: none was edited, removed or reordered\n"
            f"{balances.checked:,} entries of money add up to the balances"
        )
    return 0


def rebuild(options: Namespace) -> int:
    """Make the balances anew from the entries, for a store whose chain holds."""
    if not state.is_there():
        return state.nothing(*_NO_EVENTS)
    with state.writing() as store:
        with store.read() as connection:
            chain = verify_chain(connection)
        if not chain.holds:
            raise _broken("audit trail", chain)
        accounts = store.write(rebuild_balances(time.time()))
    if options.json:
        output.record({"kind": "rebuilt", "accounts": accounts})
    else:
        output.data(f"{accounts:,} balances are made anew from the entries of money")
    return 0


class Progress:
    """Counts the rows that a connection reads, and says so after 1 s, 2 s, 4 s and so on."""

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._text = text
        self._clock = clock
        self._started = clock()
        self._due_s = 1.0
        self._rows = 0

    def __call__(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take part as the row factory of a connection."""
        self._rows += 1
        if self._rows % _ROWS_BETWEEN_LOOKS == 0 and self._clock() - self._started >= self._due_s:
            self._due_s *= 2
            output.talk(self._text.format(self._rows))
        return row


def _watch(connection: sqlite3.Connection, text: str) -> None:
    if sys.stderr.isatty():
        connection.row_factory = Progress(text)


def _broken(
    what: str,
    verdict: Verdict,
    hint: str = "Compare the store with a backup to see what was changed",
) -> StoreError:
    facts = {} if verdict.broken_at is None else {"first broken event": verdict.broken_at}
    return StoreError(
        f"The {what} does not hold: {verdict.reason}",
        code="CA6004",
        facts={**facts, "checked before it": verdict.checked},
        hint=hint,
    )


def _as_line(event: dict[str, Any], zone: tzinfo) -> str:
    at = datetime.fromtimestamp(event["at"], zone).isoformat(" ", "seconds")
    told = ((name, _told(name, one)) for name, one in event["body"].items() if name != "at")
    body = "  ".join(f"{name} {text}" for name, text in told if text)
    return one_line(f"{event['seq']:>6}  {at}  {event['kind']:<18}  {body}")


def _told(name: str, value: Any) -> str:
    """Return a value as people read it; what is not there, or changes nothing, is left out."""
    if value is None or (name in _AMOUNTS and value == 0):
        return ""
    if name in _AMOUNTS:
        return str(Money(value))
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
