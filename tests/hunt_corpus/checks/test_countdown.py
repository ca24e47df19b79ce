from __future__ import annotations

from countdown import Countdown


def test_last_arrival_opens():
    countdown = Countdown(2)
    assert not countdown.arrive()
    assert countdown.arrive()
    assert countdown.opened == 1
    countdown.extend(2)
    assert countdown.left() == 2
