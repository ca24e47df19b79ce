from __future__ import annotations

from batcher import Batcher


def test_batches_are_full():
    batcher = Batcher(2)
    assert not batcher.add("a")
    assert batcher.add("b")
    batcher.add("c")
    assert batcher.flush() == 1
    assert batcher.flush() == 0
    assert batcher.batches == [("a", "b"), ("c",)]
