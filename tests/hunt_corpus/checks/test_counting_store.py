from __future__ import annotations

from counting_store import CountingStore


def test_increment_counts_writes():
    store = CountingStore()
    store.put("a", 5)
    assert store.increment("a") == 6
    assert store.increment("b", 2) == 2
    assert store.get("a") == 6
    assert store.writes == 2
