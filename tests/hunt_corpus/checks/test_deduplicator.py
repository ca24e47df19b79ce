from __future__ import annotations

from deduplicator import Deduplicator


def test_first_is_new():
    seen = Deduplicator()
    assert seen.is_new("a")
    assert not seen.is_new("a")
    assert "a" in seen
    seen.forget("a")
    assert seen.is_new("a")
