"""A planted tree with its store: made once, and copied for each test."""

from __future__ import annotations

import shutil

import pytest

from sandboxkit import World, plant


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    root = tmp_path_factory.mktemp("planted") / "tree"
    root.mkdir()
    plant(root)
    World.open(root).store.close()
    return root


@pytest.fixture
def world(planted, tmp_path):
    root = tmp_path / "tree"
    shutil.copytree(planted, root, symlinks=True)
    world = World.open(root)
    yield world
    world.store.close()
