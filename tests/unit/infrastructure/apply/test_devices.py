"""A tree may lie on several devices; nothing can be renamed from one to the other."""

from __future__ import annotations

import errno
import os

import pytest

from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.apply import native
from cleveragents.infrastructure.apply.folders import Folders
from unit.infrastructure.apply.forest import (
    HOME,
    check_clean,
    check_new,
    engine,
    look,
    old_or_new,
    target,
    targets,
)

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def mounted(tree, monkeypatch):
    """Let `src` and `half` look like mount points, and refuse what they would refuse."""
    real = Folders.device

    def device(self, above=0):
        names = self._names[: len(self._names) - above]
        return {"src": -1, "half": -2}.get(names[0] if names else "", real(self, above))

    def side(handle):
        inside = os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), tree)  # noqa: PTH115  # a link to anything
        return inside.split("/")[0] if inside.startswith(("src", "half")) else "."

    rename = native.rename

    def renamed(source, to, flag):
        if side(source[0]) != side(to[0]):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(source, to, flag)

    monkeypatch.setattr(Folders, "device", device)
    monkeypatch.setattr(native, "rename", renamed)
    return tree


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux where a handle leads")  # noqa: PTH110  # asked before any test
class TestDevices:
    def test_each_device_stages_its_own_files(self, mounted):
        before, seen = look(mounted), []

        def fault(point):
            if point == "after-stage":
                seen.extend(p.name for f in ("src", "half") for p in (mounted / f).glob(".clever*"))

        engine(mounted, fault=fault).apply("p1", targets(mounted))
        assert seen == [".cleveragents-p1", ".cleveragents-p1"]
        check_new(mounted, before)
        check_clean(mounted)

    @pytest.mark.parametrize("point", ["after-stage", "after-journal", "after-flip", "after-done"])
    def test_death_leaves_nothing_on_any_device(self, mounted, point):
        class Death(BaseException):
            pass

        dead, before = [], look(mounted)

        def fault(reached):
            if reached == point:
                dead.append(1)
            if dead:
                raise Death

        wishes = [target(mounted, "src/app.py", b"new"), target(mounted, "keep.txt", b"newer")]
        with pytest.raises(Death):
            engine(mounted, fault=fault).apply("p1", wishes)
        engine(mounted).recover()
        now = look(mounted)
        contents = now["src/app.py"].content, now["keep.txt"].content
        assert contents == (
            (b"new", b"newer") if point != "after-stage" else (b"old", b"untouched")
        )
        assert set(now) == set(before)
        check_clean(mounted)

    def test_deep_folders_stage_at_their_mount_point(self, mounted):
        (mounted / "src/deep/er").mkdir(parents=True)
        wishes = [target(mounted, "src/deep/er/x", b"1"), target(mounted, "src/y", b"2")]
        engine(mounted).apply("p1", wishes)
        assert (mounted / "src/deep/er/x").read_bytes() == b"1"
        check_clean(mounted)

    def test_home_may_be_a_device_of_its_own(self, tree, monkeypatch):
        before, real = look(tree), Folders.device
        monkeypatch.setattr(Folders, "device", lambda self, above=0: real(self, above) + 1)
        engine(tree).apply("p1", targets(tree))
        check_new(tree, before)
        check_clean(tree)

    def test_hidden_folder_of_somebody_else_is_left_alone(self, mounted):
        (mounted / "src/.cleveragents-p1").mkdir()
        (mounted / "src/.cleveragents-p1/theirs").write_text("theirs")
        with pytest.raises(PlanError) as caught:
            engine(mounted).apply("p1", [target(mounted, "src/app.py", b"new")])
        assert caught.value.code == "CA4105"
        assert (mounted / "src/.cleveragents-p1/theirs").read_text() == "theirs"

    @pytest.mark.parametrize("mount", [b"..", b"/etc", b"src/../.."])
    def test_list_that_leads_out_of_the_tree_is_not_followed(self, tree, tmp_path, mount):
        """A tree from a stranger may bring an apply with it that never was."""
        (tmp_path / ".cleveragents-p1").mkdir()
        (tmp_path / ".cleveragents-p1/theirs").write_text("theirs")
        folder = tree / HOME / "apply" / "p1"
        folder.mkdir(parents=True)
        (folder / "elsewhere").write_bytes(mount + b"\0")
        assert [one.outcome for one in engine(tree).recover()] == ["old"]
        assert engine(tree).recover() == ()
        assert (tmp_path / ".cleveragents-p1/theirs").read_text() == "theirs"

    def test_folder_that_was_listed_and_not_made_is_no_trouble(self, tree):
        folder = tree / HOME / "apply" / "p1"
        folder.mkdir(parents=True)
        (folder / "elsewhere").write_bytes(b"src\0half/nowhere\0sr")
        before = look(tree)
        assert [one.outcome for one in engine(tree).recover()] == ["old"]
        assert old_or_new(tree, before) == "old"
        check_clean(tree)

    def test_mount_that_nobody_noticed_is_an_error_and_leaves_the_tree_as_it_was(
        self, mounted, monkeypatch
    ):
        """Such as a second mount of the same device: its number does not tell."""
        monkeypatch.undo()
        before = look(mounted)

        def refuse(*_):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

        monkeypatch.setattr(native, "rename", refuse)
        with pytest.raises(PlanError) as caught:
            engine(mounted).apply("p1", [target(mounted, "src/app.py", b"new")])
        assert caught.value.code == "CA4105"
        assert look(mounted) == before
        check_clean(mounted)
