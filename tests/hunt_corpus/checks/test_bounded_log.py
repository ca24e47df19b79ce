from __future__ import annotations

from bounded_log import BoundedLog


def test_only_the_last_lines_stay():
    log = BoundedLog(2)
    for line in "abc":
        log.write(line)
    assert log.tail() == ["c"]
    assert log.dropped == 1
    assert log.drain() == ["b", "c"]
    assert len(log) == 0
