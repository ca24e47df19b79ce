"""The errors and decisions of all plans in the durable store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cleveragents.domain.error_record import (
    Action,
    Decision,
    ErrorCategory,
    ErrorRecord,
    HistorySnapshot,
)
from cleveragents.domain.error_tally import ErrorTally, Fault, Tries
from cleveragents.infrastructure.stored_text import check_names, plain

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cleveragents.domain.error_record import Standing
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

R = TypeVar("R", ErrorRecord, Decision)

_PLAN: Final = "SELECT records, decisions, replans, by_category FROM error_plans WHERE plan = ?"
_TOKENS: Final = "SELECT missing FROM retry_tokens WHERE bucket = ?"
# The kinds stand in the text, because only then SQLite uses their indexes.
_LAST_RECORDS: Final = (
    "SELECT body FROM events WHERE plan = ? AND kind = 'error.recorded' ORDER BY seq DESC LIMIT ?"
)
_LAST_DECISIONS: Final = (
    "SELECT body FROM events WHERE plan = ? AND kind = 'error.decided' ORDER BY seq DESC LIMIT ?"
)


class SqliteErrorJournal:
    """An `ErrorJournal` whose every method is one transaction of the durable store.

    Safe for any number of threads and processes on one file: numbers are given inside the
    transaction, so they have no gaps and no duplicates, and no retry is shared.
    A record and a decision are events of the audit trail, and are answered when they are durable.
    Nothing is kept in memory. A text that UTF-8 cannot hold is spelled out before it is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, draft: ErrorRecord, *, loop_after: int | None) -> ErrorRecord:
        """Keep a record; return it with its plan's next number, and as a loop if it is one."""
        check_names(plan_id=draft.plan_id)
        record = _storable(draft, ErrorRecord.from_dict)

        def write(tx: Transaction) -> ErrorRecord:
            tally = _loaded(tx, record)
            kept = tally.add(record, loop_after=loop_after)
            _save(tx, record.plan_id, tally)
            tx.event(
                "error.recorded", kept.to_dict(), at=kept.at, plan=kept.plan_id, actor=kept.actor
            )
            return kept

        return self._store.write(write)

    def decide(
        self,
        record: ErrorRecord,
        rule: Callable[[Standing, dict[str, int]], Decision],
        *,
        buckets: tuple[str, ...],
        at: float,
    ) -> Decision:
        """Decide about a record by a rule; keep the decision and its price, return it numbered."""
        check_names(plan_id=record.plan_id)
        about = _storable(record, ErrorRecord.from_dict)

        def write(tx: Transaction) -> Decision:
            tally = _loaded(tx, about)
            missing = _missing(tx, buckets)
            decision = _storable(rule(tally.standing(about), missing), _decision)
            kept = tally.decided(about, decision, at)
            _save(tx, about.plan_id, tally)
            _save_missing(tx, buckets, missing)
            tx.event("error.decided", kept.to_dict(), at=at, plan=about.plan_id, actor=about.actor)
            return kept

        return self._store.write(write)

    def succeed(
        self,
        plan_id: str,
        node: str | None,
        give_back: Callable[[dict[str, int]], object],
        *,
        buckets: tuple[str, ...],
    ) -> None:
        """Start counting a node's tries anew, and give tokens back."""
        check_names(plan_id=plan_id)
        key = (plan_id, _node_key(node))

        def write(tx: Transaction) -> None:
            tx.execute("DELETE FROM error_tries WHERE plan = ? AND node = ?", key)
            missing = _missing(tx, buckets)
            give_back(missing)
            _save_missing(tx, buckets, missing)

        # Most calls succeed where nothing failed before: they need no write.
        with self._store.read() as connection:
            tried = "SELECT 1 FROM error_tries WHERE plan = ? AND node = ?"
            idle = connection.execute(tried, key).fetchone() is None
            idle = idle and not _missing(connection, buckets)
        if not idle:
            self._store.write(write)

    def history(self, plan_id: str, *, kept_max: int) -> HistorySnapshot:
        """Return the last records and decisions of a plan, at most this many, and exact counts."""
        check_names(plan_id=plan_id)
        with self._store.read() as connection:
            tally = _plan_tally(connection, plan_id)
            records = connection.execute(_LAST_RECORDS, (plan_id, kept_max)).fetchall()
            decisions = connection.execute(_LAST_DECISIONS, (plan_id, kept_max)).fetchall()
        return HistorySnapshot(
            plan_id=plan_id,
            records=tuple(ErrorRecord.from_dict(json.loads(body)) for (body,) in records[::-1]),
            decisions=tuple(_decision(json.loads(body)) for (body,) in decisions[::-1]),
            count=tally.count,
            decision_count=tally.decision_count,
            by_category=tally.by_category,
        )


