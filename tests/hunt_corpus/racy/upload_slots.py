"""One slot, two threads that see it free: both upload."""

from __future__ import annotations


class UploadSlots:
    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._used: list[str] = []

    def try_take(self, name: str) -> bool:
        if len(self._used) < self.slots:
            self._used.append(name)
            return True
        return False

    def give_back(self, name: str) -> None:
        if name in self._used:
            self._used.remove(name)

    def used(self) -> tuple[str, ...]:
        return tuple(self._used)
