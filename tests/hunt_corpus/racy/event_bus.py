"""`publish` walks over the list that `unsubscribe` shrinks: a subscriber is skipped."""

from __future__ import annotations

from collections.abc import Callable


class EventBus:
    """Publish events to subscribers; subscribers come and go from any thread."""

    def __init__(self) -> None:
        self._subscribers: dict[str, list[str]] = {}
        self.delivered: dict[str, int] = {}

    def subscribe(self, topic: str, name: str) -> None:
        if topic not in self._subscribers:
            self._subscribers[topic] = []
        self._subscribers[topic].append(name)

    def unsubscribe(self, topic: str, name: str) -> bool:
        names = self._subscribers.get(topic, [])
        if name in names:
            names.remove(name)
            return True
        return False

    def publish(self, topic: str) -> int:
        sent = 0
        for name in self._subscribers.get(topic, []):
            self.delivered[name] = self.delivered.get(name, 0) + 1
            sent += 1
        return sent

    def publish_to(self, topic: str, deliver: Callable[[str], None]) -> None:
        for name in self._subscribers.get(topic, []):
            deliver(name)
