from __future__ import annotations

from ring_buffer import RingBuffer


def test_old_items_fall_out():
    ring = RingBuffer(2)
    assert ring.latest() is None
    ring.push(1)
    assert ring.items() == [1]
    ring.push(2)
    ring.push(3)
    assert ring.items() == [2, 3]
    assert ring.latest() == 3
