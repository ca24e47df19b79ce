"""Decided under the lock; logging, with its own locks, comes after it is released."""

from __future__ import annotations

import logging
import threading

log = logging.getLogger(__name__)


class LoggedQuota:
    def __init__(self, limit: int = 1) -> None:
        self.limit = limit
        self.used = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            taken = self.used < self.limit
            if taken:
                self.used += 1
        if taken:
            log.warning("took one of %s", self.limit)
        else:
            log.warning("quota of %s is used up", self.limit)
        return taken

    def give(self) -> None:
        with self._lock:
            if self.used > 0:
                self.used -= 1
        log.warning("gave one of %s", self.limit)
