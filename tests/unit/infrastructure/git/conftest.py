"""A user's tree and our repository beside it, far from whoever runs the tests."""

from __future__ import annotations

import os

import pytest

from cleveragents.infrastructure.git.repository import GitRepository


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nobody's configuration: neither that of who runs the tests nor what git's hooks export."""
    for name in [one for one in os.environ if one.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return home


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    return root


@pytest.fixture
def repository(root):
    return GitRepository(root, root / ".cleveragents")
