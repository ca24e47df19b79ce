"""What the application asks of the outside, as small protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.changeset import ChangeEntry, Changeset
    from cleveragents.domain.error_record import Decision, ErrorRecord, HistorySnapshot, Standing


class ChangesetStore(Protocol):
    """Keeps changesets; the authority on which of them are open.

    Every method is atomic and safe to call from any thread.
    What a method returned is kept; what a method refused left no trace.
    """

    def start(
        self,
        plan_id: str,
        *,
        actor: str | None = None,
        node: str | None = None,
        attempt: int | None = None,
    ) -> str:
        """Open a changeset of a plan and return its id, which no other changeset has."""
        ...

    def record(self, changeset_id: str, *entries: ChangeEntry) -> None:
        """Append entries, all or none, and stamp with the time what has none.

        Refused with CA4002 when the changeset is finished or unknown, and with CA4003 when an
        entry cannot follow those before it, or names another actor, node or attempt.
        """
        ...

    def finish(self, changeset_id: str) -> None:
        """Close a changeset for good; CA4002 when it is finished already, or unknown."""
        ...

    def get(self, changeset_id: str) -> Changeset:
        """Return a snapshot of a changeset; CA4002 when it is unknown."""
        ...

    def of_plan(self, plan_id: str) -> tuple[Changeset, ...]:
        """Return snapshots of a plan's changesets in the order in which they were started."""
        ...


class ErrorJournal(Protocol):
    """Keeps every error and decision of every plan, and the retry tokens that decisions cost.

    Every method is atomic and safe to call from any thread, and from every process that shares the
    journal. What a method returned is kept; what a method refused left no trace.
    A function that is handed in may run more than once for one call, on a fresh mapping each time:
    it may change the mapping it gets, and nothing else. The mapping holds, for each of the named
    buckets that is not full, how many tokens are missing in it.
    """

    def add(self, draft: ErrorRecord, *, loop_after: int | None) -> ErrorRecord:
        """Keep a record; return it with its plan's next number, and as a loop if it is one.

        It is a loop when its fault came this often in its node; with None it never is.
        """
        ...

    def decide(
        self,
        record: ErrorRecord,
        rule: Callable[[Standing, dict[str, int]], Decision],
        *,
        buckets: tuple[str, ...],
        at: float,
    ) -> Decision:
        """Decide about a record by a rule; keep the decision and its price, return it numbered."""
        ...

    def succeed(
        self,
        plan_id: str,
        node: str | None,
        give_back: Callable[[dict[str, int]], object],
        *,
        buckets: tuple[str, ...],
    ) -> None:
        """Start counting a node's tries anew, and give tokens back."""
        ...

    def history(self, plan_id: str, *, kept_max: int) -> HistorySnapshot:
        """Return the last records and decisions of a plan, at most this many, and exact counts."""
        ...