def _loaded(tx: Transaction, record: ErrorRecord) -> ErrorTally:
    """Load of a plan's tally what this record concerns."""
    tally = _plan_tally(tx, record.plan_id)
    node = _node_key(record.node)
    fault = tx.execute(
        "SELECT times, rung FROM error_faults WHERE plan = ? AND node = ? AND fingerprint = ?",
        (record.plan_id, node, record.fingerprint),
    ).fetchone()
    if fault is not None:
        tally.faults[record.node, record.fingerprint] = Fault(*fault)
    tries = tx.execute(
        "SELECT counts, waited_s FROM error_tries WHERE plan = ? AND node = ? AND category = ?",
        (record.plan_id, node, record.category),
    ).fetchone()
    if tries is not None:
        counts = {Action(action): times for action, times in json.loads(tries[0]).items()}
        tally.tries[record.node, record.category] = Tries(counts, tries[1])
    return tally


def _plan_tally(source: Transaction | sqlite3.Connection, plan_id: str) -> ErrorTally:
    found = source.execute(_PLAN, (plan_id,)).fetchone()
    if found is None:
        return ErrorTally()
    records, decisions, replans, by_category = found
    return ErrorTally(
        count=records,
        decision_count=decisions,
        replans=replans,
        by_category={ErrorCategory(name): n for name, n in json.loads(by_category).items()},
    )


def _save(tx: Transaction, plan_id: str, tally: ErrorTally) -> None:
    tx.execute(
        "REPLACE INTO error_plans VALUES (?, ?, ?, ?, ?)",
        (
            plan_id,
            tally.count,
            tally.decision_count,
            tally.replans,
            json.dumps(tally.by_category),
        ),
    )
    for (node, fingerprint), fault in tally.faults.items():
        tx.execute(
            "REPLACE INTO error_faults VALUES (?, ?, ?, ?, ?)",
            (plan_id, _node_key(node), fingerprint, fault.times, fault.rung),
        )
    for (node, category), tries in tally.tries.items():
        tx.execute(
            "REPLACE INTO error_tries VALUES (?, ?, ?, ?, ?)",
            (plan_id, _node_key(node), category, json.dumps(tries.counts), tries.waited_s),
        )


def _missing(source: Transaction | sqlite3.Connection, buckets: tuple[str, ...]) -> dict[str, int]:
    found = {name: source.execute(_TOKENS, (plain(name),)).fetchone() for name in buckets}
    return {name: row[0] for name, row in found.items() if row is not None}


def _save_missing(tx: Transaction, buckets: tuple[str, ...], missing: dict[str, int]) -> None:
    for name in buckets:
        if missing.get(name) is None:
            tx.execute("DELETE FROM retry_tokens WHERE bucket = ?", (plain(name),))
        else:
            tx.execute("REPLACE INTO retry_tokens VALUES (?, ?)", (plain(name), missing[name]))


def _node_key(node: str | None) -> str:
    return json.dumps(None if node is None else plain(node))


def _decision(values: dict[str, Any]) -> Decision:
    return Decision(**{**values, "action": Action(values["action"])})


def _storable(value: R, read: Callable[[dict[str, Any]], R]) -> R:
    values = value.to_dict()
    spelled = {name: plain(one) if isinstance(one, str) else one for name, one in values.items()}
    return value if spelled == values else read(spelled)
