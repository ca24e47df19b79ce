from __future__ import annotations

from moving_average import MovingAverage


def test_average_of_the_window():
    average = MovingAverage(2)
    assert average.average() == 0.0
    average.add(1.0)
    assert average.add(3.0) == 2.0
    assert average.add(5.0) == 4.0
    assert average.average() == 4.0
