from __future__ import annotations

from compute_cache import ComputeCache


def test_computed_once():
    cache = ComputeCache()
    assert cache.get_or_compute("a", lambda: 1) == 1
    assert cache.get_or_compute("a", lambda: 2) == 1
    assert cache.computed == 1
    assert cache.invalidate("a")
    assert not cache.invalidate("a")
