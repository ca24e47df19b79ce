"""The file system calls behave alike, whichever of them a machine has."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from cleveragents.infrastructure.apply import files as module
from cleveragents.infrastructure.apply import native
from cleveragents.infrastructure.apply.files import Files, Rights


@pytest.fixture
def folder(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


@pytest.mark.usefixtures("road")
def test_move_new_never_replaces(folder, tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    with pytest.raises(FileExistsError):
        Files().move_new((folder, "a"), (folder, "b"))
    assert (tmp_path / "b").read_text() == "b"
    Files().move_new((folder, "a"), (folder, "c"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b", "c"]


def test_move_new_goes_on_where_a_crash_left_both_names(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "function", lambda _: None)
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    Files().move_new((folder, "a"), (folder, "b"))
    assert [one.name for one in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("call", ["move_new", "hold"])
def test_link_that_fails_for_another_reason_is_raised(folder, monkeypatch, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(native, "function", lambda _: None)
    monkeypatch.setattr(module, "_link", full)
    with pytest.raises(OSError, match="full"):
        getattr(Files(), call)((folder, "a"), (folder, "b"))


def test_flag_that_a_file_system_does_not_know_is_answered_by_false(folder, monkeypatch):
    def answers(number):
        def call(*_):
            import ctypes

            ctypes.set_errno(number)
            return -1

        return call

    monkeypatch.setattr(native, "function", lambda _: answers(errno.EINVAL))
    assert not Files().exchange((folder, "a"), (folder, "b"))
    monkeypatch.setattr(native, "function", lambda _: answers(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Files().exchange((folder, "a"), (folder, "b"))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Files().flush_whole([folder])


def test_flush_reaches_the_disk(folder, tmp_path):
    assert Files().flush_whole([folder])
    Files().flush(folder)
    Files().write((folder, "a"), b"x" * 10, Rights(0o600), durable=True)
    assert (tmp_path / "a").read_bytes() == b"x" * 10


def test_flush_of_all_is_answered_by_false_where_no_call_does_that(folder, monkeypatch):
    monkeypatch.setattr(native, "function", lambda _: None)
    assert not Files().flush_whole([folder])


def test_flush_empties_the_memory_of_a_drive_where_fsync_does_not(folder, monkeypatch):
    monkeypatch.setattr(module, "_FULL_FSYNC", fcntl.F_GETFD)
    asked = []
    monkeypatch.setattr(fcntl, "fcntl", lambda *words: asked.append(words))
    Files().flush(folder)
    assert asked == [(folder, fcntl.F_GETFD)]


def test_short_writes_are_continued(folder, tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    Files().write((folder, "a"), b"0123456789", Rights(0o600))
    assert (tmp_path / "a").read_bytes() == b"0123456789"
