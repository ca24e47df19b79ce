from __future__ import annotations

import pytest
from connection_pool import ConnectionPool, PoolExhausted


def test_connections_come_back():
    pool = ConnectionPool(1)
    one = pool.acquire()
    with pytest.raises(PoolExhausted):
        pool.acquire()
    pool.release(one)
    assert pool.acquire() is one


def test_warm_up_opens_no_more_than_the_size():
    assert ConnectionPool(2).warm_up(5) == 2
