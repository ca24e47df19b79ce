"""A lock of the module beside the state of the module."""

from __future__ import annotations

import threading

_flags: dict[str, bool] = {}
_changes = 0
_lock = threading.Lock()


def enable(name: str) -> bool:
    """Switch a flag on; return whether it was off."""
    global _changes
    with _lock:
        if _flags.get(name):
            return False
        _flags[name] = True
        _changes += 1
        return True


def disable(name: str) -> bool:
    global _changes
    with _lock:
        if name not in _flags:
            return False
        del _flags[name]
        _changes += 1
        return True


def is_enabled(name: str) -> bool:
    with _lock:
        return _flags.get(name, False)


def changes() -> int:
    with _lock:
        return _changes
