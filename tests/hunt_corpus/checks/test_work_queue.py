from __future__ import annotations

from work_queue import WorkQueue


def test_first_in_first_out():
    queue = WorkQueue()
    assert queue.take() is None
    queue.put("a")
    queue.put("b")
    assert queue.pending() == 2
    assert queue.take() == "a"
    assert queue.take() == "b"
