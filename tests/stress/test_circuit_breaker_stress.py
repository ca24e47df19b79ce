"""The breaker under real threads that switch as often as Python lets them."""

from __future__ import annotations

import pytest

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.testing import FrozenClock, run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

PAUSE_S = 30.0


def test_no_failure_of_20_threads_is_lost():
    breaker = CircuitBreaker(10**9)

    def fail():
        for index in range(2000):
            breaker.record_failure(f"strategy-{index % 4}")

    run_together([fail] * 20)
    assert breaker._failures == {f"strategy-{index}": 10_000 for index in range(4)}
    assert breaker._disabled == set()


def test_exactly_one_of_200_callers_becomes_the_probe_in_every_round():
    clock = FrozenClock()
    breaker = CircuitBreaker(1, pause_s=PAUSE_S, pause_s_max=PAUSE_S, clock=clock)
    breaker.record_failure("grep")
    for _ in range(5):
        clock.advance(PAUSE_S)
        permits = run_together([lambda: breaker.acquire("grep")] * 200)
        (probe,) = [permit for permit in permits if permit is not None]
        breaker.record_failure("grep", probe)
    assert breaker._failures == {"grep": 6}


def test_exactly_one_of_100_failures_at_once_trips_it():
    changes = []
    breaker = CircuitBreaker(50, on_change=changes.append)
    run_together([lambda: breaker.record_failure("grep")] * 100)
    assert breaker.is_open("grep")
    assert [(change.before, change.after) for change in changes] == [("closed", "open")]


def test_every_method_at_once_leaves_a_state_without_contradiction():
    """Afterwards the parts of the state still say the same, and the breaker still works."""
    clock = FrozenClock()
    breaker = CircuitBreaker(2, pause_s=PAUSE_S, clock=clock)
    names = ("grep", "glob", "tree")

    def work(seed):
        for step in range(1500):
            name = names[(seed + step) % 3]
            permit = breaker.acquire(name)
            report = (seed * 7 + step) % 5
            if permit is None:
                clock.advance(PAUSE_S / 10)
            elif report == 0:
                breaker.record_success(name, permit)
            elif report == 1:
                breaker.release(name, permit)
            else:
                breaker.record_failure(name, permit)
            if step % 500 == seed:
                breaker.reset_all()
            breaker.snapshot()

    run_together([lambda seed=seed: work(seed) for seed in range(12)])
    assert breaker._disabled == set(breaker._rounds)
    assert breaker._disabled <= set(breaker._failures)
    assert breaker._view[0] == set(breaker._failures)
    clock.advance(10_000.0)
    assert [breaker.call(name, str.upper, name) for name in names] == ["GREP", "GLOB", "TREE"]
    assert breaker.snapshot() == ()


def test_calls_through_a_healthy_breaker_all_pass_and_leave_nothing_behind():
    breaker = CircuitBreaker()

    def work():
        return sum(breaker.call("grep", int, "1") for _ in range(5000))

    assert run_together([work] * 16) == [5000] * 16
    assert breaker.snapshot() == ()
