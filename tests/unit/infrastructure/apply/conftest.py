"""A planted tree for each test, and disks that do not keep tests waiting."""

from __future__ import annotations

import os

import pytest

from cleveragents.infrastructure.apply import files, native
from unit.infrastructure.apply import forest


@pytest.fixture
def tree(tmp_path):
    forest.plant(tmp_path / "tree")
    return tmp_path / "tree"


@pytest.fixture
def quick(monkeypatch):
    """Nothing waits for the disk: who is killed here loses no power."""
    monkeypatch.setattr(native, "sync_file_system", lambda _: native.function("syncfs") is not None)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def refuse_links(*_):
    raise PermissionError(1, "no links here")


@pytest.fixture(params=["exchange", "links", "moves"])
def road(request, monkeypatch):
    """What the file system can do: swap two files, link one twice, or only rename."""
    if request.param != "exchange":
        monkeypatch.setattr(native, "function", lambda _: None)
    if request.param == "moves":
        monkeypatch.setattr(files, "_link", refuse_links)
    return request.param
