"""Each method of the breaker is atomic: no order of two threads shows anything in between.

What methods do at the same moment, returned values and the whole state included, must be
what they do one after the other, in some order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import pytest

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from proofs import racekit
from proofs.racekit import prove, refute, without_lock

NAME = "grep"
PAUSE_S, LEASE_S = 30.0, 60.0


@dataclass
class Subject:
    breaker: Any
    #: Admitted while the name was closed.
    early: int
    #: Admitted as the probe.
    probe: int = -1


def clean(kind=CircuitBreaker):
    breaker = kind(2, pause_s=PAUSE_S, probe_lease_s=LEASE_S, clock=lambda: 0.0)
    return Subject(breaker, breaker.acquire(NAME))


def one_short(kind=CircuitBreaker):
    subject = clean(kind)
    subject.breaker.record_failure(NAME)
    return subject


def lapsed(kind=CircuitBreaker):
    """Its pause is over: the next caller is the probe."""
    subject = one_short(kind)
    subject.breaker.record_failure(NAME)
    subject.breaker._clock = lambda: PAUSE_S
    return subject


def hung(kind=CircuitBreaker):
    """Its probe's lease is over: here every method that can change something does."""
    subject = lapsed(kind)
    subject.probe = subject.breaker.acquire(NAME)
    subject.breaker._clock = lambda: PAUSE_S + LEASE_S
    return subject


def acquire(s):
    return s.breaker.acquire(NAME)


def failure(s):
    return s.breaker.record_failure(NAME)


def success(s):
    return s.breaker.record_success(NAME)


def early_success(s):
    return s.breaker.record_success(NAME, s.early)


def probe_success(s):
    return s.breaker.record_success(NAME, s.probe)


def probe_failure(s):
    return s.breaker.record_failure(NAME, s.probe)


def release(s):
    return s.breaker.release(NAME, s.probe)


def retry_after_s(s):
    return s.breaker.retry_after_s(NAME)  # `is_open` is this above 0


def snapshot(s):
    return s.breaker.snapshot()


def reset(s):
    return s.breaker.reset(NAME)


def reset_all(s):
    return s.breaker.reset_all()


WRITES = (acquire, probe_success, probe_failure, release, reset, reset_all)
#: Where it starts, what one thread does, and what the other does in a row.
MEETINGS = [
    *((hung, *pair) for pair in combinations_with_replacement(WRITES, 2)),
    *((hung, write, snapshot, retry_after_s) for write in WRITES),
    # without permits, and past the lock: a clean name is admitted by one read of `_view`
    *((clean, failure, other) for other in (acquire, success, reset, reset_all)),
    *((clean, acquire, other) for other in (reset, reset_all)),
    *((one_short, success, other) for other in (acquire, failure, success)),
]


def outcome(subject, first, second):
    """Return all there is to see: what the methods returned, and the whole state."""
    b = subject.breaker
    state = b._failures, b._disabled, b._rounds, b._since, b._floor, b._view
    return first, tuple(second), *map(repr, state)


def one_after_the_other(setup, first, second):
    """Yield what they do when the first thread's method comes before, between, or after."""
    for place in range(len(second) + 1):
        subject = setup()
        before = [method(subject) for method in second[:place]]
        returned = first(subject)
        after = [method(subject) for method in second[place:]]
        yield outcome(subject, returned, before + after)


@pytest.mark.parametrize(
    "meeting", MEETINGS, ids=lambda meeting: "-".join(step.__name__ for step in meeting)
)
def test_methods_at_the_same_moment_do_what_they_do_one_after_the_other(meeting, monkeypatch):
    """Every meeting is searched exhaustively; chance, which is slow, gets fewer tries at each."""
    monkeypatch.setattr(racekit, "ATTEMPTS_PER_SEED", 20)
    setup, first, *second = meeting
    allowed = list(one_after_the_other(setup, first, second))
    prove(
        setup,
        [first, lambda s: [method(s) for method in second]],
        lambda arena: outcome(arena.subject, arena.returned[0], arena.returned[1]) in allowed,
    )


def no_failure_is_lost(arena):
    return arena.subject.breaker._failures == {NAME: 2}


def it_tripped(arena):
    return arena.subject.breaker._disabled == {NAME}


def one_became_the_probe(arena):
    return sorted(permit is None for permit in arena.returned.values()) == [False, True]


def the_trip_is_kept(arena):
    """Either the late success came first and cleared the count, or the trip stands."""
    state = arena.subject.breaker
    return (state._failures, state._disabled) in (({NAME: 1}, set()), ({NAME: 2}, {NAME}))


RACES = {
    "lost count": (clean, [failure, failure], no_failure_is_lost),
    "must trip": (clean, [failure, failure], it_tripped),
    "one probe": (lapsed, [acquire, acquire], one_became_the_probe),
    "open kept": (one_short, [failure, early_success], the_trip_is_kept),
}


@pytest.mark.parametrize("race", RACES)
def test_the_races_that_other_breakers_lose_cannot_happen(race):
    prove(*RACES[race])


@pytest.mark.parametrize("race", RACES)
def test_the_same_races_are_found_when_the_lock_is_missing(race):
    setup, workers, holds = RACES[race]

    def planted():
        subject = setup()
        without_lock(subject.breaker, "_lock")
        return subject

    refute(planted, workers, holds)


class AsksBeforeItLocks(CircuitBreaker):
    """A planted bug where the search is half blind: `in` on a set, outside the lock."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._probing = set()

    def acquire(self, name):
        if name in self._probing:
            return None
        with self._lock:
            self._probing.add(name)
        return 1


def test_two_probes_are_found_when_the_question_is_outside_the_lock():
    def planted():
        return Subject(AsksBeforeItLocks(), early=1)

    refute(planted, [acquire, acquire], one_became_the_probe)
