"""Two toggles that meet both turn it on."""

from __future__ import annotations


class Switch:
    def __init__(self, on: bool = False) -> None:
        self._on = on
        self.history: list[bool] = []

    def toggle(self) -> bool:
        self._on = not self._on
        self.history.append(self._on)
        return self._on

    def turn_on(self) -> bool:
        """Return whether this call turned it on."""
        if self._on:
            return False
        self._on = True
        self.history.append(True)
        return True

    @property
    def on(self) -> bool:
        return self._on
