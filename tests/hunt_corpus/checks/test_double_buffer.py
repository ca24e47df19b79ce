from __future__ import annotations

from double_buffer import DoubleBuffer


def test_swap_gives_what_was_written():
    buffer = DoubleBuffer()
    assert buffer.write(1) == 1
    assert buffer.write(2) == 2
    assert buffer.swap() == (1, 2)
    assert buffer.swap() == ()
    assert buffer.swaps == 2
