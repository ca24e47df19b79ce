"""A repository with a durable store, and the command line run in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cleveragents.cli.main import main
from cleveragents.infrastructure.store import Store

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


class Terminal:
    """Runs commands in the repository and opens its store as another process would."""

    def __init__(self, root: Path, capsys) -> None:
        self.path = root / ".cleveragents" / "state.db"
        self._capsys = capsys

    def run(self, *arguments: str) -> Answer:
        code = main(arguments)
        return Answer(code, *self._capsys.readouterr())

    def store(self) -> Store:
        return Store(self.path)


@pytest.fixture
def terminal(tmp_path, monkeypatch, capsys) -> Terminal:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "down")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Terminal(tmp_path, capsys)
