"""All targets are in place, or none is; and nobody's edit is lost."""

from __future__ import annotations

import errno
import os
import stat
import struct
import threading

import pytest

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import (
    ConflictError,
    PlanError,
    RequestError,
    SandboxError,
)
from cleveragents.infrastructure.apply import native
from cleveragents.infrastructure.apply.survey import signature
from cleveragents.infrastructure.apply.target import Applied, Recovered, Target
from cleveragents.infrastructure.apply.tree_apply import TreeApply
from cleveragents.testing import Gate, run_together
from unit.infrastructure.apply.forest import (
    HOME,
    check_clean,
    check_new,
    engine,
    look,
    target,
    targets,
)

pytestmark = pytest.mark.usefixtures("quick")


def access_list(place):
    """What lets another user read a file, as the system keeps it, and its mode otherwise."""
    mode = place.stat().st_mode
    entries = [(1, mode >> 6 & 7, -1), (2, 4, 12345), (4, mode >> 3 & 7, -1)]
    entries += [(16, mode >> 3 & 7, -1), (32, mode & 7, -1)]
    packed = [struct.pack("<HHI", tag, rights, who & 0xFFFFFFFF) for tag, rights, who in entries]
    return struct.pack("<I", 2) + b"".join(packed)


def at(point, do):
    """A fault that does something at the first passing of a named point."""
    done = []

    def fault(reached):
        if reached == point and not done:
            done.append(point)
            do()

    return fault


class Death(BaseException):
    """The process is gone: nothing after it reaches the file system."""


def dead_from(point, times=1):
    """A fault that lets nothing through from the n-th passing of a point on."""
    passed = []

    def fault(reached):
        passed.extend([1] if reached == point else [])
        if len(passed) >= times:
            raise Death

    return fault


def fails(number=28):
    def fail():
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.usefixtures("road")
def test_apply_makes_every_kind_of_change(tree):
    before = look(tree)
    applied = engine(tree).apply("p1", iter(targets(tree)))
    check_new(tree, before)
    check_clean(tree)
    assert applied == Applied(files=22, created=7, replaced=7, deleted=8)


@pytest.mark.usefixtures("road")
def test_apply_keeps_permission_bits_and_changes_execution_only(tree):
    engine(tree).apply("p1", targets(tree))
    now = look(tree)
    assert now["src/app.py"].mode == 0o640
    assert now["ro.txt"].mode == 0o444
    assert now["run.sh"].mode == 0o775  # who could read it can run it


@pytest.mark.usefixtures("road")
def test_folders_come_back_with_their_rights_when_all_is_taken_back(tree):
    before = look(tree)
    with pytest.raises(PlanError, match="nothing was changed") as caught:
        engine(tree, fault=at("after-flip", fails())).apply("p1", targets(tree))
    assert caught.value.code == "CA4105"
    assert look(tree) == before
    assert before["gone"].mode == 0o750
    check_clean(tree)


def test_rollback_that_fails_keeps_the_journal_and_recovery_goes_on(tree):
    before, said = look(tree), []

    def fault(point):
        said.append(point)
        if point == "after-flip":
            fails()()
        if point == "call:open-folder" and "after-mark" in said and "failed" not in said:
            said.append("failed")
            fails()()

    wishes = [target(tree, "src/new/x", b"new"), target(tree, "to/y", b"new")]
    with pytest.raises(PlanError, match="could not be taken back") as caught:
        engine(tree, fault=fault).apply("p1", wishes, note=b"n")
    assert caught.value.code == "CA4106"
    assert engine(tree).recover() == (Recovered("p1", "old", b"n"),)
    assert look(tree) == before
    check_clean(tree)


def test_files_of_one_new_folder_share_it(tree):
    engine(tree).apply("p1", [target(tree, "n/a", b"1"), target(tree, "n/b", b"2")])
    assert sorted(one.name for one in (tree / "n").iterdir()) == ["a", "b"]


def test_first_apply_makes_a_home_that_git_ignores(tree):
    engine(tree).apply("p1", [target(tree, "keep.txt", b"x")])
    assert (tree / HOME / ".gitignore").read_text() == "*\n"


def test_apply_of_nothing_is_an_apply(tree):
    said = []
    applied = engine(tree).apply("p1", [], on_flipped=lambda: said.append("flipped"))
    assert (applied.files, said) == (0, ["flipped"])


