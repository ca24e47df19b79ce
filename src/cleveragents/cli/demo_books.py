"""What the store of the demo says: every number of its report is read here."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.cli.errors import faults_of
from cleveragents.cli.stored_plans import StoredPlans, run_events
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import AttemptFailed, NodeFinished, NodeStarted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cleveragents.cli.stored_plans import Told
    from cleveragents.domain.money import Money

_EDITORS: Final = (
    "SELECT count(DISTINCT s.node) FROM merges m JOIN changesets s ON s.id = m.changeset"
    " JOIN changes e ON e.changeset = s.number"
    " WHERE m.plan = ? AND m.state = 'merged' AND e.path = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Where the plan of the demo stands."""

    plan_id: str
    state: str
    nodes: int
    done: int
    #: Whose work is done and kept, and not yet in the plan's tree.
    to_merge: int
    #: Who was cut off in the middle of the work.
    cut_off: int
    #: How many starts there were of nodes that were done before.
    again: int
    most_at_once: int
    spent: Money
    limit: Money | None
    errors: Counter[str]
    decisions: Counter[str]
    #: How many nodes have a changeset of their own with the shared file in it.
    editors: int

    @property
    def is_done(self) -> bool:
        """Say whether every node is done."""
        return self.done == self.nodes


def books_of(root: Path, shared: str) -> Books:
    """Read the books of the only plan of a repository."""
    with _store_of(root) as connection:
        plans = StoredPlans(connection)
        (record,) = plans.all()
        states = Counter(one.state for one in plans.nodes(record.id))
        faults = faults_of(connection, record.id)
        balance = plans.balance(record.id)
        again, most_at_once = _starts(record.id, plans.events(record.id))
        return Books(
            plan_id=record.id,
            state=plans.state_of(record),
            nodes=plans.counts(record).total,
            done=states[NodeState.DONE],
            to_merge=states[NodeState.MERGING],
            cut_off=states[NodeState.RUNNING],
            again=again,
            most_at_once=most_at_once,
            spent=balance.spent,
            limit=balance.limit,
            errors=_summed((one.last["category"], one.times) for one in faults),
            decisions=_summed(pair for one in faults for pair in one.decided.items()),
            editors=_editors(connection, record.id, shared),
        )


def _editors(connection: sqlite3.Connection, plan_id: str, path: str) -> int:
    row = connection.execute(_EDITORS, (plan_id, path.encode())).fetchone()
    return int(row[0])


@contextmanager
def _store_of(root: Path) -> Iterator[sqlite3.Connection]:
    path = root / ".cleveragents" / "state.db"
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        yield connection


def _starts(plan_id: str, told: Iterable[Told]) -> tuple[int, int]:
    """Return how many starts there were of nodes that were done, and the most that ran at once."""
    running: set[str] = set()
    done: set[str] = set()
    again = most = 0
    for one in told:
        if one.kind == "node.interrupted":
            running.clear()
        for event in run_events(plan_id, one):
            if isinstance(event, NodeStarted):
                again += event.node in done
                running.add(event.node)
                most = max(most, len(running))
            elif isinstance(event, AttemptFailed | NodeFinished):
                running.discard(event.node)
            if isinstance(event, NodeFinished) and event.state is NodeState.DONE:
                done.add(event.node)
    return again, most


def _summed(pairs: Iterable[tuple[str, int]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, number in pairs:
        counts[name] += number
    return counts
