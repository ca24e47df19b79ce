"""Built when the module is imported and never changed afterwards; the count is guarded."""

from __future__ import annotations

import threading
from types import MappingProxyType

_WORDS = MappingProxyType({"one": 1, "two": 2})
_lookups = 0
_lookups_lock = threading.Lock()


def get_table():
    return _WORDS


def lookup(word):
    global _lookups
    with _lookups_lock:
        _lookups = _lookups + 1
    return _WORDS.get(word)


def lookups():
    with _lookups_lock:
        return _lookups
