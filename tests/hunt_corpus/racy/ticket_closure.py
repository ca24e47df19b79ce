"""State in a closure: two callers of one function get the same ticket."""

from __future__ import annotations

from collections.abc import Callable


def make_dispenser(start: int = 1) -> tuple[Callable[[], int], Callable[[], int]]:
    """Return a function that gives tickets and one that tells how many were given."""
    current = start
    given = 0

    def take() -> int:
        nonlocal current, given
        ticket = current
        current = ticket + 1
        given += 1
        return ticket

    def count() -> int:
        return given

    return take, count


take_ticket, tickets_given = make_dispenser()
