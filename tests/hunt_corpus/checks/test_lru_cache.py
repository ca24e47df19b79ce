from __future__ import annotations

from lru_cache import LRUCache


def test_least_recently_used_goes_first():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.get("b") is None
    assert (cache.hits, cache.misses, len(cache)) == (1, 1, 2)
