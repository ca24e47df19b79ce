"""Proofs: no call is lost by the journal in memory, and none is seen half-kept.

The class without its lock is no twin here: one `append` is one step to frontrun, so nothing is
caught. The twins do in two steps what it does in one. The service starts threads of its own, which
frontrun does not see: tests/stress has it.
"""

from __future__ import annotations

from cleveragents.actors.tool_journal import MemoryToolJournal
from proofs.racekit import prove, refute


class Copying(MemoryToolJournal):
    """A racy twin: it copies and replaces, without the lock."""

    def record(self, call, /):
        calls = list(self._calls)
        calls.append(call)
        self._calls = calls


class Growing(MemoryToolJournal):
    """A racy twin in a blind spot of dpor: it asks `if not calls`, then makes them anew."""

    def record(self, call, /):
        calls = self._calls
        if not calls:
            self._calls = [call]
        else:
            calls.append(call)


class _Call:
    plan_id = "p"

    def __init__(self, call_id):
        self.call_id = call_id


def record(call_id):
    return lambda journal: journal.record(_Call(call_id))


def both_kept(arena):
    return {call.call_id for call in arena.subject.calls()} == {"a", "b"}


def test_two_calls_at_the_same_moment_are_both_kept():
    prove(MemoryToolJournal, [record("a"), record("b")], both_kept)


def test_reader_sees_whole_prefixes_while_a_call_is_kept():
    def holds(arena):
        seen = [call.call_id for call in arena.returned[1]]
        return seen in ([], ["a"]) and len(arena.subject.calls()) == 1

    prove(MemoryToolJournal, [record("a"), lambda journal: journal.calls()], holds)


def test_three_calls_at_the_same_moment_are_all_kept():
    workers = [record("a"), record("b"), record("c")]
    prove(MemoryToolJournal, workers, lambda arena: len(arena.subject.calls()) == 3)


def test_journal_that_copies_without_a_lock_is_caught():
    refute(Copying, [record("a"), record("b")], both_kept)


def test_journal_that_asks_before_it_makes_is_caught():
    refute(Growing, [record("a"), record("b")], both_kept)
