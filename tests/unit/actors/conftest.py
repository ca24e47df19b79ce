from __future__ import annotations

import pytest

from unit.actors.attemptkit import World, planted


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """One tree for all tests of a module: each works in a sandbox, and none merges."""
    with planted(tmp_path_factory.mktemp("actors") / "tree") as workspace:
        yield workspace


@pytest.fixture
def world(workspace):
    return World(workspace)
