from __future__ import annotations

import pytest
from round_robin import NoServers, RoundRobin


def test_turns_go_round():
    balancer = RoundRobin(["a", "b"])
    assert [balancer.pick() for _ in range(3)] == ["a", "b", "a"]
    balancer.add("a")
    assert balancer.remove("a")
    assert balancer.pick() == "b"
    balancer.remove("b")
    with pytest.raises(NoServers):
        balancer.pick()
