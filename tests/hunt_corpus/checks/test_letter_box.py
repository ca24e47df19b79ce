from __future__ import annotations

from letter_box import Mailbox


def test_box_holds_one_message():
    box = Mailbox()
    assert box.offer("a")
    assert not box.offer("b")
    assert box.exchange("c") == "a"
    assert box.take() == "c"
    assert box.take() is None
