"""`setdefault` alone decides which report is the one; a report guards its own lines."""

from __future__ import annotations

import threading


class Report:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self._lock = threading.Lock()

    def add(self, line: str) -> int:
        with self._lock:
            self.lines.append(line)
            return len(self.lines)


class ReportBook:
    """Build a report on first demand and hand the same one to everybody."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}

    @property
    def built(self) -> int:
        return len(self._reports)

    def report(self, name: str) -> Report:
        found = self._reports.get(name)
        if found is None:
            found = self._reports.setdefault(name, Report(name))
        return found

    def write(self, name: str, line: str) -> int:
        return self.report(name).add(line)
