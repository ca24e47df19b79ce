"""The look, the making and the noting are one step; the lock is reentrant for nested factories."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class ComputeCache:
    """Values made on demand by whoever asks first."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.computed = 0
        self._lock = threading.RLock()

    def get_or_compute(self, key: str, factory: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._values:
                self._values[key] = factory()
                self.computed += 1
            return self._values[key]

    def invalidate(self, key: str) -> bool:
        with self._lock:
            return self._values.pop(key, None) is not None
