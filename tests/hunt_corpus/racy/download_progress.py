"""A dataclass that workers update field by field: chunks are lost, and done comes twice."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class DownloadProgress:
    total: int = 10
    received: int = 0
    chunks: list[int] = field(default_factory=list)
    finished: int = 0

    def add_chunk(self, size: int) -> float:
        self.chunks.append(size)
        self.received = sum(self.chunks)
        if self.received >= self.total:
            self.finished += 1
        return self.received / self.total

    @property
    def percent(self) -> float:
        return 100.0 * self.received / self.total

    def restart(self) -> None:
        self.received = 0
        self.chunks = []
