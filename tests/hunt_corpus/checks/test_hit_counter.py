from __future__ import annotations

from hit_counter import HitCounter, counter, track


def test_hits_add_up():
    hits = HitCounter()
    hits.hit("/a")
    hits.hit("/a", 2)
    hits.hit("/b")
    assert hits.hits("/a") == 3
    assert hits.top() == "/a"
    assert HitCounter().top() is None


def test_module_counter():
    before = counter.hits("/x")
    track("/x")
    assert counter.hits("/x") == before + 1
