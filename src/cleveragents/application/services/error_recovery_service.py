"""Keeps every error of every plan, and decides how to recover from it."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cleveragents.application.services.error_classification import Hints, describe
from cleveragents.application.services.provider_gate import Pass, ProviderGate
from cleveragents.application.services.recovery_policy import (
    LOOPABLE,
    RecoveryPolicy,
    Remedies,
    decide,
)
from cleveragents.application.services.retry_budget import RetryBudget, RetryTerms
from cleveragents.domain.error_record import (
    Action,
    Decision,
    ErrorCategory,
    ErrorRecord,
    HistorySnapshot,
    Standing,
    check_plan_id,
    gate_key,
)
from cleveragents.domain.error_tally import ErrorTally
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.event import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Unpack

    from cleveragents.application.ports import ErrorJournal

__all__ = ["ErrorHistory", "ErrorRecoveryService", "RecoverySettings", "decide"]

KEPT_MAX: Final = 1_000
_FAULTS_PER_RECORD: Final = 10


class ErrorHistory:
    """The errors of one plan and what was decided about each, in order and without gaps.

    Safe for any number of threads: each method is one atomic step, also without an interpreter
    lock. The last `kept_max` records and decisions are kept, and counts are exact for all of them.
    Loops and rungs are known for ten times as many faults; of older ones, no ladder goes down.
    A service lends its own lock to its histories, so that creating one and adding to it are one
    step.
    """

    def __init__(
        self,
        plan_id: str,
        *,
        kept_max: int = KEPT_MAX,
        loop_after: int = 3,
        lock: threading.Lock | None = None,
    ) -> None:
        check_plan_id(plan_id)
        _check_kept_max(kept_max)
        self.plan_id: Final = plan_id
        self._loop_after = loop_after
        self._lock = threading.Lock() if lock is None else lock  # guards: all that follows
        self._records: deque[ErrorRecord] = deque(maxlen=kept_max)
        self._decisions: deque[Decision] = deque(maxlen=kept_max)
        self._tally = ErrorTally()
        # Many times the records, so that a loop or a ladder is known long after its records went.
        self._faults_max = _FAULTS_PER_RECORD * kept_max

    def add(self, record: ErrorRecord) -> ErrorRecord:
        """Keep a record; return it with its number, and as a loop if it is one."""
        self._check_owner(record)
        with self._lock:
            return self._add_locked(record)

    @property
    def records(self) -> tuple[ErrorRecord, ...]:
        """The kept records, oldest first."""
        with self._lock:
            return tuple(self._records)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The kept decisions, oldest first."""
        with self._lock:
            return tuple(self._decisions)

    @property
    def count(self) -> int:
        """How many records were ever added."""
        with self._lock:
            return self._tally.count

    def standing(self, record: ErrorRecord) -> Standing:
        """Return what is known about this fault; `decide` needs nothing else."""
        with self._lock:
            return self._tally.standing(record)

    def snapshot(self) -> HistorySnapshot:
        """Return everything that is kept, as it is at one moment."""
        with self._lock:
            return HistorySnapshot(
                plan_id=self.plan_id,
                records=tuple(self._records),
                decisions=tuple(self._decisions),
                count=self._tally.count,
                decision_count=self._tally.decision_count,
                by_category=dict(self._tally.by_category),
            )

    def _check_owner(self, record: ErrorRecord) -> None:
        if record.plan_id != self.plan_id:
            raise RequestError(
                f"A record of plan `{record.plan_id}` cannot stand in the history of"
                f" plan `{self.plan_id}`"
            )

    def _add_locked(self, record: ErrorRecord) -> ErrorRecord:
        kept = self._tally.add(record, loop_after=_loop_after(record, self._loop_after))
        self._tally.forget_oldest(self._faults_max)
        self._records.append(kept)
        return kept

    def _decided_locked(self, record: ErrorRecord, decision: Decision, at: float) -> Decision:
        kept = self._tally.decided(record, decision, at)
        self._decisions.append(kept)
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverySettings:
    """How a service recovers, how much it keeps, and what its retries cost."""

    policy: RecoveryPolicy = field(default_factory=RecoveryPolicy)
    retries: RetryTerms = field(default_factory=RetryTerms)
    kept_max: int = KEPT_MAX

    def __post_init__(self) -> None:
        _check_kept_max(self.kept_max)


