from __future__ import annotations

from upload_slots import UploadSlots


def test_slots_are_limited():
    slots = UploadSlots(1)
    assert slots.try_take("a")
    assert not slots.try_take("b")
    slots.give_back("a")
    assert slots.try_take("b")
    assert slots.used() == ("b",)
