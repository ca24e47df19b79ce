"""What is never forgotten about a plan's errors, however many of its records are dropped.

The rules stand here once: a history in memory holds a whole tally,
a journal on disk loads the part that one record concerns and writes it back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cleveragents.domain.error_record import Action, Decision, ErrorCategory, ErrorRecord, Standing


@dataclass(slots=True)
class Fault:
    """What is known about one fingerprint in one node."""

    times: int = 0
    rung: int = 0


@dataclass(slots=True)
class Tries:
    """What was tried against one category in one node since its last success."""

    counts: dict[Action, int] = field(default_factory=dict)
    waited_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class ErrorTally:
    """Exact counts, rungs and tries of one plan.

    Not thread-safe: whoever shares one guards it.
    """

    count: int = 0
    decision_count: int = 0
    replans: int = 0
    by_category: dict[ErrorCategory, int] = field(default_factory=dict)
    #: By node and fingerprint.
    faults: dict[tuple[str | None, str], Fault] = field(default_factory=dict)
    #: By node and category.
    tries: dict[tuple[str | None, ErrorCategory], Tries] = field(default_factory=dict)
    #: By node, the highest rung of the faults that were forgotten: no ladder goes down by it.
    floors: dict[str | None, int] = field(default_factory=dict)

    def add(self, record: ErrorRecord, *, loop_after: int | None) -> ErrorRecord:
        """Count a record; return it with its number, and as a loop from the given time on."""
        fault = self.faults.setdefault((record.node, record.fingerprint), Fault())
        fault.times += 1
        self.count += 1
        kept = record.numbered(
            self.count, loop=loop_after is not None and fault.times >= loop_after
        )
        self.by_category[kept.category] = self.by_category.get(kept.category, 0) + 1
        return kept

    def standing(self, record: ErrorRecord) -> Standing:
        """Return what is known about the fault of this record."""
        fault = self.faults.get((record.node, record.fingerprint), Fault())
        tries = self.tries.get((record.node, record.category), Tries())
        return Standing(
            times=max(1, fault.times),
            rung=max(fault.rung, self.floors.get(record.node, 0)),
            tries=dict(tries.counts),
            waited_s=tries.waited_s,
            replans=self.replans,
        )

    def decided(self, record: ErrorRecord, decision: Decision, at: float) -> Decision:
        """Count a decision about this record; return it with its number and time."""
        action = decision.action
        fault = self.faults.setdefault((record.node, record.fingerprint), Fault())
        fault.rung = max(fault.rung, action.rung)
        tries = self.tries.setdefault((record.node, record.category), Tries())
        tries.counts[action] = tries.counts.get(action, 0) + 1
        tries.waited_s += decision.delay_s
        self.replans += action is Action.REPLAN
        self.decision_count += 1
        return replace(decision, seq=self.decision_count, at=at)

    def forget_oldest(self, faults_max: int) -> None:
        """Drop the faults met first where there are too many; counts of all stay exact."""
        while len(self.faults) > faults_max:
            node, fingerprint = next(iter(self.faults))
            rung = self.faults.pop((node, fingerprint)).rung
            self.floors[node] = max(rung, self.floors.get(node, 0))

    def succeeded(self, node: str | None) -> None:
        """Start counting the tries of a node anew; its rungs stay."""
        for key in [key for key in self.tries if key[0] == node]:
            del self.tries[key]
