"""Getter and setter share a reentrant lock with the methods that use them."""

from __future__ import annotations

import threading


class Thermostat:
    def __init__(self, target: float = 20.0) -> None:
        self._target = target
        self._previous = target
        self.changes = 0
        self._lock = threading.RLock()

    @property
    def target(self) -> float:
        with self._lock:
            return self._target

    @target.setter
    def target(self, value: float) -> None:
        with self._lock:
            if value == self._target:
                return
            self._previous = self._target
            self._target = value
            self.changes += 1

    def undo(self) -> float:
        with self._lock:
            self._target, self._previous = self._previous, self._target
            return self._target

    def raise_by(self, degrees: float) -> float:
        with self._lock:
            self.target = self.target + degrees
            return self._target