def test_many_old_files_are_removed_by_two_threads(tmp_path):
    root = tmp_path / "many"
    root.mkdir()
    for number in range(300):
        (root / str(number)).write_text("old")
    engine(root).apply("p1", [target(root, str(n), b"new") for n in range(300)])
    check_clean(root)
    assert {one.read_text() for one in root.iterdir() if one.name != HOME} == {"new"}


def test_hooks_are_called_around_the_flip(tree):
    said = []
    fault = lambda point: said.append(point) if not point.startswith("call:") else None  # noqa: E731  # two words
    engine(tree, fault=fault).apply(
        "p1",
        [target(tree, "keep.txt", b"new"), target(tree, "link", None)],
        before_flip=lambda: said.append(("before", (tree / "keep.txt").read_bytes())),
        on_flipped=lambda: said.append(("flipped", (tree / "keep.txt").read_bytes())),
    )
    assert said == [
        "after-stage",
        "after-sync",
        "after-check",
        ("before", b"untouched"),
        "before-journal",
        "after-journal",
        "mid-flip",
        "mid-flip",
        "after-flip",
        ("flipped", b"new"),
        "before-done",
        "after-done",
        "mid-clean",
        "mid-clean",
        "mid-clean",
        "mid-clean",
        "after-clean",
    ]


def test_hook_that_refuses_before_the_flip_leaves_nothing_behind(tree):
    before = look(tree)
    with pytest.raises(ZeroDivisionError):
        engine(tree).apply("p1", targets(tree), before_flip=lambda: 1 / 0)
    assert look(tree) == before
    check_clean(tree)


def test_targets_that_cannot_be_read_leave_nothing_behind(tree):
    def broken():
        yield target(tree, "keep.txt", b"new")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        engine(tree).apply("p1", broken())
    assert (tree / "keep.txt").read_text() == "untouched"
    check_clean(tree)


def test_tree_stays_new_when_the_record_fails_and_recovery_tells_again(tree):
    before, told = look(tree), []
    with pytest.raises(ZeroDivisionError):
        engine(tree).apply("p1", targets(tree), note=b"note", on_flipped=lambda: 1 / 0)
    check_new(tree, before)
    applier = engine(tree, on_recovered=told.append)
    assert applier.pending()
    assert applier.recover() == (Recovered("p1", "new", b"note"),) == tuple(told)
    assert not applier.pending()
    check_new(tree, before)


