"""Copy on write: the tuple of subscribers is replaced under the lock, never changed."""

from __future__ import annotations

import threading
from collections.abc import Callable


class EventBus:
    """Publish events to subscribers; subscribers come and go from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, tuple[str, ...]] = {}
        self.delivered: dict[str, int] = {}

    def subscribe(self, topic: str, name: str) -> None:
        with self._lock:
            self._subscribers[topic] = (*self._subscribers.get(topic, ()), name)

    def unsubscribe(self, topic: str, name: str) -> bool:
        with self._lock:
            names = list(self._subscribers.get(topic, ()))
            if name not in names:
                return False
            names.remove(name)
            self._subscribers[topic] = tuple(names)
            return True

    def publish(self, topic: str) -> int:
        with self._lock:
            names = self._subscribers.get(topic, ())
            for name in names:
                self.delivered[name] = self.delivered.get(name, 0) + 1
        return len(names)

    def publish_to(self, topic: str, deliver: Callable[[str], None]) -> None:
        for name in self._subscribers.get(topic, ()):
            deliver(name)
