from __future__ import annotations

from thermostat import Thermostat


def test_target_moves_and_comes_back():
    thermostat = Thermostat(20.0)
    assert thermostat.raise_by(2.0) == 22.0
    thermostat.target = 22.0
    assert thermostat.changes == 1
    assert thermostat.undo() == 20.0
    assert thermostat.undo() == 22.0
