"""The setter writes two fields; whoever reads or writes between them gets a pair that never was."""

from __future__ import annotations


class Thermostat:
    def __init__(self, target: float = 20.0) -> None:
        self._target = target
        self._previous = target
        self.changes = 0

    @property
    def target(self) -> float:
        return self._target

    @target.setter
    def target(self, value: float) -> None:
        if value == self._target:
            return
        self._previous = self._target
        self._target = value
        self.changes += 1

    def undo(self) -> float:
        self._target, self._previous = self._previous, self._target
        return self._target

    def raise_by(self, degrees: float) -> float:
        self.target = self.target + degrees
        return self._target
