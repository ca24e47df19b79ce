"""A thread pool that survives hung work, because Python cannot end a thread."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pool", "PoolFactory", "Submission", "WorkerPool", "closed_error"]

#: Of work that holds up no pool, because it runs beside them.
_NO_GENERATION: Final = -1

_log = logging.getLogger(__name__)


class Pool(Protocol):
    """What we use of a `ThreadPoolExecutor`."""

    def submit(self, fn: Callable[[], None], /) -> Future[None]:
        """Queue the work; raise `RuntimeError` after `shutdown`."""
        ...

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  # as in the standard library
        """Take no more work, and cancel what no worker has begun."""
        ...


#: Makes a pool from a number of workers and the start of their names.
PoolFactory: TypeAlias = "Callable[[int, str], Pool]"


@dataclass(frozen=True, slots=True)
class Submission:
    """Work in a pool: it runs, or its future is cancelled; the generation is the pool's."""

    future: Future[None]
    generation: int


class WorkerPool:
    """Runs work on threads, and replaces its threads when hung work holds them; share it.

    A worker whose work was given up is *stuck* until that work ends after all.
    While at most `stuck_max` workers are stuck, new work never waits for one of them:
    the threads are replaced by fresh ones, healthy work on the old ones finishes, and work
    that none of them had begun is cancelled, so that its owner submits it again.

    Every method is atomic; no lock is held while a pool, a callback or a thread runs.
    """

    def __init__(
        self, workers: int, *, stuck_max: int, pool_factory: PoolFactory = ThreadPoolExecutor
    ) -> None:
        self._workers = workers
        self._stuck_max = stuck_max
        self._pool_factory = pool_factory
        # Unique among the living: hung work keeps this object, and so its id, in use.
        self._prefix = f"ca-strategy-{id(self):x}-"
        first = self._new_pool(0)
        self._lock = threading.Lock()  # guards: _pool, _open, _generation, _stuck, _closed
        self._pool = first
        self._open = [first]  # the pools that nobody has shut down yet
        self._generation = 0
        self._stuck: dict[object, int] = {}  # with the generation of the pool it holds up
        self._closed = False

    @property
    def stuck(self) -> int:
        """How many workers are held by work that was given up."""
        with self._lock:
            return len(self._stuck)

    def submit(self, work: Callable[[], None]) -> Submission:
        """Queue the work; raise `RequestError` when closed, `RuntimeError` without a thread."""
        while True:
            with self._lock:
                pool, generation = self._pool, self._generation
            try:
                return Submission(pool.submit(work), generation)
            except RuntimeError:
                with self._lock:
                    closed, replaced = self._closed, self._generation != generation
                if closed:
                    raise closed_error() from None
                if not replaced:
                    raise

    def give_up(self, submission: Submission) -> bool:
        """Count the worker of running work as stuck; return False if it cannot be replaced."""
        future = submission.future
        with self._lock:
            self._stuck[future] = submission.generation
        future.add_done_callback(self._unstick)
        return self.renew()

    def renew(self) -> bool:
        """Replace the threads if a stuck worker is among them; return False beyond the limit."""
        with self._lock:
            generation = self._generation
            if not self._held_up_locked():
                return len(self._stuck) <= self._stuck_max
        fresh = self._new_pool(generation + 1)
        with self._lock:
            spent = fresh
            if self._generation == generation and self._held_up_locked():
                spent, self._pool, self._generation = self._pool, fresh, generation + 1
                self._open.append(fresh)
        spent.shutdown(wait=False, cancel_futures=True)
        if spent is not fresh:
            with self._lock:
                self._open.remove(spent)
        return True

    def aside(self, work: Callable[[], None]) -> None:
        """Run foreign work at once on a thread of its own, which is stuck until the work ends.

        Nobody waits for it but `close`. If no thread can be started, the log says so.
        """
        key = object()

        def run() -> None:
            try:
                work()
            finally:
                self._unstick(key)

        with self._lock:
            self._stuck[key] = _NO_GENERATION
        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(run,), name=f"{self._prefix}aside"
        )
        try:
            thread.start()
        except RuntimeError:
            self._unstick(key)
            _log.exception("No thread could be started for work beside the pool; it is left out")

    def close(self, timeout_s: float) -> tuple[str, ...]:
        """Refuse new work, cancel the queue, join the threads; return the names that still run."""
        with self._lock:
            self._closed = True
            pools = tuple(self._open)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + timeout_s
        for thread in self._threads():
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        return tuple(sorted(thread.name for thread in self._threads()))

    def _held_up_locked(self) -> bool:
        return (
            not self._closed
            and len(self._stuck) <= self._stuck_max
            and any(generation == self._generation for generation in self._stuck.values())
        )

    def _unstick(self, key: object) -> None:
        with self._lock:
            self._stuck.pop(key, None)

    def _new_pool(self, generation: int) -> Pool:
        return self._pool_factory(self._workers, f"{self._prefix}{generation}")

    def _threads(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith(self._prefix)]


def closed_error() -> RequestError:
    """Return the refusal of everything that comes after `close`."""
    return RequestError(
        "The executor is closed and takes no more work",
        code="CA6101",
        hint="Make a new executor, or close it only after the last request",
    )