def test_journal_stays_until_it_was_told_of(tree):
    with pytest.raises(ZeroDivisionError):
        engine(tree).apply("p1", targets(tree), on_flipped=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine(tree, on_recovered=lambda _: 1 / 0).recover()
    assert [one.outcome for one in engine(tree).recover()] == ["new"]


def test_apply_recovers_what_is_pending_first(tree):
    told = []
    with pytest.raises(ZeroDivisionError):
        engine(tree).apply("p1", [target(tree, "keep.txt", b"one")], on_flipped=lambda: 1 / 0)
    wish = target(tree, "keep.txt", b"two")
    engine(tree, on_recovered=told.append).apply("p2", [wish])
    assert [one.apply_id for one in told] == ["p1"]
    assert (tree / "keep.txt").read_bytes() == b"two"


def test_recovery_without_anything_pending_leaves_no_trace(tree):
    assert engine(tree).recover() == ()
    assert not (tree / HOME).exists()


def test_recovery_leaves_alone_what_it_does_not_know(tree):
    (tree / HOME / "apply" / "no id!").mkdir(parents=True)
    assert engine(tree).recover() == ()
    assert (tree / HOME / "apply" / "no id!").is_dir()


class TestEditsOfOthers:
    def test_file_that_changed_since_it_was_compared_is_not_touched(self, tree):
        wishes = targets(tree)
        (tree / "src/app.py").write_text("mine")
        (tree / "zero.txt").write_text("mine too")
        (tree / "half/right.py").unlink()
        before = look(tree)
        with pytest.raises(ConflictError) as caught:
            engine(tree).apply("p1", wishes)
        assert caught.value.code == "CA4102"
        assert caught.value.facts["paths"] == ["'half/right.py'", "'src/app.py'", "'zero.txt'"]
        assert "and 2 more" in caught.value.message
        assert look(tree) == before
        check_clean(tree)

    def test_file_in_a_folder_that_is_gone_has_changed(self, tree):
        wishes = [target(tree, "gone/only.py", b"new")]
        (tree / "gone/only.py").rename(tree / "saved")
        (tree / "gone/deep/down.py").unlink()
        (tree / "gone/deep").rmdir()
        (tree / "gone").rmdir()
        with pytest.raises(ConflictError):
            engine(tree).apply("p1", wishes)

    @pytest.mark.usefixtures("road")
    @pytest.mark.parametrize("how", ["in place", "by rename", "deleted", "created", "folder"])
    def test_save_in_the_last_moment_is_kept_and_all_is_taken_back(self, tree, how):
        """After the comparison and before the flip, when nobody can warn us any more."""
        wishes = targets(tree)

        def save():
            (tree / "draft").write_text("mine, unsaved till now")
            if how == "in place":
                (tree / "src/app.py").write_text("mine, unsaved till now")
            elif how == "by rename":
                (tree / "draft").rename(tree / "src/app.py")
            elif how == "deleted":
                (tree / "src/app.py").unlink()
            elif how == "created":
                (tree / "zero.txt").write_text("mine")
            else:
                (tree / "src/app.py").unlink()
                (tree / "src/app.py").mkdir()
            edited.update(look(tree))

        edited = {}
        with pytest.raises(PlanError) as caught:
            engine(tree, fault=at("after-journal", save)).apply("p1", wishes)
        assert caught.value.code == "CA4102", caught.value
        assert look(tree) == edited
        check_clean(tree)

    @pytest.mark.usefixtures("road")
    def test_file_that_is_deleted_by_both_in_the_last_moment_is_noticed(self, tree):
        wishes = targets(tree)
        fault = at("after-journal", (tree / "half/right.py").unlink)
        with pytest.raises(ConflictError, match=r"half/right\.py"):
            engine(tree, fault=fault).apply("p1", wishes)
        assert not (tree / "half/right.py").exists()

    @pytest.mark.usefixtures("road")
    def test_edits_after_the_flip_stay_when_all_is_taken_back(self, tree):
        def edit():
            (tree / "src/app.py").write_text("mine, on top of the new")
            (tree / "zero.txt").write_text("mine, on top of nothing")
            (tree / "gone/only.py").parent.mkdir()
            (tree / "gone/only.py").write_text("mine, again")
            (tree / "run.sh").unlink()
            fails()()

        with pytest.raises(PlanError) as caught:
            engine(tree, fault=at("after-flip", edit)).apply("p1", targets(tree))
        assert caught.value.facts["edited"] == ["'zero.txt'", "'src/app.py'", "'gone/only.py'"]
        now = look(tree)
        assert now["src/app.py"].content == b"mine, on top of the new"
        assert now["zero.txt"].content == b"mine, on top of nothing"
        assert now["gone/only.py"].content == b"mine, again"
        assert now["run.sh"].content == b"#!/bin/sh"
        assert now["conf"].content == b"plain"

    def test_edit_between_death_and_recovery_is_kept(self, tree):
        """The half-done apply is taken back, because the caller merged without this edit."""
        before = look(tree)
        with pytest.raises(Death):
            engine(tree, fault=dead_from("after-journal")).apply("p1", targets(tree), note=b"n")
        (tree / "src/app.py").write_text("mine")
        (found,) = engine(tree).recover()
        assert found == Recovered("p1", "old", b"n")
        now = look(tree)
        assert now.pop("src/app.py").content == b"mine"
        before.pop("src/app.py")
        assert now == before

    def test_edit_of_a_file_that_has_two_names_is_kept(self, tree, monkeypatch):
        """Where files cannot be exchanged: dead between keeping the old and putting the new."""
        monkeypatch.setattr(native, "function", lambda _: None)
        wish = [target(tree, "src/app.py", b"new")]
        with pytest.raises(Death):
            engine(tree, fault=dead_from("call:move", 2)).apply("p1", wish, note=b"n")
        (tree / "draft").write_text("mine")
        (tree / "draft").rename(tree / "src/app.py")
        assert engine(tree).recover() == (Recovered("p1", "old", b"n", ("src/app.py",)),)
        assert (tree / "src/app.py").read_text() == "mine"
        check_clean(tree)


class TestRefusals:
    def refused(self, tree, wishes, kind=PlanError):
        before = look(tree)
        with pytest.raises(kind) as caught:
            engine(tree).apply("p1", wishes)
        assert look(tree) == before
        check_clean(tree)
        return caught.value

    def test_folder_that_is_a_link_is_never_written_through(self, tree, tmp_path):
        (tmp_path / "outside").mkdir()
        (tree / "way").symlink_to(tmp_path / "outside")
        for path in ("way/x", "way/new/x"):
            error = self.refused(tree, [target(tree, path, b"x")], SandboxError)
            assert error.code == "CA5001"
        assert list((tmp_path / "outside").iterdir()) == []

    def test_folder_that_becomes_a_link_in_the_last_moment_is_not_followed(self, tree, tmp_path):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "app.py").write_text("not ours")

        def swap():
            (tree / "src").rename(tree / "src-moved")
            (tree / "src").symlink_to(tmp_path / "outside")

        with pytest.raises(PlanError) as caught:
            engine(tree, fault=at("after-journal", swap)).apply(
                "p1", [target(tree, "src/app.py", b"evil")]
            )
        assert caught.value.code == "CA4105"
        assert (tmp_path / "outside" / "app.py").read_text() == "not ours"
        check_clean(tree)

    def test_home_that_is_a_link_is_refused(self, tree, tmp_path):
        (tmp_path / "outside").mkdir()
        (tree / HOME).symlink_to(tmp_path / "outside")
        with pytest.raises(SandboxError) as caught:
            engine(tree).apply("p1", [target(tree, "keep.txt", b"x")])
        assert caught.value.code == "CA5001"
        assert list((tmp_path / "outside").iterdir()) == []

    def test_file_where_a_folder_is_needed_is_refused(self, tree):
        error = self.refused(tree, [target(tree, "keep.txt/x", b"x")])
        assert error.code == "CA4108"

    def test_folder_where_a_file_shall_be_is_refused(self, tree):
        assert self.refused(tree, [target(tree, "src", b"x")]).code == "CA4108"

    def test_folder_that_holds_more_than_what_goes_does_not_become_a_file(self, tree):
        (tree / "pkg/sub/ignored.pyc").write_text("not in the plan")
        error = self.refused(tree, targets(tree))
        assert error.code == "CA4108"
        assert "ignored.pyc" in error.message

    def test_pipe_where_a_file_shall_be_is_refused(self, tree):
        os.mkfifo(tree / "pipe")
        with pytest.raises(PlanError, match="neither a file nor a symbolic link") as caught:
            signature(tree, "pipe")
        assert caught.value.code == "CA4108"

    @pytest.mark.parametrize("path", [".cleveragents/state.db", ".CleverAgents/x"])
    def test_our_own_folder_is_no_target(self, tree, path):
        error = self.refused(tree, [Target(path, b"x", None, None)], SandboxError)
        assert error.code == "CA5001"

    def test_targets_must_not_contradict_each_other(self, tree):
        twice = [target(tree, "new", b"1"), target(tree, "new", b"2")]
        both = [target(tree, "new", b"1"), target(tree, "new/deep/x", b"2")]
        assert self.refused(tree, twice).code == "CA4003"
        assert self.refused(tree, both).code == "CA4003"

    def test_name_that_is_too_long_leaves_the_tree_as_it_was(self, tree):
        for path in ("x" * 300, "y" * 300 + "/x"):
            error = self.refused(tree, [target_of(path), target(tree, "keep.txt", b"x")])
            assert error.code == "CA4105"
            assert "File name too long" in error.message

    @pytest.mark.parametrize("name", ["", ".x", "a/b", "~x", "x" * 101, "a\nb"])
    def test_apply_id_must_be_a_plain_name(self, tree, name):
        with pytest.raises(RequestError):
            engine(tree).apply(name, [])

    def test_home_must_be_in_the_root(self, tree):
        with pytest.raises(RequestError, match=r"\.cleveragents"):
            TreeApply(tree, tree / "deep" / HOME)


