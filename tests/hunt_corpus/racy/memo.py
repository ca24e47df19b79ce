"""Two threads miss at once: the value is computed twice and callers hold different objects."""

from __future__ import annotations


class Report:
    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []


class ReportBook:
    """Build a report on first demand and hand the same one to everybody."""

    def __init__(self) -> None:
        self._reports: dict[str, Report] = {}
        self.built = 0

    def report(self, name: str) -> Report:
        found = self._reports.get(name)
        if found is None:
            self.built += 1
            found = Report(name)
            self._reports[name] = found
        return found

    def write(self, name: str, line: str) -> int:
        report = self.report(name)
        report.lines.append(line)
        return len(report.lines)
