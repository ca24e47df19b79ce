"""Overlays on real mounts, their keeper, and what an overlay tells of what was written."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox import overlay, overlay_keeper
from cleveragents.infrastructure.sandbox.overlay import OverlayKeeper
from cleveragents.testing import run_together
from sandboxkit import World, expected, file, plant, seen


@pytest.fixture
def manager(world):
    with world.manager() as manager:
        if (why := manager.available()["overlay"]) is not None:
            pytest.skip(f"overlays are not available: {why}")
        yield manager


def keeper_of(sandbox) -> int:
    return int(sandbox.ground.enter[-2])


# -- what was touched ----------------------------------------------------------------------


def test_touched_names_every_file_that_may_differ(manager):
    sandbox = manager.create("p", "n", 1)
    path = sandbox.path
    assert sandbox.touched() == ()
    (path / "plain.txt").write_text("changed")
    (path / "run.sh").chmod(0o644)
    (path / "caf\udce9").unlink()
    (path / "dir" / "new").write_text("new")
    (path / "hollow" / "another").mkdir()
    (path / "out").unlink()
    assert sandbox.touched() == ("caf\udce9", "dir/new", "out", "plain.txt", "run.sh")


@pytest.mark.parametrize(
    ("edit", "touched"),
    [
        (lambda top: shutil.rmtree(top / "dir"), ("dir", "dir/deep/file", "dir/other")),
        (
            lambda top: (shutil.rmtree(top / "dir"), (top / "dir").mkdir()),
            ("dir/deep/file", "dir/other"),
        ),
        (
            lambda top: (shutil.rmtree(top / "dir"), (top / "dir").write_text("file")),
            ("dir", "dir/deep/file", "dir/other"),
        ),
        (
            lambda top: ((top / "binary").unlink(), (top / "binary").mkdir()),
            ("binary",),
        ),
        (
            lambda top: shutil.move(top / "dir", top / "moved"),
            ("dir", "dir/deep/file", "dir/other", "moved/deep/file", "moved/other"),
        ),
        (
            lambda top: ((top / "folder-link").unlink(), (top / "folder-link").mkdir()),
            ("folder-link",),
        ),
        (lambda top: os.link(top / "binary", top / "hard"), ("binary", "hard")),
    ],
    ids=["deleted", "made-anew", "now-a-file", "now-a-folder", "moved", "link-to-folder", "linked"],
)
def test_folders_are_touched_with_all_that_is_in_them(manager, edit, touched):
    sandbox = manager.create("p", "n", 1)
    edit(sandbox.path)
    assert sandbox.touched() == touched


def test_touched_sees_through_the_layer_of_the_plan(world, manager):
    world.move_head({"dir/added": file("by the plan"), "plain.txt": None})
    sandbox = manager.create("p", "n", 1)
    shutil.rmtree(sandbox.path / "dir")
    assert sandbox.touched() == ("dir", "dir/added", "dir/deep/file", "dir/other")


def test_folder_is_renamed_by_copying_alone(manager):
    """A redirect would hide in an attribute what the upper folder must tell."""
    sandbox = manager.create("p", "n", 1)
    with pytest.raises(OSError, match="cross-device") as caught:
        (sandbox.path / "dir").rename(sandbox.path / "moved")
    assert caught.value.errno == errno.EXDEV


# -- places --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a:b", "a,b=c", "sp ace", "quo'te\"", "caf\udce9", "new\nline", "back\\slash"]
)
def test_tree_may_lie_in_any_folder(tmp_path, name):
    root = tmp_path / name
    root.mkdir()
    plant(root)
    world = World.open(root)
    with world.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
        assert seen(manager.create("p", "n", 1).path) == expected(root)
    world.store.close()


def test_tree_may_lie_deep(tmp_path):
    """Absolute paths of three folders would exceed the page that options of a mount must fit."""
    root = tmp_path.joinpath(*["x" * 200] * 9)
    root.mkdir(parents=True)
    plant(root)
    world = World.open(root, store=tmp_path / "state.db")
    world.move_head({"plain.txt": file("moved")})
    with world.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
        sandbox = manager.create("p", "n", 1)
        assert (sandbox.path / "plain.txt").read_text() == "moved"
    world.store.close()


def test_state_folder_may_be_reached_by_a_link(tmp_path, world):
    """An absolute link on the way would lead out of the keeper's namespace again."""
    link = tmp_path / "link"
    link.symlink_to(world.root)
    other = World.open(link)
    with other.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
        assert seen(manager.create("p", "n", 1).path) == expected(world.root)
    other.store.close()


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_confined_command_works_inside(world, manager):
    sandbox = manager.create("p", "n", 1)
    place = sandbox.place
    confined = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    over = ["--bind", place.path, world.root, "--chdir", world.root]
    script = "printf inside > plain.txt && ! touch ../outside 2>/dev/null && test ! -e ignored.txt"
    subprocess.run([*place.enter, *confined, *over, "sh", "-c", script], check=True)
    assert (sandbox.path / "plain.txt").read_text() == "inside"
    assert (world.root / "plain.txt").read_text() == "one\ntwo\n"
    assert sandbox.touched() == ("plain.txt",)


