"""A plan in a tree, and attempts at it as their actors would make them."""

from __future__ import annotations

import os

import pytest

from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock
from unit.infrastructure.changes.plans import Plan


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nobody's configuration."""
    for name in [one for one in os.environ if one.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    return root


@pytest.fixture
def repository(root):
    return GitRepository(root, root / ".cleveragents")


@pytest.fixture
def store(root):
    with Store(root / ".cleveragents" / "state.db") as store:
        yield store


@pytest.fixture
def changesets(store):
    return SqliteChangesetStore(store)


@pytest.fixture
def trees(store, repository):
    return PlanTrees(store, repository, clock=FrozenClock())


@pytest.fixture
def plan(trees, changesets, repository):
    return Plan(trees, changesets, repository)


@pytest.fixture
def harvest(repository, changesets, trees):
    return Harvest(repository, changesets, trees)
