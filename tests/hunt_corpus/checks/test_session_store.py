from __future__ import annotations

from session_store import SessionStore


def test_login_and_logout():
    store = SessionStore()
    token = store.login("ann")
    assert store.login("ann") != token
    assert store.count("ann") == 2
    assert store.touch(token)
    assert store.logout_everywhere("ann") == 2
    assert not store.touch(token)
    assert store.count("ann") == 0
