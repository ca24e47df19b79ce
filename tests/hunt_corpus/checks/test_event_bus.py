from __future__ import annotations

from event_bus import EventBus


def test_events_reach_who_subscribed():
    bus = EventBus()
    bus.subscribe("t", "a")
    bus.subscribe("t", "b")
    assert bus.publish("t") == 2
    assert bus.unsubscribe("t", "a")
    assert not bus.unsubscribe("t", "a")
    seen = []
    bus.publish_to("t", seen.append)
    assert seen == ["b"]
    assert bus.delivered == {"a": 1, "b": 1}
