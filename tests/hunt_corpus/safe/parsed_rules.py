"""Parsed twice at worst, each time to an equal immutable value: nobody can tell."""

from __future__ import annotations


class Rules:
    def __init__(self, text: str = "a=1;b=2") -> None:
        self.text = text
        self._pairs: tuple[tuple[str, str], ...] | None = None

    def _parse(self) -> tuple[tuple[str, str], ...]:
        pairs = self._pairs
        if pairs is None:
            found = []
            for rule in self.text.split(";"):
                name, _, value = rule.partition("=")
                found.append((name, value))
            pairs = tuple(found)
            self._pairs = pairs
        return pairs

    def pairs(self) -> tuple[tuple[str, str], ...]:
        return self._parse()

    def get(self, name: str = "b") -> str | None:
        return dict(self._parse()).get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, _ in self._parse()))
