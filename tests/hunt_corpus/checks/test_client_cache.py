from __future__ import annotations

import client_cache


def test_one_client_for_a_name():
    one = client_cache.get_client("x")
    assert client_cache.get_client("x") is one
    assert client_cache.send("x", "hello") == 1
    assert client_cache.close("x")
    assert not client_cache.close("x")
