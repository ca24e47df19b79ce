from __future__ import annotations

from optimistic_counter import OptimisticCounter


def test_counter_adds():
    counter = OptimisticCounter(5)
    assert counter.add() == 6
    assert counter.add(4) == 10
    assert counter.get() == 10
