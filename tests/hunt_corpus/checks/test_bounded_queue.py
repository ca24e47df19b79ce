from __future__ import annotations

import pytest
from bounded_queue import BoundedQueue, QueueFull


def test_queue_is_bounded():
    queue = BoundedQueue(1)
    assert queue.get() is None
    queue.put("a")
    assert queue.full()
    with pytest.raises(QueueFull):
        queue.put("b")
    assert queue.get() == "a"
