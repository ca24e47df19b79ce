from __future__ import annotations

from generator_ids import Numbering


def test_numbers_go_up():
    numbering = Numbering(3, 2)
    assert numbering.next() == 3
    assert numbering.next() == 5
    numbering.restart()
    assert numbering.next() == 3
