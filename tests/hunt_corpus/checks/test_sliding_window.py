from __future__ import annotations

from sliding_window import SlidingWindowLimiter


def test_limit_holds_within_the_window():
    limiter = SlidingWindowLimiter(limit=2)
    assert [limiter.allow() for _ in range(3)] == [True, True, False]
    assert limiter.remaining() == 0
    limiter.reset()
    assert limiter.remaining() == 2
