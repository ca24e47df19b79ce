"""What was written into an overlay, also where an attempt closed the door behind it."""

from __future__ import annotations

import os

import pytest

from cleveragents.infrastructure.sandbox.upper import closed_folders, touched_paths


@pytest.fixture
def upper(tmp_path):
    for path in ("open/f", "shut/deep/f"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o200, 0o400, 0o500])
def test_every_folder_is_opened_for_its_owner_and_for_nobody_else(upper, mode):
    for name in ("shut/deep", "shut", ""):
        (upper / name).chmod(mode)
    assert closed_folders(upper, upper) == ()
    found = {name: (upper / name).stat().st_mode & 0o777 for name in ("", "shut", "shut/deep")}
    assert set(found.values()) == {0o700}


def test_a_folder_that_is_open_keeps_its_rights(upper):
    (upper / "open").chmod(0o750)
    closed_folders(upper, upper)
    assert (upper / "open").stat().st_mode & 0o777 == 0o750


def test_rights_are_changed_where_the_files_are_shown(upper, tmp_path_factory):
    shown = tmp_path_factory.mktemp("shown")
    for name in ("open", "shut/deep"):
        (shown / name).mkdir(parents=True)
    (shown / "shut").chmod(0o500)
    (upper / "shut").chmod(0o500)
    closed_folders(upper, shown)
    modes = [(place / "shut").stat().st_mode & 0o777 for place in (shown, upper)]
    assert modes == [0o700, 0o500]


def test_a_failure_that_may_pass_is_not_taken_for_a_closed_folder(upper, monkeypatch):
    def scandir(_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "scandir", scandir)
    for look in (lambda: closed_folders(upper, upper), lambda: touched_paths(upper, ())):
        with pytest.raises(OSError, match="Too many"):
            look()


def test_folders_that_stay_closed_are_told_and_the_others_are_looked_at(upper, monkeypatch):
    def scandir(folder):
        if str(folder).rstrip("/").endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return look(folder)

    look = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    assert closed_folders(upper, upper) == ("shut",)
    assert touched_paths(upper, ()) == ("open/f",)
