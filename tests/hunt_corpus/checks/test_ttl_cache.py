from __future__ import annotations

from ttl_cache import TTLCache


def test_entries_expire():
    now = [0.0]
    cache = TTLCache(ttl=10, clock=lambda: now[0])
    cache.set("a", 1)
    assert cache.get("a") == 1
    now[0] = 11
    assert cache.get("a") is None


def test_delete_tells_whether_there_was_something():
    cache = TTLCache()
    cache.set("a", 1)
    assert cache.delete("a")
    assert not cache.delete("a")
