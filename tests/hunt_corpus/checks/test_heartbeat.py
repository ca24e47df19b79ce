from __future__ import annotations

from heartbeat import HeartbeatMonitor


def test_first_beat_is_a_start():
    monitor = HeartbeatMonitor()
    assert monitor.beat("w") == 1
    assert monitor.beat("w") == 1
    assert monitor.check() == []
    assert monitor.forget("w")
    assert monitor.beat("w") == 2
