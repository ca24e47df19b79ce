from __future__ import annotations

from running_stats import RunningStats


def test_mean_of_what_was_added():
    stats = RunningStats()
    assert stats.mean() is None
    stats.add(2)
    stats.add(4)
    assert stats.mean() == 3
    other = RunningStats()
    other.merge(stats)
    assert (other.count, other.total) == (2, 6)
    other.clear()
    assert other.mean() is None