class ErrorRecoveryService:
    """Records the errors of all plans and decides about each; one instance serves all threads.

    No error is lost: a plan's history comes into being and takes its record in one atomic step,
    also on an interpreter without a global lock. A decision, its price and its place in the history
    are one atomic step too, so two callers never share one retry. Waiting, parking a gate and
    telling the listener happen after the lock is free.

    With a journal all this holds for every process that shares it, nothing is kept in memory, and
    what was returned is kept for good; when the journal raises, nobody has the record.
    """

    def __init__(  # noqa: PLR0913  # the first is for everyday use, the rest are keywords
        self,
        settings: RecoverySettings | None = None,
        *,
        gate: ProviderGate | None = None,
        listener: Callable[[ErrorRecord | Decision], object] | None = None,
        journal: ErrorJournal | None = None,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings or RecoverySettings()
        self.gate: Final = gate or ProviderGate()
        self._listener = listener
        self._journal = journal
        self._clock = clock
        self._chance = chance
        self._lock = threading.Lock()  # guards: _histories and all in them, _budget
        self._histories: dict[str, ErrorHistory] = {}
        self._budget = RetryBudget(self._settings.retries)

    def record_error(
        self, plan_id: str, error: BaseException, **hints: Unpack[Hints]
    ) -> ErrorRecord:
        """Classify an error, redact it, and keep it in its plan's history; return the record."""
        if not isinstance(error, BaseException):
            raise RequestError(
                f"`error` must be an exception, got {type(error).__name__}",
                hint="Pass the exception itself, and `category=` if you know better",
            )
        unknown = hints.keys() - Hints.__annotations__.keys()
        if unknown:
            raise TypeError(f"record_error() got unexpected hints: {', '.join(sorted(unknown))}")
        draft = describe(plan_id, error, hints, at=self._clock(), record_id=uuid.uuid4().hex)
        record = self._keep(draft)
        tell(self._listener, record)
        return record

    def recover(
        self,
        record: ErrorRecord,
        remedies: Remedies | None = None,
        *,
        gate_pass: Pass | None = None,
    ) -> Decision:
        """Decide about a record, pay for a retry, keep the decision, and park the gate on limits.

        Tell with `remedies` what the plan has at hand. Hand over the pass of the failed call, so
        that a late limit does not close a gate that is open again.
        """
        kept = self._decide(record, remedies or Remedies())
        self._park(record, kept, gate_pass)
        tell(self._listener, kept)
        return kept

    def recover_by(
        self,
        actions: Container[Action],
        record: ErrorRecord,
        remedies: Remedies | None = None,
        *,
        gate_pass: Pass | None = None,
    ) -> Decision | None:
        """Recover if one of these actions is the cure; None leaves all to who can do the others."""
        try:
            kept = self._decide(record, remedies or Remedies(), actions)
        except _NotOurs:
            return None
        self._park(record, kept, gate_pass)
        tell(self._listener, kept)
        return kept

    def keep_decision(self, record: ErrorRecord, action: Action, reason: str) -> Decision:
        """Keep what somebody else decided about a record, such as a person; nothing is paid."""
        decision = Decision(
            action=action, reason=reason, plan_id=record.plan_id, record_seq=record.seq
        )
        kept = self._keep_decided(record, lambda *_: decision, self._clock())
        tell(self._listener, kept)
        return kept

    def handle(
        self,
        plan_id: str,
        error: BaseException,
        remedies: Remedies | None = None,
        **hints: Unpack[Hints],
    ) -> Decision:
        """Record an error and decide about it."""
        return self.recover(self.record_error(plan_id, error, **hints), remedies)

    def record_success(
        self,
        plan_id: str,
        *,
        node: str | None = None,
        provider: str | None = None,
        model: str | None = None,
    ) -> None:
        """Give retry tokens back, and start counting this node's tries anew; rungs stay."""
        check_plan_id(plan_id)
        buckets = _buckets(plan_id, gate_key(provider, model))
        if self._journal is not None:
            terms = self._settings.retries
            self._journal.succeed(
                plan_id,
                node,
                lambda missing: RetryBudget(terms, missing).give_back(buckets),
                buckets=buckets,
            )
            return
        with self._lock:
            self._budget.give_back(buckets)
            history = self._histories.get(plan_id)
            if history is not None:
                history._tally.succeeded(node)  # noqa: SLF001  # lent lock

    def history(self, plan_id: str) -> HistorySnapshot:
        """Return what is known of a plan's errors; a plan without errors has an empty history."""
        check_plan_id(plan_id)
        if self._journal is not None:
            return self._journal.history(plan_id, kept_max=self._settings.kept_max)
        with self._lock:
            found = self._histories.get(plan_id)
        return HistorySnapshot(plan_id=plan_id) if found is None else found.snapshot()

    def forget(self, plan_id: str) -> None:
        """Drop the history of a plan that is over from memory; a journal keeps what it has."""
        with self._lock:
            self._histories.pop(plan_id, None)
            for name in _buckets(plan_id, None):
                self._budget.forget(name)

    def _get_or_create_history(self, plan_id: str) -> ErrorHistory:
        with self._lock:
            return self._history_locked(plan_id)

    def _history_locked(self, plan_id: str) -> ErrorHistory:
        history = self._histories.get(plan_id)
        if history is None:
            history = self._histories[plan_id] = ErrorHistory(
                plan_id,
                kept_max=self._settings.kept_max,
                loop_after=self._settings.policy.loop_after,
                lock=self._lock,
            )
        return history

    def _keep(self, draft: ErrorRecord) -> ErrorRecord:
        if self._journal is not None:
            loop_after = _loop_after(draft, self._settings.policy.loop_after)
            return self._journal.add(draft, loop_after=loop_after)
        with self._lock:
            return self._history_locked(draft.plan_id)._add_locked(draft)  # noqa: SLF001  # lent lock

    def _decide(
        self, record: ErrorRecord, remedies: Remedies, actions: Container[Action] = tuple(Action)
    ) -> Decision:
        """Decide, pay and keep the decision in one step, in the journal or under the lock."""
        buckets = _buckets(record.plan_id, record.gate_key)
        chance, at = self._chance(), self._clock()

        def rule(standing: Standing, budget: RetryBudget) -> Decision:
            policy = self._settings.policy
            decision = decide(record, standing, policy, chance=chance, remedies=remedies)
            if decision.action is not Action.RETRY:
                return _ours(decision, actions)
            limited = record.category is ErrorCategory.RATE_LIMIT
            empty = budget.draw(buckets, budget.terms.parked_cost if limited else budget.terms.cost)
            if empty is None:
                return decision
            broke = replace(remedies, no_retry=f"the retry budget of {empty} is empty")
            decision = decide(record, standing, policy, chance=chance, remedies=broke)
            return _ours(decision, actions)

        return self._keep_decided(record, rule, at)

    def _keep_decided(
        self, record: ErrorRecord, rule: Callable[[Standing, RetryBudget], Decision], at: float
    ) -> Decision:
        buckets = _buckets(record.plan_id, record.gate_key)
        if self._journal is not None:
            terms = self._settings.retries
            return self._journal.decide(
                record,
                lambda standing, missing: rule(standing, RetryBudget(terms, missing)),
                buckets=buckets,
                at=at,
            )
        with self._lock:
            history = self._history_locked(record.plan_id)
            decision = rule(history._tally.standing(record), self._budget)  # noqa: SLF001  # lent lock
            return history._decided_locked(record, decision, at)  # noqa: SLF001  # lent lock

    def _park(self, record: ErrorRecord, decision: Decision, gate_pass: Pass | None) -> None:
        """Close the gate for everybody, for as long as the provider asked or we decided to wait."""
        if record.is_own_refusal:
            return
        key = record.gate_key
        limited = record.category is ErrorCategory.RATE_LIMIT
        overloaded = record.category is ErrorCategory.OVERLOADED
        if not limited and not (overloaded and record.retry_after_s is not None):
            return
        wait_s = record.retry_after_s if record.retry_after_s is not None else decision.delay_s
        if gate_pass is not None:
            gate_pass.limited(wait_s or None)
        elif key is not None:
            self.gate.park(key, wait_s or None)


class _NotOurs(Exception):  # noqa: N818  # undoes a step, and never leaves this module
    """Somebody else is to decide."""


def _ours(decision: Decision, actions: Container[Action]) -> Decision:
    if decision.action not in actions:
        raise _NotOurs
    return decision


def _check_kept_max(kept_max: int) -> None:
    if type(kept_max) is not int or kept_max < 1:
        raise SetupError(f"`kept_max` must be a whole number from 1, got {kept_max!r}")


def _loop_after(record: ErrorRecord, times: int) -> int | None:
    return times if record.category in LOOPABLE else None


def _buckets(plan_id: str, key: str | None) -> tuple[str, ...]:
    plan = f"plan `{plan_id}`"
    return (plan,) if key is None else (plan, f"provider `{key}`")
