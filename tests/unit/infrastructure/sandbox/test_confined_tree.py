from __future__ import annotations

import os
import pickle
import socket
import stat
from pathlib import Path

import pytest

from cleveragents.domain.changeset import Content, FileMode
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.net_change import FileVersion
from cleveragents.infrastructure.sandbox import confined_tree, confined_walk
from cleveragents.infrastructure.sandbox.confined_tree import (
    ConfinedTree,
    Entry,
    EntryKind,
    is_temporary,
)


@pytest.fixture
def box(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


@pytest.fixture
def tree(box):
    with ConfinedTree(box) as tree:
        yield tree


def refused(code, call, *arguments):
    with pytest.raises(SandboxError) as caught:
        call(*arguments)
    assert caught.value.code == code
    assert pickle.loads(pickle.dumps(caught.value)).to_dict() == caught.value.to_dict()
    return caught.value


class TestRead:
    def test_a_file_is_read_from_any_folder(self, tree, box):
        (box / "a/b").mkdir(parents=True)
        (box / "a/b/c.bin").write_bytes(b"\0\xff")

        assert tree.read("a/b/c.bin") == b"\0\xff"

    def test_names_may_be_any_bytes(self, tree, box):
        name = os.fsdecode(b"n\xff me\n")
        tree.write(f"{name}/{name}", b"data")

        assert (box / name / name).read_bytes() == b"data"
        assert list(tree.walk()) == [f"{name}/{name}"]

    def test_a_missing_file_is_told(self, tree):
        assert "'gone.py'" in refused("CA5007", tree.read, "gone.py").message
        refused("CA5007", tree.read, "no/folder/gone.py")

    def test_a_folder_is_no_file(self, tree, box):
        (box / "folder").mkdir()

        error = refused("CA5007", tree.read, "folder")
        assert error.facts["kind"] == "folder"

    def test_a_file_is_no_folder(self, tree):
        tree.write("file", b"")

        refused("CA5007", tree.read, "file/inside")
        refused("CA5007", tree.list, "file")

    def test_more_than_allowed_is_not_read(self, tree):
        tree.write("five", b"12345")

        assert tree.read("five", size_bytes_max=5) == b"12345"
        with pytest.raises(SandboxError, match="more than 4 bytes"):
            tree.read("five", size_bytes_max=4)

    def test_a_file_that_grows_meanwhile_is_read_to_its_end_or_refused(self, tree, monkeypatch):
        class Small:
            st_mode, st_size = 0o100644, 2

        tree.write("five", b"12345")
        monkeypatch.setattr(confined_tree.os, "fstat", lambda _: Small)

        assert tree.read("five", size_bytes_max=5) == b"12345"
        with pytest.raises(SandboxError, match="more than 4 bytes"):
            tree.read("five", size_bytes_max=4)

    def test_what_cannot_be_opened_says_why(self, tree, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(13, "denied")

        tree.write("file", b"")
        monkeypatch.setattr(confined_tree.os, "open", denied)

        assert refused("CA5007", tree.read, "file").facts["reason"] == "Permission denied"

    def test_a_name_too_long_for_the_system_is_told(self, tree):
        refused("CA5007", tree.read, "n" * 300)
        refused("CA5007", tree.write, "n" * 300, b"")

    def test_a_link_that_replaces_the_file_at_the_last_moment_is_not_followed(
        self, tree, box, tmp_path, monkeypatch
    ):
        (tmp_path / "outside").write_bytes(b"secret")
        (box / "file").symlink_to(tmp_path / "outside")
        # As if it had been a plain file when it was looked at.
        monkeypatch.setattr(confined_walk, "link_target", lambda *_: None)

        refused("CA5001", tree.read, "file")


class TestLinksInside:
    def test_links_to_files_and_folders_are_followed(self, tree, box):
        tree.write("real/deep/file", b"data")
        (box / "to-file").symlink_to("real/deep/file")
        (box / "to-folder").symlink_to("real//./deep/")
        (box / "real/up").symlink_to("../real/deep")
        (box / "chain").symlink_to("to-folder")

        for path in ("to-file", "to-folder/file", "real/up/file", "chain/file"):
            assert tree.read(path) == b"data", path

    def test_going_up_returns_to_where_the_path_came_from(self, tree, box):
        tree.write("a/b/c/file", b"data")
        (box / "a/b/c/link").symlink_to("../../../a/b/../b/c/file")

        assert tree.read("a/b/c/link") == b"data"

    def test_a_link_to_a_folder_is_no_file(self, tree, box):
        (box / "sub").mkdir()
        (box / "sub/up").symlink_to("..")

        refused("CA5007", tree.read, "sub/up")
        refused("CA5007", tree.write, "sub/up", b"")
        assert [entry.name for entry in tree.list("sub/up")] == ["sub"]

    def test_forty_links_are_followed_and_no_more(self, tree, box):
        tree.write("file", b"data")
        for number in range(41):
            (box / f"l{number}").symlink_to(f"l{number - 1}" if number else "file")

        assert tree.read("l39") == b"data"
        assert "40 links" in refused("CA5001", tree.read, "l40").message

    def test_a_link_to_itself_ends(self, tree, box):
        (box / "self").symlink_to("self")

        refused("CA5001", tree.read, "self")
        refused("CA5001", tree.read, "self/inside")


class TestVersion:
    def test_content_and_mode_are_told(self, tree):
        tree.write("run", b"#!", FileMode.EXECUTABLE)

        assert tree.version("run") == FileVersion("run", Content(b"#!"), FileMode.EXECUTABLE)

    def test_a_link_is_told_as_itself_even_if_it_leads_out(self, tree, box):
        (box / "out").symlink_to("/etc/passwd")

        assert tree.version("out") == FileVersion("out", Content(b"/etc/passwd"), FileMode.SYMLINK)

    def test_what_is_not_there_has_no_version(self, tree):
        tree.write("file", b"")

        assert tree.version("gone") is None
        assert tree.version("gone/too") is None
        assert tree.version("file/inside") is None

    def test_a_folder_has_no_version_and_says_so(self, tree, box):
        (box / "folder").mkdir()

        refused("CA5007", tree.version, "folder")


class TestWrite:
    def test_folders_are_made(self, tree, box):
        tree.write("a/b/c", b"data")

        assert (box / "a/b/c").read_bytes() == b"data"

    def test_permissions_are_kept_unless_a_mode_is_given(self, tree, box):
        tree.write("file", b"1")
        (box / "file").chmod(0o640)
        tree.write("file", b"2")
        assert stat.S_IMODE((box / "file").stat().st_mode) == 0o640

        tree.write("file", b"3", FileMode.EXECUTABLE)
        assert stat.S_IMODE((box / "file").stat().st_mode) == 0o750

        tree.write("file", b"4", FileMode.REGULAR)
        assert stat.S_IMODE((box / "file").stat().st_mode) == 0o640

    def test_a_new_file_has_the_permissions_of_any_new_file(self, tree, box):
        tree.write("ours", b"")
        (box / "theirs").touch()

        assert (box / "ours").stat().st_mode == (box / "theirs").stat().st_mode

    def test_a_file_is_replaced_not_rewritten(self, tree, box):
        """A second name of the file, possibly outside, keeps what it has."""
        tree.write("file", b"old")
        (box / "second").hardlink_to(box / "file")
        tree.write("file", b"new")

        assert (box / "second").read_bytes() == b"old"

    def test_through_a_link_its_target_is_written(self, tree, box):
        tree.write("real", b"old")
        (box / "link").symlink_to("real")
        (box / "dangling").symlink_to("sub/new")
        (box / "sub").mkdir()
        tree.write("link", b"new")
        tree.write("dangling", b"made")

        assert (box / "link").is_symlink()
        assert (box / "real").read_bytes() == b"new"
        assert (box / "sub/new").read_bytes() == b"made"

    def test_a_failed_write_leaves_the_file_and_nothing_else(self, tree, box, monkeypatch):
        def full(*_, **__):
            raise OSError(28, "full")

        tree.write("file", b"old")
        monkeypatch.setattr(confined_tree.os, "rename", full)

        refused("CA5007", tree.write, "file", b"new")
        assert os.listdir(box) == ["file"]  # noqa: PTH208  # names, hidden ones too
        assert (box / "file").read_bytes() == b"old"

    def test_a_failure_before_the_file_is_there_is_told_plainly(self, tree, box):
        (box / "folder").mkdir()

        refused("CA5007", tree.write, "folder", b"")
        refused("CA5007", tree.link, "folder", "x")

    def test_a_folder_made_by_another_at_the_same_moment_is_used(self, tree, box, monkeypatch):
        make = os.mkdir

        def made_twice(name, **where):
            make(name, **where)
            make(name, **where)

        monkeypatch.setattr(confined_walk.os, "mkdir", made_twice)
        tree.write("a/file", b"data")

        assert (box / "a/file").read_bytes() == b"data"

    def test_a_link_is_not_made_by_its_mode(self, tree):
        with pytest.raises(RequestError, match="SYMLINK"):
            tree.write("file", b"", FileMode.SYMLINK)


class TestLink:
    def test_a_link_is_made_and_replaced(self, tree, box):
        tree.write("a/file", b"1")
        tree.link("a/b/link", "../file")
        assert tree.read("a/b/link") == b"1"

        tree.link("a/b/link", "../not/there/../yet")
        assert (box / "a/b/link").readlink() == Path("../not/there/../yet")


class TestRemove:
    def test_a_file_is_removed_and_a_link_without_its_target(self, tree):
        tree.write("file", b"")
        tree.link("link", "file")

        tree.remove("link")
        assert list(tree.walk()) == ["file"]
        tree.remove("file")
        assert list(tree.walk()) == []

    def test_what_is_missing_or_a_folder_is_refused(self, tree, box):
        (box / "folder").mkdir()

        refused("CA5007", tree.remove, "gone")
        refused("CA5007", tree.remove, "folder")


class TestRename:
    def test_a_file_moves_into_a_new_folder_and_replaces(self, tree):
        tree.write("old", b"1")
        tree.rename("old", "new/place")
        assert tree.read("new/place") == b"1"

        tree.write("other", b"2")
        tree.rename("other", "new/place")
        assert list(tree.walk()) == ["new/place"]
        assert tree.read("new/place") == b"2"

    def test_a_folder_moves_with_all_in_it(self, tree):
        tree.write("a/b/c", b"1")
        tree.rename("a", "z")

        assert list(tree.walk()) == ["z/b/c"]

    def test_nothing_moves_onto_a_folder_or_from_nowhere(self, tree, box):
        tree.write("file", b"1")
        (box / "folder").mkdir()

        refused("CA5007", tree.rename, "file", "folder")
        refused("CA5007", tree.rename, "gone", "made/new")
        assert not (box / "made").exists()


class TestSetMode:
    def test_whoever_may_read_may_then_execute(self, tree, box):
        tree.write("file", b"")
        (box / "file").chmod(0o640)
        tree.make_executable("file")
        assert stat.S_IMODE((box / "file").stat().st_mode) == 0o750

        tree.set_mode("file", FileMode.REGULAR)
        assert stat.S_IMODE((box / "file").stat().st_mode) == 0o640

    def test_another_name_of_the_file_keeps_its_mode(self, tree, box, tmp_path):
        tree.write("file", b"data")
        (box / "file").chmod(0o600)
        (tmp_path / "outside").hardlink_to(box / "file")
        tree.make_executable("file")

        assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o600
        assert tree.version("file") == FileVersion("file", Content(b"data"), FileMode.EXECUTABLE)

    def test_only_files_have_modes(self, tree, box):
        (box / "folder").mkdir()

        refused("CA5007", tree.make_executable, "folder")
        with pytest.raises(RequestError):
            tree.set_mode("folder", FileMode.SYMLINK)


class TestListAndWalk:
    @pytest.fixture
    def filled(self, tree, box):
        for path in ("b", "a/z", "a/b/c", ".git/config", "a/.git", ".cleveragents-x"):
            tree_path = box / path
            tree_path.parent.mkdir(parents=True, exist_ok=True)
            tree_path.touch()
        (box / "link").symlink_to("a")
        (box / "out").symlink_to("/")
        (box / f".cleveragents-{'0' * 16}.tmp").touch()
        os.mkfifo(box / "pipe")
        return tree

    def test_names_come_sorted_with_kinds(self, filled):
        assert filled.list() == (
            Entry(".cleveragents-x", EntryKind.FILE),
            Entry("a", EntryKind.FOLDER),
            Entry("b", EntryKind.FILE),
            Entry("link", EntryKind.LINK),
            Entry("out", EntryKind.LINK),
            Entry("pipe", EntryKind.OTHER),
        )
        assert [entry.name for entry in filled.list("link")] == ["b", "z"]

    def test_walk_yields_files_and_links_without_git(self, filled):
        assert list(filled.walk()) == [".cleveragents-x", "a/b/c", "a/z", "b", "link", "out"]

    def test_what_vanishes_or_becomes_a_link_while_walking_is_left_out(self, tree, box):
        for path in ("a/file", "b/file", "c/file"):
            tree.write(path, b"")
        walk = tree.walk()
        assert next(walk) == "a/file"
        (box / "b/file").unlink()
        (box / "b").rmdir()
        (box / "b").symlink_to("c")
        (box / "c").rename(box / "d")

        assert list(walk) == []

    def test_a_folder_that_cannot_be_read_is_told_not_skipped(self, tree, box, monkeypatch):
        def denied(*_):
            raise PermissionError(13, "denied")

        (box / "a").mkdir()
        monkeypatch.setattr(confined_tree.os, "scandir", denied)

        refused("CA5007", list, tree.walk())

    def test_an_unfinished_write_is_known_by_its_name(self):
        assert is_temporary(f".cleveragents-{'a1' * 8}.tmp")
        assert not is_temporary(".cleveragents-a1.tmp")


class TestSpecialFiles:
    @pytest.fixture(params=["pipe", "socket"])
    def special(self, request, box, monkeypatch):
        if request.param == "pipe":
            os.mkfifo(box / "special")
            yield "special"
            return
        monkeypatch.chdir(box)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("special")
            yield "special"

    def test_every_verb_refuses_them_without_waiting(self, tree, box, special):
        tree.write("file", b"")
        before = (box / special).lstat()

        refused("CA5007", tree.read, special)
        refused("CA5007", tree.version, special)
        refused("CA5007", tree.write, special, b"")
        refused("CA5007", tree.remove, special)
        refused("CA5007", tree.rename, special, "moved")
        refused("CA5007", tree.rename, "file", special)
        refused("CA5007", tree.link, special, "file")
        refused("CA5007", tree.make_executable, special)
        assert (box / special).lstat() == before


class TestClose:
    def test_a_closed_tree_refuses(self, box):
        tree = ConfinedTree(box)
        tree.close()
        tree.close()

        refused("CA5004", tree.read, "file")

    def test_a_missing_folder_cannot_be_opened(self, tmp_path):
        refused("CA5007", ConfinedTree, tmp_path / "gone")

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors by /proc")
    def test_no_descriptor_is_left_behind(self, box):
        def use(tree):
            for number in range(20):
                tree.write(f"a/b/{number}", b"data")
                tree.link("a/link", f"b/{number}")
                tree.read("a/link")
                tree.version("a/b/0")
                list(tree.walk())
                for path in ("gone", "../out", "a", "a/link/inside"):
                    with pytest.raises(SandboxError):
                        tree.read(path)
            next(tree.walk())

        before = os.listdir("/proc/self/fd")  # noqa: PTH208  # names alone
        with ConfinedTree(box) as tree:
            use(tree)
        assert os.listdir("/proc/self/fd") == before  # noqa: PTH208  # names alone
