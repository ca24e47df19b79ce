"""Plans as the store knows them, read without writing anything and without waiting for a writer."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from cleveragents.application.run_journal import PlanState, plan_of
from cleveragents.application.services.plan_progress import PlanProgress
from cleveragents.cli import state
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.budget import scope_key
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import PlanError
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import (
    AttemptFailed,
    LogLine,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
    SpendChanged,
)
from cleveragents.infrastructure import ledger
from cleveragents.infrastructure.changes.apply_rows import apply_rows, standing
from cleveragents.infrastructure.limits import limits_of
from cleveragents.infrastructure.plan_journal import SqliteRunJournal

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from cleveragents.application.run_journal import NodeRecord, PlanRecord
    from cleveragents.domain.budget import Balance
    from cleveragents.domain.run_events import RunEvent
    from cleveragents.infrastructure.store import Store

SEE_ALL: Final = "Run `cleveragents list` to see which there are"
#: What a plan whose process died is called, which the store still calls running.
STOPPED: Final = "stopped"
#: States that a plan is resumed from without being named.
UNFINISHED: Final = frozenset({"ready", STOPPED, "paused", "failed"})

_FILES: Final = (
    "SELECT count(DISTINCT e.path) FROM changes e JOIN changesets s ON s.number = e.changeset"
    " WHERE s.id = ?"
)
_EVENTS: Final = (
    "SELECT seq, at, kind, actor, body FROM events WHERE plan = ? AND seq > ? ORDER BY seq"
)
_COUNTS: Final = "SELECT node, state, count(*) FROM plan_nodes WHERE plan = ? GROUP BY 1, 2"


def files_in(connection: sqlite3.Connection, changeset_id: str) -> int:
    """Return how many files a changeset touches."""
    return int(connection.execute(_FILES, (changeset_id,)).fetchone()[0])


@dataclass(frozen=True, slots=True)
class Counts:
    """How many nodes are done, and of how many; there may be more as long as it is not exact."""

    done: int
    total: int
    is_exact: bool = True

    def __str__(self) -> str:
        return f"{self.done} of {self.total}{'' if self.is_exact else '+'}"


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the audit trail."""

    seq: int
    at: float
    kind: str
    actor: str | None
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """One connection in the place of a store, of which the journal reads by `read` alone."""

    connection: sqlite3.Connection

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Give the connection."""
        yield self.connection


class StoredPlans:
    """One consistent snapshot of all plans."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._journal = SqliteRunJournal(cast("Store", _Snapshot(connection)))

    def all(self) -> tuple[PlanRecord, ...]:
        """Return all plans, the oldest first."""
        return self._journal.plans()

    def get(self, plan_id: str) -> PlanRecord:
        """Return a plan; CA4107 when there is none of this name."""
        try:
            return self._journal.get(plan_id)
        except PlanError as error:
            error.hint = SEE_ALL
            raise

    def nodes(self, plan_id: str) -> tuple[NodeRecord, ...]:
        """Return what is kept of the nodes of a plan."""
        return self._journal.nodes(plan_id)

    def counts(self, record: PlanRecord) -> Counts:
        """Return how many nodes of a plan are done, and of how many, instances counted."""
        import json

        rows = self._connection.execute(_COUNTS, (record.id,)).fetchall()
        seen: Counter[str] = Counter()
        for node, _, count in rows:
            seen[node] += count
        done = sum(count for _, word, count in rows if word == NodeState.DONE)
        nodes = json.loads(record.source)["nodes"]
        if record.state.is_finished or not any("for_each" in one for one in nodes.values()):
            return Counts(done, seen.total() + len(nodes.keys() - seen))
        # Members of a fan-out have no row before they start, so the plan itself is asked.
        kept = {one.id: one for one in self.nodes(record.id)}
        progress = PlanProgress(plan_of(record.source), kept)
        sizes = {name: progress.size_of(name) for name in nodes}
        total = sum(seen[name] or 1 if size is None else size for name, size in sizes.items())
        return Counts(done, total, is_exact=None not in sizes.values())

    def state_of(self, record: PlanRecord) -> str:
        """Return the state of a plan as it is: of a dead process, and of what was applied."""
        if record.state is PlanState.RUNNING and not self.is_run(record.id):
            return STOPPED
        if record.state is PlanState.DONE:
            applies = apply_rows(self._connection, record.id)
            if applies:
                return str(PlanState.APPLIED if standing(applies) else PlanState.REVERTED)
        return str(record.state)

    def is_run(self, plan_id: str) -> bool:
        """Say whether a process runs a plan now."""
        job = self._journal.job(plan_id)
        return job is not None and job.is_held(time.time())

    def balance(self, plan_id: str) -> Balance:
        """Return what a plan has spent, and its limit."""
        key = scope_key("plan", plan_id)
        return ledger.balances(self._connection, [key], limits_of(self._connection))[0]

    def spent_by(self, plan_id: str, node: str) -> Money:
        """Return what all attempts at a node have spent."""
        key = scope_key("label", f"node={plan_id}/{node}")
        return ledger.balances(self._connection, [key], ())[0].spent

    def files(self, changeset_id: str) -> int:
        """Return how many files a changeset touches."""
        return files_in(self._connection, changeset_id)

    def model(self, plan_id: str, *, with_past: bool) -> RunModel:
        """Return a plan as a view knows it: with all that its runs left, or without any event."""
        plan = plan_of(self.get(plan_id).source)
        balance = self.balance(plan_id)
        own = None if plan.budget is None else plan.budget.max_usd
        fresh = RunModel(plan_id, plan, budget=balance.limit or own)
        return replace(fresh, kept=self.nodes(plan_id), spent=balance.spent) if with_past else fresh

    def events(self, plan_id: str, after: int = 0) -> Iterator[Told]:
        """Yield what happened in a plan, oldest first."""
        import json

        for seq, at, kind, actor, body in self._connection.execute(_EVENTS, (plan_id, after)):
            yield Told(seq, at, kind, actor, json.loads(body))


