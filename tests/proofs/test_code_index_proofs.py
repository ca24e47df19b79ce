"""Every order of two callers, for the locks of the code index."""

from __future__ import annotations

from pathlib import Path

from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.infrastructure.code_index.rounds import Rounds
from proofs.racekit import prove, refute, without_lock


class Counted:
    """Rounds of work that may not run twice at once."""

    def __init__(self) -> None:
        self.rounds: Rounds[int] = Rounds()
        self.inside = 0
        self.most = 0
        self.runs = 0

    def work(self) -> int:
        self.inside = self.inside + 1
        self.most = max(self.most, self.inside)
        self.runs = self.runs + 1
        self.inside = self.inside - 1
        return self.runs

    def call(self) -> int | None:
        """As `share` does, but without waiting: None for a caller whose turn comes later."""
        mine = self.rounds._arrive()
        return self.rounds._lead(mine, self.work) if self.rounds._leads(mine) else None


def one_at_a_time(arena) -> bool:
    """Nobody meets another at work, and who must wait has its turn when nobody works."""
    rounds = arena.subject.rounds
    idle = arena.subject.most == 1 and not rounds._running
    return idle and (None not in arena.returned.values() or turns_come(rounds))


def turns_come(rounds: Rounds[int]) -> bool:
    """Whether the next caller leads; a round that ended meanwhile has a result to share."""
    return rounds._leads(rounds._arrive())


def test_work_runs_one_at_a_time_in_every_order():
    prove(Counted, [Counted.call, Counted.call], one_at_a_time)


def without_turns() -> Counted:
    """The racy twin: the same rounds without their lock."""
    counted = Counted()
    without_lock(counted.rounds, "_changed")
    counted.rounds._changed.notify_all = lambda: None
    return counted


def test_work_without_turns_is_caught():
    refute(without_turns, [Counted.call, Counted.call], one_at_a_time)


ROOT = Path("/a")


def made() -> StoredCodeIndex:
    return StoredCodeIndex(Path("/nowhere"))


def test_callers_of_one_tree_share_its_keeper_in_every_order():
    prove(
        made,
        [lambda index: index._keeper(ROOT), lambda index: index._keeper(ROOT)],
        lambda arena: arena.returned[0] is arena.returned[1],
    )


def test_keepers_without_the_lock_are_caught():
    refute(
        lambda: without_lock(made(), "_lock"),
        [lambda index: index._keeper(ROOT), lambda index: index._keeper(ROOT)],
        lambda arena: arena.returned[0] is arena.returned[1],
    )


class Tree:
    """Stands for the keeper of a tree."""

    root = "/a"


THREAD, OTHER_THREAD = object(), object()


def working() -> StoredCodeIndex:
    """An index whose thread is about to ask for more work."""
    index = made()
    index._thread = THREAD
    return index


def nothing_is_forgotten(arena) -> bool:
    """A tree is being worked on, or a thread is there that will find it."""
    index = arena.subject
    taken = arena.returned[1] is not None
    started = arena.returned[0]
    waits = index._unfinished.get("/a") is not None
    if taken:
        return not waits and index._thread is THREAD and not started
    return waits and index._thread is OTHER_THREAD and started


def test_no_tree_is_forgotten_when_the_thread_ends_in_every_order():
    prove(
        working,
        [lambda index: index._enlist(Tree(), OTHER_THREAD), lambda index: index._next()],
        nothing_is_forgotten,
    )


def test_ending_without_the_lock_is_caught():
    refute(
        lambda: without_lock(working(), "_lock"),
        [lambda index: index._enlist(Tree(), OTHER_THREAD), lambda index: index._next()],
        nothing_is_forgotten,
    )


def test_closed_index_has_no_work_in_every_order():
    prove(
        made,
        [lambda index: index._enlist(Tree(), THREAD), lambda index: index.close(0.0)],
        lambda arena: arena.subject._unfinished.get("/a") is None,
        raises=True,
    )
