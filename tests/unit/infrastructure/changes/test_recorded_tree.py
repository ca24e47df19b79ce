from __future__ import annotations

import threading

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import CleverAgentsError, PlanError
from cleveragents.domain.net_change import net_changes
from cleveragents.infrastructure.changes.recorded_tree import RecordedTree
from cleveragents.infrastructure.sandbox.confined_tree import ConfinedTree
from cleveragents.testing import run_together


@pytest.fixture
def files(tmp_path):
    (tmp_path / "old.txt").write_text("old\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/inner.txt").write_text("inner\n")
    (tmp_path / "link").symlink_to("dir")
    (tmp_path / "file-link").symlink_to("old.txt")
    changesets = InMemoryChangesetStore()
    with ConfinedTree(tmp_path) as tree:
        yield RecordedTree(tree, changesets, changesets.start("p"))


def told(files: RecordedTree) -> list[tuple[str, str]]:
    entries = files.changesets.get(files.changeset_id).entries
    return [(str(entry.kind), entry.path) for entry in entries]


def test_what_is_written_is_recorded_with_what_was_there(files, tmp_path):
    files.write("new/deep.txt", b"new\n", tool_call="t-1")
    files.write("old.txt", b"newer\n")
    files.write("run", b"#!\n", FileMode.EXECUTABLE)
    assert told(files) == [("create", "new/deep.txt"), ("modify", "old.txt"), ("create", "run")]
    first, second, third = files.changesets.get(files.changeset_id).entries
    assert (first.after.data, first.tool_call, first.mode_after) == (
        b"new\n",
        "t-1",
        FileMode.REGULAR,
    )
    assert (second.before.data, second.after.data) == (b"old\n", b"newer\n")
    assert third.mode_after == FileMode.EXECUTABLE
    assert (tmp_path / "run").stat().st_mode & 0o100
    assert files.read("old.txt") == b"newer\n"


def test_mode_is_recorded_as_a_change_of_its_own(files):
    files.write("old.txt", b"old\n", FileMode.EXECUTABLE)
    assert told(files) == [("mode", "old.txt")]
    files.write("old.txt", b"both\n", FileMode.REGULAR)
    assert told(files)[1:] == [("modify", "old.txt"), ("mode", "old.txt")]


def test_what_is_written_as_it_was_is_no_change(files):
    files.write("old.txt", b"old\n")
    assert told(files) == []


def test_removal_and_move_are_recorded(files, tmp_path):
    files.rename("old.txt", "moved.txt", tool_call="t-2")
    files.remove("moved.txt")
    files.remove("file-link")
    assert told(files) == [
        ("rename", "moved.txt"),
        ("delete", "moved.txt"),
        ("delete", "file-link"),
    ]
    assert not (tmp_path / "old.txt").exists()


def test_move_that_replaces_a_file_is_left_to_the_sealing(files, tmp_path):
    files.rename("old.txt", "dir/inner.txt")
    assert told(files) == []
    assert (tmp_path / "dir/inner.txt").read_text() == "old\n"


def test_move_of_a_folder_is_left_to_the_sealing(files, tmp_path):
    files.rename("dir", "folder")
    assert told(files) == []
    assert (tmp_path / "folder/inner.txt").exists()


@pytest.mark.parametrize("path", ["link/inner.txt", "link/new.txt", "file-link"])
def test_write_through_a_link_is_not_recorded_under_a_name_that_no_file_has(files, path):
    files.write(path, b"through\n")
    assert files.read(path) == b"through\n"
    assert told(files) == []


def test_removal_and_move_behind_a_link_are_left_to_the_sealing(files, tmp_path):
    files.rename("link/inner.txt", "link/other.txt")
    files.remove("link/other.txt")
    assert told(files) == []
    assert list((tmp_path / "dir").iterdir()) == []


def test_names_and_paths_are_listed(files):
    assert files.names() == ("dir/", "file-link", "link", "old.txt")
    assert files.names("dir") == ("inner.txt",)
    assert list(files.walk()) == ["dir/inner.txt", "file-link", "link", "old.txt"]


@pytest.mark.parametrize("path", ["../out", "/abs", ".git/config", "dir"])
def test_what_the_disk_refuses_is_not_recorded(files, path):
    with pytest.raises(CleverAgentsError):
        files.write(path, b"x")
    assert told(files) == []


def test_changeset_that_takes_no_more_says_so(files):
    files.changesets.finish(files.changeset_id)
    with pytest.raises(PlanError) as caught:
        files.write("old.txt", b"late\n")
    assert caught.value.code == "CA4002"


def test_failure_of_the_disk_is_not_taken_for_a_folder(files, monkeypatch):
    from cleveragents.domain.errors import SandboxError

    def broken(*_):
        raise SandboxError("no", code="CA5001")

    monkeypatch.setattr(ConfinedTree, "version", broken)
    with pytest.raises(SandboxError, match="no"):
        files.rename("old.txt", "new.txt")
    assert told(files) == []


def test_record_that_was_crossed_by_another_write_is_left_to_the_sealing(files):
    """Two tools make one file at once: the second record cannot follow the first."""
    both = threading.Barrier(2, timeout=10)
    real = ConfinedTree.version

    class Slow(ConfinedTree):
        def version(self, path, **options):
            found = real(self, path, **options)
            both.wait()
            return found

    files.tree.__class__ = Slow
    run_together([lambda n=n: files.write("both.txt", b"%d\n" % n) for n in (1, 2)])
    files.tree.__class__ = ConfinedTree
    assert told(files) == [("create", "both.txt")]
    assert len(net_changes(files.changesets.get(files.changeset_id).entries)) == 1
