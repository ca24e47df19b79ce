"""Every order of two callers, for the lock of the index that is opened when it is first asked."""

from __future__ import annotations

from pathlib import Path

import cleveragents.infrastructure.code_index.index  # noqa: F401  # not inside of a proof
from cleveragents.infrastructure.code_index.opening import LazyCodeIndex
from proofs.racekit import prove, refute, without_lock


def lazy() -> LazyCodeIndex:
    return LazyCodeIndex(Path("nowhere"))


def racy() -> LazyCodeIndex:
    """The racy twin: the same without its lock."""
    return without_lock(lazy(), "_lock")


def one_for_all(arena) -> bool:
    return len({id(one) for one in arena.returned.values()}) == 1


def nothing_stays_open(arena) -> bool:
    index = arena.subject._index
    return index is None or index._closed


def test_all_callers_get_one_index_in_every_order():
    prove(lazy, [LazyCodeIndex.opened, LazyCodeIndex.opened], one_for_all)


def test_no_index_stays_open_beside_close_in_any_order():
    prove(lazy, [LazyCodeIndex.opened, LazyCodeIndex.close], nothing_stays_open)


def test_opening_without_a_lock_is_caught():
    refute(racy, [LazyCodeIndex.opened, LazyCodeIndex.opened], one_for_all)
