"""Changesets in memory: the default store, for one process and as long as it lives."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cleveragents.domain.changeset import Changeset
from cleveragents.domain.changeset_rules import (
    check_open,
    check_owner,
    claimed_id,
    never_started,
    short_id,
)
from cleveragents.domain.errors import PlanError
from cleveragents.domain.net_change import Overlay, change_of, overlay_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.changeset import ChangeEntry, Content


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
        self, *, new_id: Callable[[], str] = short_id, clock: Callable[[], float] = time.time
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

        def claim(changeset_id: str) -> bool:
            head = Changeset(
                id=changeset_id, plan_id=plan_id, actor=actor, node=node, attempt=attempt
            )
            with self._lock:
                free = self._changesets.get(changeset_id) is None
                if free:
                    self._add_locked(head)
            return free

        return claimed_id(self._new_id, claim)

    def record(self, changeset_id: str, *entries: ChangeEntry) -> None:
        """Append entries to an open changeset, or refuse them all and change nothing."""
        now = self._clock()
        timed = [replace(entry, at=now) if entry.at is None else entry for entry in entries]
        changes = [change_of(entry) for entry in timed]
        with self._lock:
            kept = self._open_locked(changeset_id)
            for entry in timed:
                check_owner(kept.head, entry)
            try:
                for change in changes:
                    kept.overlay.add([change])
            except PlanError:
                # Those before the one that was refused are taken back.
                kept.overlay = overlay_of(kept.entries)
                raise
            kept.entries.extend(self._sharing_locked(entry) for entry in timed)

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
        check_open(kept.head)
        return kept

    def _kept_locked(self, changeset_id: str) -> _Kept:
        kept = self._changesets.get(changeset_id)
        if kept is None:
            raise never_started(changeset_id)
        return kept

    def _sharing_locked(self, entry: ChangeEntry) -> ChangeEntry:
        before = entry.before and self._contents.setdefault(entry.before.sha256, entry.before)
        after = entry.after and self._contents.setdefault(entry.after.sha256, entry.after)
        if before is entry.before and after is entry.after:
            return entry
        return replace(entry, before=before, after=after)
