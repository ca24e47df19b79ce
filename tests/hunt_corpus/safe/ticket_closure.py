"""The closure has a lock beside its state."""

from __future__ import annotations

import threading
from collections.abc import Callable


def make_dispenser(start: int = 1) -> tuple[Callable[[], int], Callable[[], int]]:
    """Return a function that gives tickets and one that tells how many were given."""
    current = start
    given = 0
    lock = threading.Lock()

    def take() -> int:
        nonlocal current, given
        with lock:
            ticket = current
            current = ticket + 1
            given += 1
            return ticket

    def count() -> int:
        with lock:
            return given

    return take, count


take_ticket, tickets_given = make_dispenser()
