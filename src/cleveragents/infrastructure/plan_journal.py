"""Plans, their nodes and who runs them, in the durable store."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cleveragents.application.run_journal import NodeRecord, PlanRecord, PlanState
from cleveragents.domain.budget import positive_s, scope_key
from cleveragents.domain.errors import PlanError, StoreError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure import ledger
from cleveragents.infrastructure.plan_jobs import (
    LEASE_S,
    AsyncJob,
    JobHeart,
    check_fence,
    find_job,
    held_elsewhere,
    release_job,
    take_job,
    wish,
)
from cleveragents.infrastructure.plan_rows import (
    PLANS,
    PUT_NODES,
    node_events,
    node_rows,
    plan_record,
    plan_row,
    told_of,
    values_of,
)
from cleveragents.infrastructure.sandbox.owner import Owner
from cleveragents.infrastructure.stored_text import check_names, check_plan_id, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.application.run_journal import Lost, StopRequest
    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction


class SqliteRunJournal:
    """A `RunJournal` whose every method is one transaction of the durable store.

    Safe for any number of threads and processes on one file. The right to run a plan is a lease
    with a fence: it is lost when its process is dead, or was silent beyond the lease and another
    one took it. From then on nothing that the old holder writes is kept.
    """

    def __init__(
        self,
        store: Store,
        *,
        lease_s: float = LEASE_S,
        clock: Callable[[], float] = time.time,
        owner: Callable[[], Owner] = Owner.here,
    ) -> None:
        self._store = store
        self._lease_s = positive_s("lease_s", lease_s)
        self._clock = clock
        self._owner = owner

    def add(
        self,
        plan_id: str,
        source: str,
        *,
        session: str | None = None,
        folder: str | None = None,
        state: PlanState = PlanState.READY,
    ) -> None:
        """Keep a new plan; the same plan again is fine, another of its name is refused."""
        check_plan_id(plan_id)
        check_names(session=session)
        at, digest = self._clock(), _digest(source)
        # As JSON, which can hold a path of any bytes.
        place = None if folder is None else json.dumps(folder)

        def write(tx: Transaction) -> str:
            added = tx.execute(
                "INSERT INTO plans (id, source, digest, session, state, created, folder)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (plan_id, source, digest, session, state, at, place),
            )
            if added.rowcount:
                tx.event("plan.added", {"digest": digest, "state": state}, at=at, plan=plan_id)
            return plan_row(tx, plan_id).digest

        if self._store.write(write) != digest:
            raise PlanError(
                f"There is another plan `{plan_id}` already",
                code="CA6203",
                facts={"plan": plan_id},
                hint="Choose another id, or resume the plan that is there",
            )

    def get(self, plan_id: str) -> PlanRecord:
        """Return a plan; CA4107 when there is none of this name."""
        with self._store.read() as connection:
            return plan_row(connection, plan_id)

    def plans(self) -> tuple[PlanRecord, ...]:
        """Return all plans, the oldest first."""
        with self._store.read() as connection:
            return tuple(map(plan_record, connection.execute(f"{PLANS} ORDER BY number")))

    def nodes(self, plan_id: str) -> tuple[NodeRecord, ...]:
        """Return what is kept of the nodes of a plan."""
        with self._store.read() as connection:
            return node_rows(connection, plan_id)

    def job(self, plan_id: str) -> AsyncJob | None:
        """Return who runs a plan, or ran it last; None when it never ran."""
        with self._store.read() as connection:
            return find_job(connection, plan_id)

    def take(self, plan_id: str, on_news: Callable[[StopRequest | Lost], object]) -> SqliteRunBook:
        """Take the right to run a plan, also from the dead; CA6201 while another process has it."""
        owner = str(self._owner())
        while True:
            now = self._clock()
            with self._store.read() as connection:
                plan_row(connection, plan_id)
                seen = find_job(connection, plan_id)
            if seen is not None and seen.is_held(now):
                raise held_elsewhere(seen)
            lease = (now, now + self._lease_s)

            def write(
                tx: Transaction,
                seen: AsyncJob | None = seen,
                lease: tuple[float, float] = lease,
            ) -> _Taken | None:
                fence = take_job(tx, seen, plan_id, owner, lease)
                return None if fence is None else _begun(tx, plan_id, owner, fence, lease[0])

            taken = self._store.write(write)
            if taken is not None:
                job = AsyncJob(plan_id, owner, taken[0], *lease)
                heart = JobHeart(
                    self._store, job, on_news, lease_s=self._lease_s, clock=self._clock
                )
                return SqliteRunBook(self._store, heart, taken, self._clock)

    def ask_to_stop(self, plan_id: str, state: PlanState) -> None:
        """Wish that whoever runs the plan pauses or cancels it; the second wish is a hard one."""
        at = self._clock()

        def write(tx: Transaction) -> None:
            plan_row(tx, plan_id)
            job = find_job(tx, plan_id)
            if job is None or not job.is_held(at):
                raise _wrong_state(plan_id, "nobody runs it", "Move it with its own command")
            wish(tx, plan_id, state)
            tx.event("plan.stop_asked", {"state": state}, at=at, plan=plan_id)

        self._store.write(write)

    def move(self, plan_id: str, state: PlanState) -> None:
        """Move a plan that nobody runs to another state; CA6203 where the rules forbid it."""
        at = self._clock()

        def write(tx: Transaction) -> None:
            plan = plan_row(tx, plan_id)
            job = find_job(tx, plan_id)
            if job is not None and job.is_held(at):
                raise held_elsewhere(job)
            # What a dead process left as running may be cancelled as if it were paused.
            now = PlanState.PAUSED if plan.state is PlanState.RUNNING else plan.state
            if not now.may_become(state):
                raise _wrong_state(plan_id, f"it is {plan.state} and cannot become {state}", None)
            _interrupt(tx, plan, at)
            _move(tx, plan_id, state, at)

        self._store.write(write)


#: The fence, the plan, its nodes as they wait now, and those that were running.
_Taken = tuple[int, PlanRecord, tuple[NodeRecord, ...], tuple[NodeRecord, ...]]


class SqliteRunBook:
    """A `RunBook`: every write checks the fence in its own transaction, or is not there at all."""

    def __init__(
        self, store: Store, heart: JobHeart, taken: _Taken, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._heart = heart
        self._clock = clock
        self._ended = False  # for the coordinating thread alone
        self.fence, self.plan, self.nodes, self.interrupted = taken

    def put(self, *records: NodeRecord, wait: bool = True) -> None:
        """Keep the latest truth about nodes, of all or none; `wait` until it is durable."""
        at, plan_id, fence = self._clock(), self.plan.id, self.fence
        rows = json.dumps([values_of(one) for one in records])
        events = node_events(records)

        def write(tx: Transaction) -> None:
            check_fence(tx, plan_id, fence)
            tx.execute(PUT_NODES, (plan_id, rows))
            for kind, nodes, actor in events:
                tx.event(kind, {"nodes": nodes}, at=at, plan=plan_id, actor=actor)

        ticket = self._store.submit(write)
        if wait:
            ticket.result()

    def log(self, record: NodeRecord, text: str) -> None:
        """Keep a line that an attempt told, in the audit trail."""
        at, plan_id, fence = self._clock(), self.plan.id, self.fence
        body = {"node": plain(record.id), "attempt": record.attempt, "text": plain(text)}

        def write(tx: Transaction) -> None:
            check_fence(tx, plan_id, fence)
            tx.event("node.log", body, at=at, plan=plan_id, actor=record.actor)

        self._store.submit(write)

    def revise(self, source: str) -> None:
        """Keep the plan as a person or a planner changed it."""
        at, plan_id, fence, digest = self._clock(), self.plan.id, self.fence, _digest(source)

        def write(tx: Transaction) -> None:
            check_fence(tx, plan_id, fence)
            tx.execute(
                "UPDATE plans SET source = ?, digest = ? WHERE id = ?", (source, digest, plan_id)
            )
            tx.event("plan.revised", {"digest": digest}, at=at, plan=plan_id)

        self._store.write(write)

    def end(self, state: PlanState, error: Mapping[str, Any] | None) -> None:
        """Give the plan back, with the state that it came to."""
        at, plan_id, fence = self._clock(), self.plan.id, self.fence

        def write(tx: Transaction) -> None:
            check_fence(tx, plan_id, fence)
            _move(tx, plan_id, state, at, error)
            release_job(tx, plan_id)

        self._heart.close()
        self._store.write(write)
        self._ended = True

    def close(self) -> None:
        """Stop listening; a plan that was not ended is as if its process had died just now."""
        self._heart.close()
        if self._ended:
            return
        plan_id, fence = self.plan.id, self.fence

        def write(tx: Transaction) -> None:
            check_fence(tx, plan_id, fence)
            release_job(tx, plan_id)

        # Lost to another process, or out of reach: there is nothing to give back.
        with suppress(PlanError, StoreError):
            self._store.write(write)


def _begun(tx: Transaction, plan_id: str, owner: str, fence: int, at: float) -> _Taken:
    """Begin a run: what was running is interrupted, and what failed may be tried again."""
    plan = plan_row(tx, plan_id)
    if plan.state is PlanState.DRAFT:
        raise _wrong_state(plan_id, "it is a draft", "Move it to `ready` first")
    interrupted = _interrupt(tx, plan, at)
    tx.execute(
        "UPDATE plan_nodes SET state = 'waiting' WHERE plan = ? AND state = 'failed'", (plan_id,)
    )
    if not plan.state.is_finished:
        tx.execute("UPDATE plans SET state = 'running', error = NULL WHERE id = ?", (plan_id,))
        tx.event("plan.running", {"owner": owner, "fence": fence}, at=at, plan=plan_id)
    return fence, plan, node_rows(tx, plan_id), interrupted


def _interrupt(tx: Transaction, plan: PlanRecord, at: float) -> tuple[NodeRecord, ...]:
    """Settle what a dead process had under way; nobody holds the plan, so it is nobody's.

    Nodes that it ran wait again, and money that it had promised is charged until a bill comes.
    """
    if plan.state is not PlanState.RUNNING:
        return ()
    nodes = node_rows(tx, plan.id)
    interrupted = tuple(one for one in nodes if one.state is NodeState.RUNNING)
    for one in interrupted:
        body = {"nodes": [told_of(one)]}
        tx.event("node.interrupted", body, at=at, plan=plan.id, actor=one.actor)
    tx.execute(
        "UPDATE plan_nodes SET state = 'waiting' WHERE plan = ? AND state = 'running'", (plan.id,)
    )
    ledger.abandon_all(scope_key("plan", plan.id), at)(tx)
    return interrupted


def _move(
    tx: Transaction,
    plan_id: str,
    state: PlanState,
    at: float,
    error: Mapping[str, Any] | None = None,
) -> None:
    told = None if error is None else json.dumps(error)
    tx.execute("UPDATE plans SET state = ?, error = ? WHERE id = ?", (state, told, plan_id))
    tx.event(f"plan.{state}", {} if error is None else {"error": error}, at=at, plan=plan_id)


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _wrong_state(plan_id: str, why: str, hint: str | None) -> PlanError:
    return PlanError(
        f"Plan `{plan_id}` cannot do this now: {why}",
        code="CA6203",
        facts={"plan": plan_id},
        hint=hint,
    )
