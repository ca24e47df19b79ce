"""Held from the look at the state to the note in the history."""

from __future__ import annotations

from threading import Lock


class Switch:
    def __init__(self, on: bool = False) -> None:
        self._on = on
        self.history: list[bool] = []
        self._lock = Lock()

    def toggle(self) -> bool:
        with self._lock:
            self._on = not self._on
            self.history.append(self._on)
            return self._on

    def turn_on(self) -> bool:
        """Return whether this call turned it on."""
        with self._lock:
            if self._on:
                return False
            self._on = True
            self.history.append(True)
            return True

    @property
    def on(self) -> bool:
        return self._on
