"""Functions of a module share a dict and a counter without a lock."""

from __future__ import annotations

_flags: dict[str, bool] = {}
_changes = 0


def enable(name: str) -> bool:
    """Switch a flag on; return whether it was off."""
    global _changes
    if _flags.get(name):
        return False
    _flags[name] = True
    _changes += 1
    return True


def disable(name: str) -> bool:
    global _changes
    if name not in _flags:
        return False
    del _flags[name]
    _changes += 1
    return True


def is_enabled(name: str) -> bool:
    return _flags.get(name, False)


def changes() -> int:
    return _changes
