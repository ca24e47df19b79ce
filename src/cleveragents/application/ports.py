"""What the application asks of the outside, as small protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cleveragents.domain.changeset import ChangeEntry, Changeset


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

    def record(self, changeset_id: str, entry: ChangeEntry) -> None:
        """Append an entry, and stamp it with the time if it has none.

        Refused with CA4002 when the changeset is finished or unknown, and with CA4003 when the
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
