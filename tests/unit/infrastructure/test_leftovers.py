"""What killed processes left behind goes; what may still be in use stays."""

from __future__ import annotations

import os

import pytest

from cleveragents.infrastructure import leftovers

NOW = 1_000_000.0
OURS = ["commit-x", "git-x", "git/index-x", "git/merge-x", "tmp/cleveragents-home-x"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    return tmp_path


def leave(home, name, age_s):
    (home / name / "deep").mkdir(parents=True)
    os.utime(home / name, (NOW - age_s,) * 2)
    return home / name


@pytest.mark.parametrize("name", OURS)
def test_leftovers_go_after_a_day(home, name):
    left = leave(home, name, leftovers.AGE_S_MIN + 1)
    leftovers.sweep(home, NOW)
    assert not left.exists()


@pytest.mark.parametrize("name", OURS)
def test_what_is_young_may_be_in_use(home, name):
    left = leave(home, name, leftovers.AGE_S_MIN - 1)
    leftovers.sweep(home, NOW)
    assert left.exists()


@pytest.mark.parametrize("name", ["git", "commit", "git/objects", "tmp/index-x", "tmp/other"])
def test_nothing_else_is_touched(home, name):
    left = leave(home, name, 2 * leftovers.AGE_S_MIN)
    leftovers.sweep(home, NOW)
    assert left.exists()


def test_what_another_user_left_is_theirs(home, monkeypatch):
    left = leave(home, OURS[-1], 2 * leftovers.AGE_S_MIN)
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    leftovers.sweep(home, NOW)
    assert left.exists()


def test_a_link_is_not_followed(home):
    target = leave(home, "target", 0)
    (home / "commit-x").symlink_to(target)
    os.utime(home / "commit-x", (0, 0), follow_symlinks=False)
    leftovers.sweep(home, NOW)
    assert (target / "deep").exists()


def test_folders_that_are_not_there_are_no_hindrance(tmp_path):
    leftovers.sweep(tmp_path / "gone", NOW)
