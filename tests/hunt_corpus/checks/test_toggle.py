from __future__ import annotations

from toggle import Switch


def test_switch_goes_back_and_forth():
    switch = Switch()
    assert switch.toggle()
    assert not switch.turn_on()
    assert not switch.toggle()
    assert switch.turn_on()
    assert switch.on
    assert switch.history == [True, False, True]