# -- the keeper ----------------------------------------------------------------------------


def test_killed_keeper_is_replaced_and_nothing_written_is_lost(world, manager):
    old = manager.create("p", "a", 1)
    (old.path / "plain.txt").write_text("kept")
    os.kill(keeper_of(old), signal.SIGKILL)
    new = manager.create("p", "b", 1)
    assert keeper_of(new) != keeper_of(old)
    assert seen(new.path) == expected(world.root)
    for verb in (old.check, old.touched):
        with pytest.raises(SandboxError, match="cannot be reached") as caught:
            verb()
        assert caught.value.code == "CA5004"
        assert f"open({old.id!r})" in caught.value.hint
    again = manager.open(old.id)
    assert (again.path / "plain.txt").read_text() == "kept"
    assert again.touched() == ("plain.txt",)
    manager.release(old.id, discard=True)
    new.check()


def test_mount_point_without_its_mount_is_not_taken_for_the_files(manager):
    sandbox = manager.create("p", "n", 1)
    manager._kinds["overlay"]._keeper.ask(
        "unmount", str(sandbox.ground.inner.relative_to(manager._layers.home))
    )
    assert sandbox.path.is_dir()
    with pytest.raises(SandboxError, match="cannot be reached"):
        sandbox.check()


def test_keeper_ends_with_its_manager(world):
    with world.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
        keeper = keeper_of(manager.create("p", "n", 1))
    with pytest.raises(ProcessLookupError):
        os.kill(keeper, 0)
    manager._kinds["overlay"].close()
    with pytest.raises(OSError, match="closed"):
        manager._kinds["overlay"]._keeper.ask("unmount", "nothing")


def test_closed_manager_says_so(world):
    with world.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
    with pytest.raises(SandboxError) as caught:
        manager.create("p", "n", 1)
    assert caught.value.code == "CA5004"


def playing(tmp_path, monkeypatch, program):
    """Let a script of our own play the keeper."""
    script = tmp_path / "keeper.py"
    script.write_text(program)
    monkeypatch.setattr(overlay_keeper, "__file__", str(script))
    return OverlayKeeper(tmp_path)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('\"forbidden\"')", "forbidden"),
        ("", "gave no answer"),
        ("import sys; print('null', flush=True); sys.stdin.readline()", "gave no answer"),
    ],
    ids=["refuses", "dies-at-once", "dies-at-each-request"],
)
def test_keeper_that_does_not_work_is_told_of(tmp_path, monkeypatch, program, said):
    keeper = playing(tmp_path, monkeypatch, program)
    with pytest.raises(OSError, match=said):
        keeper.ask("unmount", "x")
    keeper.close()
    keeper.close()


def test_error_of_a_request_is_raised(tmp_path, monkeypatch):
    program = "import sys; print('null', flush=True); sys.stdin.readline(); print('\"no room\"')"
    keeper = playing(tmp_path, monkeypatch, program)
    with pytest.raises(OSError, match="no room"):
        keeper.ask("mount", "x")
    keeper.close()


def test_keeper_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(overlay, "PATIENCE_S", 0.05)
    keeper = playing(tmp_path, monkeypatch, "import sys; sys.stdin.read()")
    with pytest.raises(OSError, match="gave no answer"):
        keeper.ask("unmount", "x")
    keeper.close()


def test_keeper_that_ended_before_it_was_asked_is_replaced(tmp_path, monkeypatch):
    program = """
import os, sys
print('null', flush=True)
if os.path.exists('second'):
    for _ in sys.stdin: print('null', flush=True)
open('second', 'w').close()
for _ in sys.stdin:
    print('null', flush=True)
    sys.stdin.close(); os.close(0); os._exit(0)
"""
    keeper = playing(tmp_path, monkeypatch, program)
    first = keeper.ask("unmount", "x")
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert keeper.ask("unmount", "x") != first
    keeper.close()


