from __future__ import annotations

from priority_queue import PriorityQueue


def test_priority_then_arrival():
    queue = PriorityQueue()
    assert queue.pop() is None
    queue.push("low")
    queue.push("high", 5)
    queue.push("low too")
    assert queue.peek() == "high"
    assert [queue.pop() for _ in range(3)] == ["high", "low", "low too"]
