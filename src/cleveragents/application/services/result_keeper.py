"""Keeps the results of many attempts at a time: they share a write, and a wait for the disk."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.services.attempt_order import Outcome

_TOGETHER_MAX: Final = 500


class ResultKeeper:
    """A thread that makes results durable and passes them on, in the order in which they came.

    What is kept together with others waits for nobody longer than one write takes.
    """

    def __init__(
        self,
        put: Callable[[list[Outcome]], object],
        deliver: Callable[[Outcome], object],
        refuse: Callable[[Outcome, BaseException], object],
    ) -> None:
        self._put = put
        self._deliver = deliver
        self._refuse = refuse
        self._results: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ca-results", daemon=True)
        self._thread.start()

    def keep(self, outcome: Outcome) -> None:
        """Hand a result over; safe from any thread."""
        self._results.put(outcome)

    def close(self) -> None:
        """Keep what was handed over, and end the thread."""
        self._results.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._results.get()) is not None:
            together, more = self._rest([first])
            try:
                self._put(together)
            except BaseException as error:  # noqa: BLE001  # whoever waits for it must hear of it
                for one in together:
                    self._refuse(one, error)
            else:
                for one in together:
                    self._deliver(one)
            if not more:
                return

    def _rest(self, together: list[Outcome]) -> tuple[list[Outcome], bool]:
        """Take what else is there by now; say whether more may come."""
        while len(together) < _TOGETHER_MAX:
            try:
                one = self._results.get_nowait()
            except queue.Empty:
                break
            if one is None:
                return together, False
            together.append(one)
        return together, True
