from __future__ import annotations

from singleton import Metrics


def test_there_is_one_instance():
    Metrics.reset()
    assert Metrics.get_instance() is Metrics.get_instance()
    Metrics.record("a", 1)
    assert Metrics.read("a") == 1
    Metrics.reset()
    assert Metrics.read("a") is None
