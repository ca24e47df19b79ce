"""Threads for attempts: started when needed, used again, and left behind when they hang."""

from __future__ import annotations

import queue
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, Final

from cleveragents.application.services.plan_execution_context import carried

if TYPE_CHECKING:
    from collections.abc import Callable

_numbers = count(1)
_TURN_S: Final = 0.01


class AttemptWorkers:
    """Runs work on as many threads as there is work at once; how much that is, its owner decides.

    `start`, `leave` and `close` are for one thread, its owner.
    Python cannot end a thread: one whose work hangs is left behind, and nobody waits for it.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        # One token for each thread that waits for work, or is just about to.
        self._idle: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._left = 0
        self._name = f"ca-attempts-{next(_numbers)}"

    def start(self, work: Callable[[], object]) -> None:
        """Run the work at once, as its present caller; it must not raise."""
        self._work.put(carried(work))
        try:
            self._idle.get_nowait()
        except queue.Empty:
            # Daemons, because work that hangs must not keep the interpreter from its end;
            # all that do not hang are joined by `close`.
            name = f"{self._name}-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def leave(self, count: int = 1) -> None:
        """Say that some work hangs; its threads are left behind."""
        self._left += count

    def close(self, timeout_s: float = 5.0) -> int:
        """End the threads; return how many still hang."""
        for _ in self._threads:
            self._work.put(None)
        until = time.monotonic() + timeout_s
        while (alive := self._alive()) and len(alive) > self._left:
            if time.monotonic() >= until:
                break
            # In turns: nobody knows which of them hang, and these must not be waited for.
            for thread in alive:
                thread.join(_TURN_S)
        return len(self._alive())

    def _alive(self) -> list[threading.Thread]:
        return [thread for thread in self._threads if thread.is_alive()]

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            self._idle.put(None)
