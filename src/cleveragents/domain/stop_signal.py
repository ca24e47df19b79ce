"""A request to stop: work is asked to end, because Python cannot end a thread."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from cleveragents.domain.event import tell

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StopSignal", "Stopped"]


class Stopped(BaseException):
    """Work ended because it was asked to: not an error, so `except Exception` lets it pass."""


class StopSignal:
    """Asks work to stop, once and for good; share it between threads.

    The first `stop` wins and its reason stays. Each listener is called exactly once, by the
    thread that stops or, if that came first, by the thread that registers; no lock is held.
    With `aside`, the thread that stops calls no listener but gives `aside` a function that does.
    """

    def __init__(self, *, aside: Callable[[Callable[[], None]], object] | None = None) -> None:
        self._aside = aside
        self._lock = threading.Lock()  # guards: _listeners, and the write of _reason
        self._reason: str | None = None  # set once; read without the lock, because work polls it
        self._listeners: dict[object, Callable[[str], object]] = {}

    @property
    def stopped(self) -> bool:
        """Say whether the work should end."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why the work should end; None while it should go on."""
        return self._reason

    def raise_if_stopped(self) -> None:
        """Raise `Stopped` with the reason; call it wherever the work may end."""
        reason = self._reason
        if reason is not None:
            raise Stopped(reason)

    def stop(self, reason: str = "stopped by the caller") -> None:
        """Ask the work to end; only the first reason counts."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            listeners = tuple(self._listeners.values())
            self._listeners.clear()
        if self._aside is None:
            _tell_all(listeners, reason)
        elif listeners:
            self._aside(partial(_tell_all, listeners, reason))

    def when_stopped(self, listener: Callable[[str], object]) -> Callable[[], None]:
        """Call the listener with the reason at the stop; return what forgets the listener.

        Without `aside`, the thread that stops waits for it: let it be short.
        """
        key = object()
        with self._lock:
            reason = self._reason
            if reason is None:
                self._listeners[key] = listener
        if reason is not None:
            tell(listener, reason)
        return lambda: self._forget(key)

    def _forget(self, key: object) -> None:
        with self._lock:
            self._listeners.pop(key, None)


def _tell_all(listeners: tuple[Callable[[str], object], ...], reason: str) -> None:
    for listener in listeners:
        tell(listener, reason)
