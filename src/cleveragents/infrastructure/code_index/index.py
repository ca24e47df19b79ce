"""The code index of a user: trees kept up to date, in memory and in the cache folder."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import refuse_unless_relative
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.code_index.keeper import Clocks, Keeper, overlaid
from cleveragents.infrastructure.code_index.storage import Storage, cache_folder
from cleveragents.infrastructure.code_index.view import TreeView

if TYPE_CHECKING:
    from pathlib import Path

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.infrastructure.code_index.keeper import Known

__all__ = ["IndexLimits", "StoredCodeIndex"]

#: How many trees stay in memory.
TREES_MAX: Final = 8
_CLOSE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class IndexLimits:
    """How long a request, and one step of the work in the background, may index."""

    request_s: float = 0.5
    #: A request that comes meanwhile waits for the end of a step.
    step_s: float = 0.25

    def __post_init__(self) -> None:
        for name in ("request_s", "step_s"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise RequestError(f"`{name}` must be 0 s or more, got {value!r}")


def _monotonic() -> float:
    # Looked up at each call, so that a test may put another clock into `time`.
    return time.monotonic()


def _time_ns() -> int:
    return time.time_ns()


class StoredCodeIndex:
    """A `CodeIndex` in one SQLite file of the user's cache folder; share it between threads.

    `view` sees every write to the tree that ended before it was called. It indexes what it can
    within its limit; the rest is indexed by one thread in the background, which ends when
    nothing is left. What was indexed is kept, and shared with other processes.
    Without a usable file everything works, in memory.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        limits: IndexLimits | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        self._storage = Storage(cache_folder() if folder is None else folder)
        self._limits = IndexLimits() if limits is None else limits
        self._clocks = Clocks(_time_ns, _monotonic) if clocks is None else clocks
        self._stop = StopSignal()
        self._lock = threading.Lock()  # guards: _keepers, _unfinished, _thread, _closed
        self._keepers: dict[str, Keeper] = {}  # the one that was used last comes last
        self._unfinished: dict[str, Keeper] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def view(self, request: ContextRequest, stop: StopSignal) -> TreeView:
        """Return the tree as it is now; `missing` says what the background still works on."""
        keeper = self._keeper(request.root)
        known = keeper.refresh(stop, self._limits.request_s, waited_for=True)
        if not known.is_whole:
            self._finish_later(keeper)
        return _view(keeper, known, request)

    def build(self, request: ContextRequest, stop: StopSignal) -> TreeView:
        """Index the whole tree before answering, however long it takes."""
        keeper = self._keeper(request.root)
        while not (known := keeper.refresh(stop, float("inf"), waited_for=False)).is_whole:
            pass  # another caller's run may count, and commits are read in portions
        return _view(keeper, known, request)

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """Stop and join the work in the background; what it did so far is kept."""
        with self._lock:
            self._closed = True
            self._unfinished.clear()
            thread = self._thread
        self._stop.stop("the code index was closed")
        # One that is about to start finds nothing to do, and ends.
        if thread is not None and thread.ident is not None:
            thread.join(timeout_s)

    # -- trees ---------------------------------------------------------------------------

    def _keeper(self, root: Path) -> Keeper:
        name = os.path.realpath(root)
        new = Keeper(name, self._storage, self._clocks)
        with self._lock:
            keeper = self._keepers.pop(name, new)
            self._keepers[name] = keeper
            if len(self._keepers) > TREES_MAX:
                del self._keepers[next(iter(self._keepers))]
        return keeper

    # -- the work in the background ------------------------------------------------------

    def _finish_later(self, keeper: Keeper) -> None:
        thread = threading.Thread(target=self._finish, name="ca-code-index")
        if self._enlist(keeper, thread):
            thread.start()

    def _enlist(self, keeper: Keeper, thread: threading.Thread) -> bool:
        """Note a tree that is not indexed yet; say whether the thread is to be started for it."""
        with self._lock:
            if self._closed:
                return False
            self._unfinished[keeper.root] = keeper
            if self._thread is not None:
                return False
            self._thread = thread
            return True

    def _next(self) -> Keeper | None:
        """Take a tree to work on; without one the thread is no longer there."""
        with self._lock:
            root = next(iter(self._unfinished), None)
            if root is None:
                self._thread = None
                return None
            return self._unfinished.pop(root)

    def _finish(self) -> None:
        while (keeper := self._next()) is not None:
            if not self._is_finished(keeper):
                with self._lock:
                    if not self._closed:
                        self._unfinished[keeper.root] = keeper

    def _is_finished(self, keeper: Keeper) -> bool:
        """Work for one step; what breaks here is tried again by the next request."""
        try:
            return keeper.refresh(self._stop, self._limits.step_s, waited_for=False).is_whole
        except (Exception, Stopped):  # noqa: BLE001  # nobody waits for this thread's answer
            return True


def _view(keeper: Keeper, known: Known, request: ContextRequest) -> TreeView:
    changed = {} if request.overlay is None else request.overlay.changed()
    for path in changed:
        refuse_unless_relative("overlay", path)
    return TreeView(overlaid(keeper, known, changed))
