"""The log line between the look and the write gives the other thread all the time it needs."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


class LoggedQuota:
    def __init__(self, limit: int = 1) -> None:
        self.limit = limit
        self.used = 0

    def take(self) -> bool:
        if self.used >= self.limit:
            log.warning("quota of %s is used up", self.limit)
            return False
        log.info("taking %s of %s", self.used + 1, self.limit)
        self.used += 1
        return True

    def give(self) -> None:
        if self.used > 0:
            self.used -= 1
