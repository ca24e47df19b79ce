from __future__ import annotations

from lease_pool import LeasePool


def test_lease_comes_back():
    pool = LeasePool(("x",))
    with pool.lease() as first:
        assert first == "x"
        assert pool.free() == 0
        with pool.lease() as second:
            assert second is None
    assert pool.free() == 1
    assert pool.leases == 1
