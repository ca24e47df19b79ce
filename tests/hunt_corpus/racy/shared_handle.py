"""The last one closes the handle while another has just been counted in: a closed handle in use."""

from __future__ import annotations


class SharedHandle:
    """A resource that is open as long as somebody uses it."""

    def __init__(self) -> None:
        self._users = 0
        self._open = False
        self.opened = 0

    def acquire(self) -> int:
        if self._users == 0:
            self._open = True
            self.opened += 1
        self._users += 1
        return self._users

    def release(self) -> bool:
        """Return whether this was the last user."""
        if self._users == 0:
            raise ValueError("released more often than acquired")
        self._users -= 1
        if self._users == 0:
            self._open = False
            return True
        return False

    def is_open(self) -> bool:
        return self._open
