from __future__ import annotations

from id_generator import IdGenerator


def test_ids_count_up():
    ids = IdGenerator("x", 7)
    assert ids.next_id() == "x-0007"
    assert ids.next_id() == "x-0008"
