"""Who runs a plan: an `AsyncJob` with an owner, a heartbeat, and a number that fences off the dead.

Two processes never run one plan: the job of a plan has one owner, and each write about the plan
checks in its own transaction that the writer's fence is still the job's.
"""

from __future__ import annotations

import logging
import shlex
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.application.run_journal import Lost, PlanState, StopRequest
from cleveragents.domain.errors import PlanError, StoreError
from cleveragents.infrastructure.sandbox.owner import Owner

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cleveragents.infrastructure.store import Store
    from cleveragents.infrastructure.transaction import Transaction

_log = logging.getLogger(__name__)

#: A runner that was not heard of for so long loses its plan.
LEASE_S: Final = 10.0
#: How soon a wish of another process is heard.
POLL_S: Final = 0.25
NOBODY: Final = ""


@dataclass(frozen=True, slots=True)
class AsyncJob:
    """Background work on one plan, as the store knows it."""

    plan_id: str
    owner: str
    fence: int
    since: float
    alive_until: float
    wish: PlanState | None = None
    hard: bool = False

    def is_held(self, now: float) -> bool:
        """Say whether its owner may be alive; of a dead process on this machine it is known."""
        if self.owner == NOBODY:
            return False
        owner = Owner.parse(self.owner)
        return self.alive_until >= now and (owner is None or not owner.is_gone)


def find_job(source: Transaction | sqlite3.Connection, plan_id: str) -> AsyncJob | None:
    """Return the job of a plan; None when it never ran."""
    row = source.execute(
        "SELECT plan, owner, fence, since, alive_until, wish, hard FROM plan_jobs WHERE plan = ?",
        (plan_id,),
    ).fetchone()
    if row is None:
        return None
    plan, owner, fence, since, until, wished, hard = row
    wanted = None if wished is None else PlanState(wished)
    return AsyncJob(plan, owner, fence, since, until, wanted, bool(hard))


def take_job(
    tx: Transaction, seen: AsyncJob | None, plan_id: str, owner: str, lease: tuple[float, float]
) -> int | None:
    """Become the owner, if the job is still as it was seen; return the fence, else None."""
    if find_job(tx, plan_id) != seen:
        return None
    fence = 1 if seen is None else seen.fence + 1
    now, until = lease
    tx.execute(
        "REPLACE INTO plan_jobs (plan, owner, fence, since, alive_until) VALUES (?, ?, ?, ?, ?)",
        (plan_id, owner, fence, now, until),
    )
    tx.memo.pop(_memo(plan_id), None)
    return fence


def check_fence(tx: Transaction, plan_id: str, fence: int) -> None:
    """Refuse, with CA6202, whoever lost the plan; asked once for all writes of a group."""
    key = _memo(plan_id)
    current = tx.memo.get(key)
    if current is None:
        job = find_job(tx, plan_id)
        current = tx.memo[key] = 0 if job is None or job.owner == NOBODY else job.fence
    if current != fence:
        raise lost(plan_id, fence)


def renew_job(tx: Transaction, plan_id: str, fence: int, until: float) -> None:
    """Prolong the life of the owner."""
    check_fence(tx, plan_id, fence)
    tx.execute("UPDATE plan_jobs SET alive_until = ? WHERE plan = ?", (until, plan_id))


def release_job(tx: Transaction, plan_id: str) -> None:
    """Give the job up; its fence stays, so that nobody ever has it twice."""
    tx.execute(
        "UPDATE plan_jobs SET owner = ?, wish = NULL, hard = 0 WHERE plan = ?", (NOBODY, plan_id)
    )
    tx.memo.pop(_memo(plan_id), None)


def wish(tx: Transaction, plan_id: str, state: PlanState) -> None:
    """Leave a wish for the owner; a second one is hard."""
    tx.execute(
        "UPDATE plan_jobs SET hard = wish IS NOT NULL, wish = ? WHERE plan = ?", (state, plan_id)
    )


def lost(plan_id: str, fence: int) -> PlanError:
    """Return the refusal of whoever was taken for dead."""
    return PlanError(
        f"Plan `{plan_id}` belongs to another process now; nothing more of this one is written",
        code="CA6202",
        facts={"plan": plan_id, "fence": fence},
        hint="Let the other process go on; nothing that was finished is lost",
    )


def held_elsewhere(job: AsyncJob) -> PlanError:
    """Return the refusal while another process runs the plan."""
    owner, quoted = Owner.parse(job.owner), shlex.quote(job.plan_id)
    return PlanError(
        f"Plan `{job.plan_id}` is being run by another process",
        code="CA6201",
        facts={
            "plan": job.plan_id,
            "owner": job.owner,
            "pid": None if owner is None else owner.pid,
            "since": job.since,
        },
        hint=f"Run `cleveragents watch {quoted}` to follow it, or `cleveragents pause {quoted}`"
        " to stop it",
    )


class JobHeart:
    """A thread that keeps a job alive, and hears what others wish of it.

    It tells each wish once, and the loss of the plan once, after which it ends.
    """

    def __init__(
        self,
        store: Store,
        job: AsyncJob,
        on_news: Callable[[StopRequest | Lost], object],
        *,
        lease_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._job = job
        self._on_news = on_news
        self._lease_s = lease_s
        self._clock = clock
        self._stopping = threading.Event()
        # A daemon: it only renews a lease, which a process that ends need not keep.
        self._thread = threading.Thread(target=self._beat, name="ca-job-heart", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop beating; closing twice is fine."""
        self._stopping.set()
        self._thread.join()

    def _beat(self) -> None:
        told: StopRequest | None = None
        poll_s = min(POLL_S, self._lease_s / 4)
        renewed = self._clock()
        while not self._stopping.wait(poll_s):
            try:
                if self._clock() - renewed >= self._lease_s / 4:
                    self._renew()
                    renewed = self._clock()
                wanted = self._wanted()
            except PlanError as error:
                self._on_news(Lost(error))
                return
            except StoreError:
                # The store tells every caller of its trouble; the next beat tries again.
                _log.exception("The job of plan `%s` was not renewed", self._job.plan_id)
                continue
            if wanted is not None and wanted != told:
                told = wanted
                self._on_news(wanted)

    def _renew(self) -> None:
        plan_id, fence = self._job.plan_id, self._job.fence
        until = self._clock() + self._lease_s
        self._store.write(lambda tx: renew_job(tx, plan_id, fence, until))

    def _wanted(self) -> StopRequest | None:
        with self._store.read() as connection:
            job = find_job(connection, self._job.plan_id)
        if job is None or job.fence != self._job.fence:
            raise lost(self._job.plan_id, self._job.fence)
        return None if job.wish is None else StopRequest(job.wish, job.hard)


def _memo(plan_id: str) -> str:
    return f"fence of {plan_id}"