def target_of(path):
    return Target(path, b"x", FileMode.REGULAR, None)


class TestOneAfterTheOther:
    def test_second_apply_waits_and_then_gives_up(self, tree):
        gate, wish = Gate(), [target(tree, "keep.txt", b"first")]
        other = [target(tree, "run.sh", b"second")]
        first = threading.Thread(
            target=lambda: engine(tree).apply("p1", wish, before_flip=gate.pass_through),
            name="ca-first",
        )
        first.start()
        gate.wait_for(1)
        with pytest.raises(PlanError) as caught:
            engine(tree, lock_wait_s=0.05).apply("p2", other)
        assert caught.value.code == "CA4104"
        assert caught.value.facts["process"] == str(os.getpid())
        applier = engine(tree)
        assert applier.pending()
        assert applier.recover() == ()  # it is alive
        gate.open()
        first.join()
        engine(tree).apply("p2", other)
        assert ((tree / "keep.txt").read_text(), (tree / "run.sh").read_text()) == (
            "first",
            "second",
        )

    def test_threads_apply_one_after_the_other(self, tree):
        """All saw the same file: one is first, and the others are told that it changed."""
        wishes = [target(tree, "keep.txt", f"{number}".encode()) for number in range(6)]

        def apply(number):
            try:
                engine(tree).apply(f"p{number}", [wishes[number]])
            except ConflictError:
                return None
            return str(number)

        done = run_together([lambda number=number: apply(number) for number in range(6)])
        (winner,) = [one for one in done if one is not None]
        assert (tree / "keep.txt").read_text() == winner
        check_clean(tree)

    def test_lock_file_may_not_be_a_link(self, tree, tmp_path):
        (tree / HOME).mkdir()
        (tree / HOME / "apply.lock").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(PlanError):
            engine(tree).apply("p1", [target(tree, "keep.txt", b"x")])
        assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
