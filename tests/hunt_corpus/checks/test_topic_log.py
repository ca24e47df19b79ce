from __future__ import annotations

from topic_log import TopicLog


def test_every_message_once_per_group():
    log = TopicLog()
    assert log.publish("m2") == 2
    assert log.poll("g", 2) == ["m0", "m1"]
    assert log.poll("g", 2) == ["m2"]
    assert log.lag("g") == 0
    log.rewind("g")
    assert log.lag("g") == 3
