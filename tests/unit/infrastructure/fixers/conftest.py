"""A repository under construction: its configuration, and programs that are installed for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cleveragents.infrastructure.fixers import found_check, found_fixers


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root / "tree"
        self.path = str(root / "bin")
        self.root.mkdir()

    def write(self, name: str, content: str | dict = "") -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_text(text, encoding="utf-8")

    def install(self, *names: str, folder: str | None = None) -> None:
        """Put programs on the `PATH`, or into a folder of the tree."""
        place = Path(self.path) if folder is None else self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            (place / name).write_text("#!/bin/sh\n", encoding="utf-8")
            (place / name).chmod(0o755)

    @property
    def fixers(self):
        return found_fixers(self.root, self.path)

    @property
    def names(self) -> list[str]:
        return [fixer.name for fixer in self.fixers]

    @property
    def check(self):
        return found_check(self.root, self.path)


@pytest.fixture
def repository(tmp_path) -> Repository:
    return Repository(tmp_path)
