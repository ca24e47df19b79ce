from __future__ import annotations

from inbox import Inbox


def test_messages_wait_for_their_user():
    inbox = Inbox()
    inbox.deliver("ann", "one")
    inbox.deliver("ann", "two")
    assert inbox.count("ann") == 2
    assert inbox.read("ann") == ["one", "two"]
    assert inbox.read("bob") == []