@contextmanager
def reading_plans() -> Iterator[StoredPlans | None]:
    """Give the plans of the tree around here; None when there is no store yet."""
    with state.reading() as connection:
        yield None if connection is None else StoredPlans(connection)


@contextmanager
def reading_plan(plan_id: str) -> Iterator[StoredPlans]:
    """Give the plans to a command that names one; CA4107 when there is none of this name."""
    with reading_plans() as plans:
        if plans is None:
            raise PlanError(
                f"Plan {plan_id!r} is not known",
                code="CA4107",
                facts={"plan": plan_id},
                hint=SEE_ALL,
            )
        plans.get(plan_id)
        yield plans


def run_events(plan_id: str, told: Told) -> Iterator[RunEvent]:
    """Yield what an event of the audit trail means to a view of the run."""
    body, (part, _, word) = told.body, told.kind.partition(".")
    if part == "plan":
        if word == "running":
            yield PlanStarted(plan_id=plan_id, nodes=0)
        elif word in {"done", "failed", "paused", "cancelled"}:
            yield PlanEnded(plan_id=plan_id, state=word, exit_code=0)
    elif part == "money":
        node = next((key for key in body.get("keys", ()) if key.startswith("label:node=")), None)
        if node is not None and body["spent"]:
            name = node.rpartition("/")[2]
            amount = Money(body["spent"])
            yield SpendChanged(plan_id=plan_id, node=name, attempt=0, amount=amount)
    elif part == "node":
        # Nodes that start together are told together.
        for one in body.get("nodes", (body,)):
            yield from _node_events(plan_id, {"actor": told.actor, **one}, word)


def _node_events(plan_id: str, one: dict[str, Any], word: str) -> Iterator[RunEvent]:
    about = {"plan_id": plan_id, "node": one["node"], "attempt": one["attempt"]}
    error = one.get("error")
    if word == "started":
        yield NodeStarted(**about, actor=one["actor"] or "")
    elif word == "log":
        yield LogLine(**about, text=one["text"])
    elif word in _FAULTY and error:
        yield AttemptFailed(
            **about,
            code=error["code"],
            message=error["message"],
            action=Action(error["action"]),
            reason=error["reason"],
        )
    if word in _ENDED:
        yield NodeFinished(**about, state=NodeState(word), changeset=one.get("changeset"))


_FAULTY: Final = frozenset({"waiting", "skipped", "failed", "conflicted"})
_ENDED: Final = frozenset({"done", "skipped", "failed", "conflicted", "cancelled"})
