from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from cleveragents.testing import FrozenClock, Gate, run_together


def test_frozen_clock_moves_only_when_told():
    clock = FrozenClock()
    start = clock()
    assert clock() == start
    clock.advance(2.5)
    assert clock() == start + 2.5
    clock.set(datetime(2027, 1, 1, tzinfo=UTC))
    assert clock() == datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def test_gate_holds_everybody_until_it_opens():
    gate = Gate()
    passed = []

    def walk() -> None:
        gate.pass_through()
        passed.append(True)

    threads = [threading.Thread(target=walk) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.wait_for(3)
    assert passed == []
    gate.open()
    for thread in threads:
        thread.join(5)
    assert passed == [True] * 3


def test_gate_that_nobody_opens_ends_the_wait():
    with pytest.raises(TimeoutError, match="for the gate to open"):
        Gate(timeout_s=0.01).pass_through()
    with pytest.raises(TimeoutError, match="for 1 arrivals"):
        Gate(timeout_s=0.01).wait_for(1)


def test_results_come_in_the_order_of_the_jobs():
    assert run_together([lambda n=n: n * n for n in range(5)]) == [0, 1, 4, 9, 16]


def test_fault_of_a_job_is_raised_to_the_caller():
    with pytest.raises(ZeroDivisionError):
        run_together([lambda: 1 // 0, lambda: 1])


def test_job_that_hangs_ends_the_wait():
    gate = Gate(timeout_s=5)
    try:
        with pytest.raises(TimeoutError, match="still runs"):
            run_together([gate.pass_through], timeout_s=0.02)
    finally:
        gate.open()
