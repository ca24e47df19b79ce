from __future__ import annotations

from histogram import Histogram


def test_observations_fall_into_buckets():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.5, 9.0):
        histogram.observe(value)
    assert histogram.snapshot() == (3, 11.0, (1, 1, 1))
    assert round(histogram.mean(), 2) == 3.67
    assert Histogram().mean() == 0.0
