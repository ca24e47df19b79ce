"""Changesets in memory: the default store, for one process and as long as it lives."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cleveragents.domain.changeset import Changeset
from cleveragents.domain.errors import InternalError, PlanError
from cleveragents.domain.net_change import Overlay, change_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.changeset import ChangeEntry, Content

# A source of ids that repeats itself this often in a row is broken.
_ID_ATTEMPTS_MAX: Final = 100


def _short_id() -> str:
    return secrets.token_hex(5)


@dataclass(slots=True)
class _Kept:
    """A changeset while it grows; `head` is its snapshot without entries."""

    head: Changeset
    entries: list[ChangeEntry] = field(default_factory=list)
    overlay: Overlay = field(default_factory=Overlay)


class InMemoryChangesetStore:
    """A `ChangesetStore` whose every method is atomic under one lock.

    Safe to share between any number of threads, with or without an interpreter lock:
    the entries of one thread keep their order, nothing is recorded after `finish` returned,
    and a refused call changed nothing. Equal contents are kept once.
    """

    def __init__(
        self, *, new_id: Callable[[], str] = _short_id, clock: Callable[[], float] = time.time
    ) -> None:
        self._new_id = new_id
        self._clock = clock
        self._lock = threading.Lock()  # guards: _changesets, _ids_of_plan, _contents
        self._changesets: dict[str, _Kept] = {}
        self._ids_of_plan: dict[str, list[str]] = {}
        self._contents: dict[str, Content] = {}

    def start(
        self,
        plan_id: str,
        *,
        actor: str | None = None,
        node: str | None = None,
        attempt: int | None = None,
    ) -> str:
        """Open a changeset of a plan and return its id."""
        for _ in range(_ID_ATTEMPTS_MAX):
            head = Changeset(
                id=f"c-{self._new_id()}", plan_id=plan_id, actor=actor, node=node, attempt=attempt
            )
            with self._lock:
                if self._changesets.get(head.id) is None:
                    self._add_locked(head)
                    return head.id
        raise InternalError(f"The source of changeset ids repeated itself {_ID_ATTEMPTS_MAX} times")

    def record(self, changeset_id: str, entry: ChangeEntry) -> None:
        """Append an entry to an open changeset, or refuse it and change nothing."""
        if entry.at is None:
            entry = replace(entry, at=self._clock())
        change = change_of(entry)
        with self._lock:
            kept = self._open_locked(changeset_id)
            _check_owner(kept.head, entry)
            kept.overlay.add([change])
            kept.entries.append(self._sharing_locked(entry))

    def finish(self, changeset_id: str) -> None:
        """Close an open changeset for good."""
        with self._lock:
            kept = self._open_locked(changeset_id)
            kept.head = replace(kept.head, finished=True)
            kept.overlay = Overlay()  # nothing will be checked against it again

    def get(self, changeset_id: str) -> Changeset:
        """Return a snapshot of a changeset."""
        with self._lock:
            return self._snapshot_locked(changeset_id)

    def of_plan(self, plan_id: str) -> tuple[Changeset, ...]:
        """Return snapshots of a plan's changesets in the order in which they were started."""
        with self._lock:
            return tuple(map(self._snapshot_locked, self._ids_of_plan.get(plan_id, ())))

    def _add_locked(self, head: Changeset) -> None:
        self._changesets[head.id] = _Kept(head)
        ids = self._ids_of_plan.get(head.plan_id)
        if ids is None:
            ids = self._ids_of_plan[head.plan_id] = []
        ids.append(head.id)

    def _snapshot_locked(self, changeset_id: str) -> Changeset:
        kept = self._kept_locked(changeset_id)
        return replace(kept.head, entries=tuple(kept.entries))

    def _open_locked(self, changeset_id: str) -> _Kept:
        kept = self._kept_locked(changeset_id)
        if kept.head.finished:
            raise PlanError(
                f"Changeset `{changeset_id}` is finished and takes no more changes",
                code="CA4002",
                facts={"changeset": changeset_id},
                hint="Start a new changeset and record into that",
            )
        return kept

    def _kept_locked(self, changeset_id: str) -> _Kept:
        kept = self._changesets.get(changeset_id)
        if kept is None:
            raise PlanError(
                f"Changeset {changeset_id!r} was never started",
                code="CA4002",
                facts={"changeset": changeset_id},
                hint="Pass an id that `start_changeset()` returned",
            )
        return kept

    def _sharing_locked(self, entry: ChangeEntry) -> ChangeEntry:
        before = entry.before and self._contents.setdefault(entry.before.sha256, entry.before)
        after = entry.after and self._contents.setdefault(entry.after.sha256, entry.after)
        if before is entry.before and after is entry.after:
            return entry
        return replace(entry, before=before, after=after)


def _check_owner(changeset: Changeset, entry: ChangeEntry) -> None:
    """Refuse an entry that says itself that it is another's."""
    for what in ("actor", "node", "attempt"):
        owner, maker = getattr(changeset, what), getattr(entry, what)
        if None not in {owner, maker} and owner != maker:
            raise PlanError(
                f"Changeset `{changeset.id}` is of {what} {owner!r}, the change is of {maker!r}",
                code="CA4003",
                facts={"changeset": changeset.id, what: maker},
                hint=f"Record it into the changeset of {what} {maker!r}",
            )
