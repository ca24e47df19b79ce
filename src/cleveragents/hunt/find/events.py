"""What one function does to state, in the order of its source: the words that the rules speak."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

__all__ = [
    "ANY_LOCK",
    "GLOBAL",
    "READS",
    "WRITES",
    "Event",
    "Function",
    "Hold",
    "Op",
    "Path",
    "are_exclusive",
    "are_together",
    "locks_of",
    "share_a_lock",
]

#: Stands before the name of a module's own state, so that it meets no attribute of a class.
GLOBAL: Final = "::"
#: A lock that is held by all signs, but whose name nobody can tell.
ANY_LOCK: Final = "*"

#: The arms of the branches that lead to a place: (branch, arm) each.
Path = tuple[tuple[int, int], ...]


class Op(StrEnum):
    """How a place touches the state."""

    TEST = "test"
    READ = "read"
    #: `items[-1]`, `len(items)`: what a neighbour's append changes.
    LAST = "last"
    ITERATE = "iterate"
    #: The name is bound anew.
    WRITE = "write"
    ADD = "add"
    REMOVE = "remove"
    #: A test and a write that are one step: `setdefault`.
    ENSURE = "ensure"
    #: A call of a function of the same owner; `state` names it.
    CALL = "call"
    #: A callback or a wait; `state` names it.
    STRANGER = "stranger"


READS: Final = frozenset({Op.TEST, Op.READ, Op.LAST, Op.ITERATE})
WRITES: Final = frozenset({Op.WRITE, Op.ADD, Op.REMOVE, Op.ENSURE})


class Hold(NamedTuple):
    """One stay inside a lock; leaving it and coming back is another stay."""

    lock: str
    region: int


class Event(NamedTuple):
    """One touch of one state."""

    op: Op
    state: str
    line: int
    holds: frozenset[Hold] = frozenset()
    path: Path = ()
    #: How far below the name: 0 the name itself, 1 what it holds, 2 what that holds.
    depth: int = 0
    #: A key that is a literal: two different ones never meet.
    key: str | None = None
    #: It binds nothing or emptiness: whoever tested before finds nothing.
    clears: bool = False
    #: What the method does is taken from a name that other things have, too: `add`, `set`.
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function as the rules see it, without what it calls."""

    name: str
    line: int
    events: tuple[Event, ...]
    decorators: frozenset[str] = frozenset()
    is_async: bool = False
    #: States whose value, kept in a local name, decides a branch.
    tested: frozenset[str] = frozenset()
    #: States that stand under a lock which the call itself makes.
    lock_per_call: frozenset[str] = frozenset()
    #: Its name or docstring says that the caller holds the lock.
    caller_locks: bool = False
    #: State that it hands out, with its depth.
    returns: tuple[str, int] | None = None

    @property
    def is_property(self) -> bool:
        """Say whether reading its name runs it."""
        return not self.decorators.isdisjoint({"property", "cached_property"})


def are_exclusive(one: Event, other: Event) -> bool:
    """Say whether no run of the function meets both: they stand in two arms of one branch."""
    arms = dict(one.path)
    return any(arms.get(branch, arm) != arm for branch, arm in other.path)


def are_together(one: Event, other: Event) -> bool:
    """Say whether one stay inside a lock covers both.

    A lock out of many, chosen by a key, covers what the container holds under that key alone.
    """
    covers = one.holds & other.holds
    if one.depth and other.depth:
        return bool(covers)
    return any(not hold.lock.endswith("[]") for hold in covers)


def locks_of(event: Event) -> frozenset[str]:
    """Return the names of the locks that are held."""
    return frozenset(hold.lock for hold in event.holds)


def share_a_lock(one: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether two places exclude each other by a lock."""
    if ANY_LOCK in one or ANY_LOCK in other:
        return bool(one) and bool(other)
    return not one.isdisjoint(other)
