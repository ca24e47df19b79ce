"""Where a plan's changes go: each into the changeset of the caller that made it."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.domain.diff import unified_diff
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.domain.net_change import combined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cleveragents.application.ports import ChangesetStore
    from cleveragents.domain.changeset import ChangeEntry, Changeset

P = ParamSpec("P")
R = TypeVar("R")

_Key: TypeAlias = "weakref.ref[PlanExecutionContext]"

# The changeset that each plan's caller opened. The mapping is replaced, never changed:
# a thread or task that copied it keeps what it got.
_own: Final[ContextVar[Mapping[_Key, str]]] = ContextVar(
    "cleveragents_own_changesets", default=MappingProxyType({})
)


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that runs as its present caller wherever it is called.

    Hand work to other threads through it, and what they record goes to the changeset of the one
    who handed it over: `executor.submit(carried(work), …)`. It may run many times at once.
    asyncio tasks and `asyncio.to_thread` need no help.
    """
    caller = copy_context()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        # A context can be entered by one thread at a time, so each run gets its own copy.
        return caller.copy().run(function, *args, **kwargs)

    return run


class PlanExecutionContext:
    """Records the changes of one plan, by any number of actors at once.

    A change goes to the changeset that the call names; else to the caller's own, the one that this
    thread or task opened last or inherited; else to the last one started that is still active.
    An own changeset that is finished refuses (CA4002): no change ever falls through to another's.

    Safe to share between threads and tasks, with or without an interpreter lock: which changeset
    is the last active one is decided under one lock, and the store, never called while that lock
    is held, decides whether a changeset still takes changes. A caller without an own changeset
    records into one that was active during the call, or is told that there is none.
    """

    def __init__(self, plan_id: str, changeset_store: ChangesetStore | None = None) -> None:
        if not plan_id:
            raise RequestError(f"`plan_id` must not be empty, got {plan_id!r}")
        self._plan_id = plan_id
        self._changeset_store = (
            InMemoryChangesetStore() if changeset_store is None else changeset_store
        )
        # Weak, so that a thread that serves many plans does not keep them all alive.
        self._key: _Key = weakref.ref(self)
        self._changeset_lock = threading.Lock()  # guards: _active_changeset_ids
        self._active_changeset_ids: list[str] = []

    @property
    def plan_id(self) -> str:
        """The plan whose changes are recorded here."""
        return self._plan_id

    def start_changeset(self) -> str:
        """Open a changeset, make it the caller's own, and return its id."""
        return self._enter(self._changeset_store.start(self._plan_id))

    def record_change(self, entry: ChangeEntry, changeset_id: str | None = None) -> None:
        """Record a change into the named changeset, the caller's own, or the last active one."""
        if changeset_id is not None:
            self._check_of_plan(changeset_id)
            self._changeset_store.record(changeset_id, entry)
        elif (own := self._own_id()) is not None:
            self._changeset_store.record(own, entry)
        else:
            self._record_into_last(entry)

    def finish_changeset(self, changeset_id: str | None = None) -> None:
        """Close the named changeset, or the caller's own; it takes no more changes.

        The caller keeps it as its own until it starts another one or leaves its `with` block.
        """
        if changeset_id is None:
            changeset_id = self._own_id()
            if changeset_id is None:
                raise _nothing_own()
        else:
            self._check_of_plan(changeset_id)
        self._changeset_store.finish(changeset_id)
        self._retire(changeset_id)

    @contextmanager
    def changeset(
        self,
        *,
        actor: str | None = None,
        node: str | None = None,
        attempt: int | None = None,
    ) -> Iterator[str]:
        """Open a changeset for the block; after it, what was the caller's own before is so again.

        It is finished when the block ends, also by an exception: what was changed stays on record.
        """
        outer = self._own_id()
        inner = self._enter(
            self._changeset_store.start(self._plan_id, actor=actor, node=node, attempt=attempt)
        )
        try:
            yield inner
        finally:
            self._bind(outer)
            self._finish_if_open(inner)

    def changesets(self, changeset_id: str | None = None) -> tuple[Changeset, ...]:
        """Return snapshots: the named changeset, or all of the plan in the order of their start."""
        if changeset_id is None:
            return self._changeset_store.of_plan(self._plan_id)
        changeset = self._changeset_store.get(changeset_id)
        if changeset.plan_id != self._plan_id:
            raise _of_another_plan(changeset, self._plan_id)
        return (changeset,)

    def changes(self, changeset_id: str | None = None) -> tuple[ChangeEntry, ...]:
        """Return the entries of one changeset, or of the plan, changeset by changeset."""
        return tuple(e for changeset in self.changesets(changeset_id) for e in changeset.entries)

    def diff(self, changeset_id: str | None = None) -> str:
        """Return the net effect of one changeset, or of the plan, as a patch for `git apply`.

        Changesets of a plan that start from different versions of a file are refused (CA4004).
        """
        return unified_diff(combined(self.changesets(changeset_id)))

    def _record_into_last(self, entry: ChangeEntry) -> None:
        while True:
            last = self._last_active_id()
            try:
                self._changeset_store.record(last, entry)
            except PlanError as error:
                if error.code != "CA4002":
                    raise
                # Finished since we looked: it is not active, so look again.
                self._retire(last)
            else:
                return

    def _last_active_id(self) -> str:
        with self._changeset_lock:
            if not self._active_changeset_ids:
                raise PlanError(
                    "No active changeset. Call start_changeset() first.",
                    code="CA4001",
                    facts={"plan": self._plan_id},
                )
            return self._active_changeset_ids[-1]

    def _enter(self, changeset_id: str) -> str:
        with self._changeset_lock:
            self._active_changeset_ids.append(changeset_id)
        self._bind(changeset_id)
        return changeset_id

    def _retire(self, changeset_id: str) -> None:
        with self._changeset_lock:
            if changeset_id in self._active_changeset_ids:
                self._active_changeset_ids.remove(changeset_id)

    def _finish_if_open(self, changeset_id: str) -> None:
        try:
            self.finish_changeset(changeset_id)
        except PlanError as error:
            if error.code != "CA4002":
                raise

    def _check_of_plan(self, changeset_id: str) -> None:
        with self._changeset_lock:
            started_here = changeset_id in self._active_changeset_ids
        if not started_here:
            self.changesets(changeset_id)

    def _own_id(self) -> str | None:
        return _own.get().get(self._key)

    def _bind(self, changeset_id: str | None) -> None:
        others = {
            key: own
            for key, own in _own.get().items()
            if key is not self._key and key() is not None
        }
        _own.set(others if changeset_id is None else {**others, self._key: changeset_id})


def _nothing_own() -> PlanError:
    return PlanError(
        "The caller has no changeset of its own to finish",
        code="CA4001",
        hint="Pass the id that `start_changeset()` returned",
    )


def _of_another_plan(changeset: Changeset, plan_id: str) -> PlanError:
    return PlanError(
        f"Changeset `{changeset.id}` is of plan `{changeset.plan_id}`, not of `{plan_id}`",
        code="CA4002",
        facts={"changeset": changeset.id, "plan": changeset.plan_id},
        hint="Record into a changeset of the same plan",
    )
