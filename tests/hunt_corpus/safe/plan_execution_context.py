"""The store and the context have a lock each; the guard, the read and the append are one step."""

from __future__ import annotations

import threading
from dataclasses import dataclass


class PlanError(Exception):
    pass


@dataclass(frozen=True)
class ChangeEntry:
    path: str
    content: str = ""


class MemoryChangesetStore:
    def __init__(self) -> None:
        self.changesets: dict[str, list[ChangeEntry]] = {}
        self._lock = threading.Lock()

    def start(self, plan_id: str) -> str:
        with self._lock:
            changeset_id = f"{plan_id}-{len(self.changesets) + 1}"
            self.changesets[changeset_id] = []
            return changeset_id

    def record(self, changeset_id: str, entry: ChangeEntry) -> None:
        with self._lock:
            self.changesets[changeset_id].append(entry)


class PlanExecutionContext:
    """What the actors of one plan share while it runs."""

    def __init__(self, plan_id: str, changeset_store: MemoryChangesetStore | None = None) -> None:
        self.plan_id = plan_id
        self.changeset_store = changeset_store or MemoryChangesetStore()
        self._active_changeset_ids: list[str] = []
        self._changeset_lock = threading.Lock()

    def start_changeset(self) -> str:
        with self._changeset_lock:
            changeset_id = self.changeset_store.start(self.plan_id)
            self._active_changeset_ids.append(changeset_id)
            return changeset_id

    def record_change(self, entry: ChangeEntry) -> str:
        with self._changeset_lock:
            if not self._active_changeset_ids:
                raise PlanError("No active changeset. Call start_changeset() first.")
            changeset_id = self._active_changeset_ids[-1]
            self.changeset_store.record(changeset_id, entry)
            return changeset_id

    def finish_changeset(self) -> str | None:
        with self._changeset_lock:
            if not self._active_changeset_ids:
                return None
            return self._active_changeset_ids.pop()
