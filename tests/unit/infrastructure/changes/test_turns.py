"""Turns: one after the other, and nobody waits for ever."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from cleveragents.infrastructure.changes.turns import Turns
from cleveragents.testing import Gate, run_together


class TwoSteps(Turns):
    """The racy twin: it looks whether a turn is free, and takes it in a second step."""

    @contextmanager
    def of(self, name):
        with self._changed:
            self._changed.wait_for(lambda: self._takers.get(name) is None, timeout=10)
        with self._changed:
            self._takers[name] = 1
        yield True
        with self._changed:
            self._takers.pop(name, None)
            self._changed.notify_all()


def most_at_once(turns, seed):
    """Return how many threads had one turn at the same time."""
    inside, most = [], []

    def work():
        with turns.of("p") as mine:
            assert mine
            inside.append(1)
            threading.Event().wait(0.001)
            most.append(len(inside))
            inside.pop()

    run_together([work] * 4, restless=(__name__, "cleveragents.infrastructure.changes"), seed=seed)
    return max(most)


def test_one_thread_at_a_time_has_the_turn_of_a_name():
    assert {most_at_once(Turns(), seed) for seed in range(2)} == {1}


def test_a_turn_that_is_taken_in_two_steps_is_caught():
    assert max(most_at_once(TwoSteps(), seed) for seed in range(2)) > 1


def test_other_names_do_not_wait():
    turns = Turns(wait_s_max=0)
    with turns.of("p") as one, turns.of("q") as other:
        assert (one, other) == (True, True)


def test_who_waited_too_long_goes_on_and_takes_nothing_away():
    turns, gate = Turns(wait_s_max=0.01), Gate()

    def hold():
        with turns.of("p"):
            gate.pass_through()

    holder = threading.Thread(target=hold)
    holder.start()
    gate.wait_for(1)
    for _ in range(2):
        with turns.of("p") as mine:
            assert not mine
    gate.open()
    holder.join()
    with turns.of("p") as mine:
        assert mine


def test_a_turn_ends_with_an_error_too():
    turns = Turns()
    with pytest.raises(KeyError), turns.of("p"):
        raise KeyError
    with turns.of("p") as mine:
        assert mine