class TestOwners:
    def test_replaced_file_keeps_its_attributes(self, tree):
        place = tree / "src/app.py"
        try:
            os.setxattr(place, "user.note", b"mine")
        except (OSError, AttributeError):
            pytest.skip("needs a file system with attributes")
        engine(tree).apply("a-1", targets(tree))
        assert place.read_text() == "new"
        assert os.getxattr(place, "user.note") == b"mine"
        assert os.listxattr(tree / "src/new/deep/er.py") == []

    @pytest.mark.parametrize("executable", [False, True], ids=["same-mode", "executable"])
    def test_replaced_file_keeps_its_access_list(self, tree, executable):
        """Also where the plan makes it a program: the list then lets the group run it too."""
        place = tree / ("run.sh" if executable else "src/app.py")
        try:
            os.setxattr(place, "system.posix_acl_access", access_list(place))
        except (OSError, AttributeError):
            pytest.skip("needs a file system with access lists")
        before = place.stat().st_mode & 0o777
        engine(tree).apply("a-1", targets(tree))
        kept = os.getxattr(place, "system.posix_acl_access")
        assert struct.pack("<HHI", 2, 4, 12345) in kept
        assert place.stat().st_mode & 0o777 == (before | 0o111 if executable else before)

    def test_attribute_that_lends_rights_to_the_old_content_goes_with_it(self, tree):
        place = tree / "src/app.py"
        try:
            os.setxattr(place, "security.capability", struct.pack("<IIIII", 0x2000000, 1, 0, 0, 0))
        except (OSError, AttributeError):
            pytest.skip("needs the right to give capabilities")
        engine(tree).apply("a-1", targets(tree))
        assert os.listxattr(place) == []

    def test_attribute_that_may_not_be_set_is_let_go(self, tree, monkeypatch):
        place = tree / "src/app.py"
        try:
            os.setxattr(place, "user.note", b"mine")
        except (OSError, AttributeError):
            pytest.skip("needs a file system with attributes")

        def refuse(*_, **__):
            raise PermissionError(errno.EPERM, "not allowed")

        monkeypatch.setattr(os, "setxattr", refuse)
        engine(tree).apply("a-1", targets(tree))
        assert place.read_text() == "new"

    def test_files_are_replaced_where_there_are_no_attributes(self, tree, monkeypatch):
        monkeypatch.delattr(os, "listxattr", raising=False)
        engine(tree).apply("a-1", targets(tree))
        assert (tree / "src/app.py").read_text() == "new"

    def test_replaced_file_keeps_its_owner(self, tree):
        for path in ("src/app.py", "link", "gone"):
            os.chown(tree / path, 4711, 4712, follow_symlinks=False)
        (tree / "src/app.py").chmod(0o4755)
        wishes = [target(tree, "src/app.py", b"new"), target(tree, "link", b"there")]
        engine(tree).apply("p1", wishes)
        for path in ("src/app.py", "link"):
            status = (tree / path).lstat()
            assert (status.st_uid, status.st_gid) == (4711, 4712)
        assert stat.S_IMODE((tree / "src/app.py").stat().st_mode) == 0o4755

    def test_bits_that_lend_rights_are_dropped_with_the_owner(self, tree, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(1, "not you")

        for path in ("src/app.py", "link"):
            os.chown(tree / path, 4711, 4712, follow_symlinks=False)
        (tree / "src/app.py").chmod(0o4755)
        wishes = [target(tree, "src/app.py", b"new"), target(tree, "link", b"there")]
        monkeypatch.setattr(os, "fchown", refuse)
        monkeypatch.setattr(os, "chown", refuse)
        engine(tree).apply("p1", wishes)
        assert stat.S_IMODE((tree / "src/app.py").stat().st_mode) == 0o755
