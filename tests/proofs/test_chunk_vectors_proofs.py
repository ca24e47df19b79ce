"""Every order of two callers, for the lock of the vectors of chunks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from cleveragents.infrastructure.embeddings.chunk_vectors import ChunkVectors
from proofs.racekit import prove, refute, without_lock

ONE, TWO = SimpleNamespace(name="one"), SimpleNamespace(name="two")
THREAD = SimpleNamespace(ident=None)  # it was not started yet


def made() -> ChunkVectors:
    return ChunkVectors(Path("nowhere"), Path("nowhere"))


def racy() -> ChunkVectors:
    """The racy twin: the same without its lock."""
    return without_lock(made(), "_lock")


def keep_one(search: ChunkVectors):
    search._keep({b"1": ONE}, {b"1", b"2"})


def keep_two(search: ChunkVectors):
    search._keep({b"2": TWO}, {b"1", b"2"})


def publish_one(search: ChunkVectors):
    return search._published(ONE)


def publish_two(search: ChunkVectors):
    return search._published(TWO)


def enlist_one(search: ChunkVectors):
    return search._enlist(ONE, THREAD)


def enlist_two(search: ChunkVectors):
    return search._enlist(TWO, THREAD)


def working() -> ChunkVectors:
    """The thread is there, and has nothing left."""
    search = made()
    search._thread = THREAD
    return search


def both_are_kept(arena) -> bool:
    return dict(arena.subject._kept) == {b"1": ONE, b"2": TWO}


def one_for_all(arena) -> bool:
    return arena.returned[0] is arena.returned[1] is arena.subject._model


def one_thread_for_both(arena) -> bool:
    started = [arena.returned[0], arena.returned[1]]
    return sorted(started) == [False, True] and len(arena.subject._unfinished) == 2


def somebody_works_on_it(arena) -> bool:
    """Either the old thread took the tree, or a new one is started for it."""
    started, taken = arena.returned[0], arena.returned[1]
    return started is (taken is None)


def nothing_is_left_after_close(arena) -> bool:
    return arena.subject._closed and arena.subject._unfinished == ()


def test_vectors_of_two_callers_are_both_kept_in_every_order():
    prove(made, [keep_one, keep_two], both_are_kept)


def test_all_callers_use_one_model_in_every_order():
    prove(made, [publish_one, publish_two], one_for_all)


def test_one_thread_is_started_for_two_trees_in_every_order():
    prove(made, [enlist_one, enlist_two], one_thread_for_both)


def test_no_tree_is_left_behind_by_a_thread_that_ends_in_any_order():
    prove(working, [enlist_one, ChunkVectors._next], somebody_works_on_it)


def test_nothing_is_begun_after_close_in_any_order():
    prove(made, [enlist_one, ChunkVectors.close], nothing_is_left_after_close)


def test_a_lost_vector_without_the_lock_is_caught():
    refute(racy, [keep_one, keep_two], both_are_kept)


def test_two_models_without_the_lock_are_caught():
    refute(racy, [publish_one, publish_two], one_for_all)


def test_two_threads_without_the_lock_are_caught():
    refute(racy, [enlist_one, enlist_two], one_thread_for_both)