def test_overlays_need_a_way_in_for_commands(world, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with world.manager() as manager:
        assert "nsenter" in manager.available()["overlay"]


def test_overlay_that_forgets_deletions_is_not_used(world, monkeypatch):
    with world.manager() as manager:
        if manager.available()["overlay"] is not None:
            pytest.skip("overlays are not available")
    monkeypatch.setattr(overlay, "touched_paths", lambda *_: ())
    with world.manager() as manager:
        assert manager.available()["overlay"] == "deleted files leave no trace"


def test_refused_mount_is_told_of_with_the_way_out(world, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    with world.manager() as manager:
        assert "nonexistent" in manager.available()["overlay"]
        kind = manager._kinds["overlay"]
        folder = manager._folder / "x" / "y"
        with pytest.raises(SandboxError, match="could not be mounted") as caught:
            kind.make(folder, world.tree_of("p"))
        assert caught.value.code == "CA5002"


def test_hundred_sandboxes_at_once(manager):
    sandboxes = run_together([lambda: manager.create("p", "n", 1)] * 100)
    assert len({one.path for one in sandboxes}) == 100
    for index, one in enumerate(sandboxes):
        (one.path / "plain.txt").write_text(str(index))
    assert [one.touched() for one in sandboxes] == [("plain.txt",)] * 100


# -- the program of the keeper, without its namespace --------------------------------------


class FakeSystem:
    """The C library: each call answers with the next error, or with success."""

    def __init__(self, *errors):
        self.calls = []
        self._errors = list(errors)

    def _answer(self, *call):
        self.calls.append(call)
        code = self._errors.pop(0) if self._errors else 0
        ctypes.set_errno(code)
        return -1 if code else 0

    def unshare(self, flags):
        return self._answer("unshare", flags)

    def mount(self, *arguments):
        return self._answer("mount", *arguments)

    def umount2(self, *arguments):
        return self._answer("umount2", *arguments)


def served(system, *requests):
    answers = io.StringIO()
    overlay_keeper.serve(system, [json.dumps(one) for one in requests], answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_keeper_keeps_user_and_group(tmp_path):
    system = FakeSystem()
    overlay_keeper.enter(system, str(tmp_path))
    user, group = os.geteuid(), os.getegid()
    assert (tmp_path / "uid_map").read_text() == f"{user} {user} 1"
    assert (tmp_path / "gid_map").read_text() == f"{group} {group} 1"
    assert (tmp_path / "setgroups").read_text() == "deny"
    assert [call[0] for call in system.calls] == ["unshare", "mount"]


def test_keeper_mounts_without_waiting_for_the_disk_where_the_kernel_can():
    old, new = FakeSystem(errno.EINVAL), FakeSystem()
    request = ["mount", ["a", "b"], "u", "w", "t"]
    assert served(old, request) == served(new, request) == [None]
    assert [b"volatile" in call[-1] for call in new.calls] == [True]
    assert [b"volatile" in call[-1] for call in old.calls] == [True, False]
    assert b"lowerdir=a:b,upperdir=u,workdir=w," in old.calls[1][-1]


def test_keeper_leaves_what_is_mounted():
    system = FakeSystem()
    assert served(system, ["mount", ["a"], "u", "w", "/"]) == [None]
    assert system.calls == []


def test_keeper_answers_with_the_error_and_goes_on():
    system = FakeSystem(errno.EPERM, errno.EBUSY, errno.EINVAL)
    answers = served(
        system,
        ["mount", ["a"], "u", "w", "t"],
        ["unmount", "t"],
        ["unmount", "t"],
        ["unmount", "t"],
    )
    assert ["permitted" in answers[0], "busy" in answers[1]] == [True, True]
    assert answers[2:] == [None, None]


def test_keeper_says_whether_it_could_enter(monkeypatch):
    answers = io.StringIO()
    overlay_keeper.main(FakeSystem(errno.EPERM), ['["unmount", "t"]'], answers)
    monkeypatch.setattr(overlay_keeper, "enter", lambda _: None)
    overlay_keeper.main(FakeSystem(), ['["unmount", "t"]'], answers)
    refusal, *rest = answers.getvalue().splitlines()
    assert "permitted" in refusal
    assert rest == ["null", "null"]
