"""One lock for the counts and the disabled set; every method takes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


class CircuitBreaker:
    """Disable a strategy after too many failures.

    Thread-safe: relies on the atomicity of dict and set operations.
    """

    def __init__(self, failure_threshold: int = 3) -> None:
        self.failure_threshold = failure_threshold
        self._failures: dict[str, int] = {}
        self._disabled: set[str] = set()
        self._lock = threading.Lock()

    def record_success(self, name: str) -> None:
        with self._lock:
            self._failures[name] = 0
            self._disabled.discard(name)

    def record_failure(self, name: str) -> None:
        with self._lock:
            self._failures[name] = self._failures.get(name, 0) + 1
            if self._failures[name] >= self.failure_threshold:
                self._disabled.add(name)

    def is_open(self, name: str) -> bool:
        with self._lock:
            return name in self._disabled

    def reset(self, name: str) -> None:
        with self._lock:
            self._failures.pop(name, None)
            self._disabled.discard(name)

    def reset_all(self) -> None:
        with self._lock:
            self._failures.clear()
            self._disabled.clear()


class ParallelStrategyExecutor:
    """Run context strategies side by side; one breaker is shared by all of them."""

    def __init__(self, max_workers: int = 4, breaker: CircuitBreaker | None = None) -> None:
        self.max_workers = max_workers
        self.breaker = breaker or CircuitBreaker()

    def execute(self, strategies: dict[str, Callable[[], str]]) -> dict[str, str]:
        with ThreadPoolExecutor(max_workers=self.max_workers) as pool:
            futures = {
                name: pool.submit(self._run, name, strategy)
                for name, strategy in strategies.items()
                if not self.breaker.is_open(name)
            }
        return {n: f.result() for n, f in futures.items() if f.result() is not None}

    def _run(self, name: str, strategy: Callable[[], str]) -> str | None:
        try:
            result = strategy()
        except Exception:
            self.breaker.record_failure(name)
            return None
        self.breaker.record_success(name)
        return result
