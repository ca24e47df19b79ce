from __future__ import annotations

import cached_factory


def test_one_pool_for_a_size():
    assert cached_factory.get_pool(2) is cached_factory.get_pool(2)
    assert cached_factory.join("a", 9) == 1
    assert cached_factory.join("b", 9) == 2
    assert cached_factory.members(9) == ("a", "b")
