from __future__ import annotations

from sharded_counter import ShardedCounter


def test_shards_make_a_total():
    counter = ShardedCounter()
    counter.add("a")
    counter.add("bb", 2)
    assert counter.total() == 3
    assert counter.reset() == 3
    assert counter.total() == 0
