"""The factory runs for both callers, and each keeps another value than the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class ComputeCache:
    """Values made on demand by whoever asks first."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self.computed = 0

    def get_or_compute(self, key: str, factory: Callable[[], Any]) -> Any:
        if key not in self._values:
            self._values[key] = factory()
            self.computed += 1
        return self._values[key]

    def invalidate(self, key: str) -> bool:
        if key in self._values:
            del self._values[key]
            return True
        return False
