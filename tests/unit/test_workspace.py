from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from cleveragents.domain.command import Command
from cleveragents.domain.errors import PlanError, SandboxError, StoreError
from cleveragents.infrastructure.changes.selection import Selection
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together
from cleveragents.workspace import Workspace, WorkspaceOptions, made_home

PLAN = "p-1"


@pytest.fixture
def root(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "app.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    return tree


@pytest.fixture(params=["overlay", "copy"])
def workspace(root, request):
    with Workspace(root, options=WorkspaceOptions(sandbox_kind=request.param)) as opened:
        if opened.sandboxes.available()[request.param] is not None:
            pytest.skip("not available here")
        opened.begin(PLAN)
        yield opened


def state_of(workspace: Workspace, changeset_id: str) -> str:
    rows = workspace.changes.trees.merges(PLAN)
    return next(row.state for row in rows if row.changeset_id == changeset_id)


def test_attempt_works_apart_and_is_merged_reviewed_and_applied(workspace, root):
    with workspace.attempt(PLAN, "greet", actor="ann") as attempt:
        attempt.files.write("hello.txt", b"hello\n")
        finished = attempt.run("sh", "-c", "echo by command > made.txt; cat hello.txt")
        assert (finished.exit_code, finished.stdout) == (0, b"hello\n")
        assert not (root / "hello.txt").exists()
    assert state_of(workspace, attempt.changeset_id) == "sealed"
    assert workspace.merge(attempt.changeset_id).state == "merged"
    patch = workspace.changes.difference(PLAN).patch()
    assert b"+hello" in patch
    assert b"+by command" in patch
    workspace.changes.applies.apply(PLAN)
    assert (root / "hello.txt").read_text() == "hello\n"
    assert (root / "made.txt").read_text() == "by command\n"


def test_part_of_a_plan_is_compared_alone(workspace):
    for actor in ("ann", "bob"):
        with workspace.attempt(PLAN, f"node-{actor}", actor=actor) as attempt:
            attempt.files.write(f"{actor}.txt", b"x\n")
        workspace.merge(attempt.changeset_id)
    patch = workspace.changes.difference(PLAN, Selection(actors=("bob",))).patch()
    assert b"bob.txt" in patch
    assert b"ann.txt" not in patch


def test_command_gets_input_and_environment(workspace):
    with workspace.attempt(PLAN, "n") as attempt:
        command = Command(("sh", "-c", "cat; echo $GREETING"), stdin=b"in ", env={"GREETING": "hi"})
        assert attempt.run_command(command).stdout == b"in hi\n"


def test_changes_of_an_attempt_that_raises_are_kept_and_merged_by_nobody(workspace):
    def fail() -> None:
        with workspace.attempt(PLAN, "n", actor="ann") as attempt:
            attempt.files.write("half.txt", b"half\n")
            raise LookupError("of the actor")

    with pytest.raises(LookupError, match="of the actor"):
        fail()
    (changeset,) = workspace.changes.changesets.of_plan(PLAN)
    assert [entry.path for entry in changeset.entries] == ["half.txt"]
    assert state_of(workspace, changeset.id) == "sealed"
    assert workspace.changes.difference(PLAN).patch() == b""
    assert workspace.sandboxes.list(PLAN) == ()


def test_attempts_at_once_all_survive(workspace, root):
    def act(number: int) -> str:
        with workspace.attempt(PLAN, f"n-{number}", actor=f"a-{number}") as attempt:
            attempt.files.write(f"{number}.txt", b"x\n")
            if number in (0, 4):
                lines = attempt.files.read("app.txt").splitlines(keepends=True)
                lines[number] = b"by %d\n" % number
                attempt.files.write("app.txt", b"".join(lines))
        return workspace.merge(attempt.changeset_id).state

    assert run_together([lambda n=n: act(n) for n in range(5)]) == ["merged"] * 5
    workspace.changes.applies.apply(PLAN)
    assert (root / "app.txt").read_text() == "by 0\ntwo\nthree\nfour\nby 4\n"
    assert len(list(root.glob("?.txt"))) == 5


def test_attempt_at_a_plan_that_never_began_is_refused(workspace):
    with pytest.raises(PlanError) as caught, workspace.attempt("p-none", "n"):
        pass
    assert caught.value.code == "CA4107"


def test_attempt_that_cannot_start_gives_its_sandbox_back(workspace, monkeypatch):
    def full(*_, **__):
        raise StoreError("no room", code="CA6003")

    monkeypatch.setattr(type(workspace.changes.changesets), "start", full)
    with pytest.raises(StoreError), workspace.attempt(PLAN, "n"):
        pass
    assert workspace.sandboxes.list(PLAN) == ()


def test_start_of_an_attempt_is_on_record(root):
    clock = FrozenClock()
    with Workspace(root, options=WorkspaceOptions(sandbox_kind="copy", clock=clock)) as workspace:
        workspace.begin(PLAN)
        with workspace.attempt(PLAN, "n", 3, actor="ann") as attempt:
            pass
        with workspace.changes.store.read() as connection:
            query = "SELECT body, at, actor FROM events WHERE kind = 'attempt.started'"
            ((body, at, actor),) = connection.execute(query).fetchall()
    assert json.loads(body) == {
        "sandbox": attempt.sandbox.id,
        "changeset": attempt.changeset_id,
        "node": "n",
        "attempt": 3,
    }
    assert (at, actor) == (clock(), "ann")


class TestOpening:
    def test_store_that_was_given_stays_open(self, root, tmp_path):
        with Store(tmp_path / "elsewhere.db") as store:
            with Workspace(root, store) as workspace:
                workspace.begin(PLAN)
            with store.read() as connection:
                assert connection.execute("SELECT plan FROM plan_trees").fetchall() == [(PLAN,)]

    def test_own_store_lies_in_the_tree_and_is_kept_out_of_git(self, root):
        with Workspace(root):
            assert (root / ".cleveragents/state.db").exists()
        assert (root / ".cleveragents/.gitignore").read_text() == "*\n"

    def test_nothing_stays_open_when_opening_fails(self, root):
        options = WorkspaceOptions(sandbox_kind="magic")
        with pytest.raises(ValueError, match="`kind` must be"):
            Workspace(root, options=options)

    def test_apply_that_died_is_ended_first(self, root):
        with Workspace(root) as workspace:
            assert workspace.recovered == ()
        (root / ".cleveragents/apply/a-dead").mkdir(parents=True)
        with Workspace(root) as workspace:
            assert [one.outcome for one in workspace.recovered] == ["old"]
        assert not (root / ".cleveragents/apply").exists()

    def test_folder_that_came_with_a_clone_is_refused(self, root):
        """What a stranger put into it would be taken for our own books."""
        Workspace(root).close()
        run = partial(subprocess.run, cwd=root, check=True)
        run(["git", "init", "--quiet"])
        Workspace(root).close()
        run(["git", "add", "--force", ".cleveragents/git/config"])
        with pytest.raises(PlanError) as caught:
            Workspace(root)
        assert caught.value.code == "CA4108"
        assert "git rm" in caught.value.hint

    def test_folder_is_closed_to_other_users(self, root):
        assert made_home(root).stat().st_mode & 0o777 == 0o700

    def test_collection_takes_what_kills_left_in_the_folder(self, root):
        with Workspace(root) as workspace:
            left = workspace.changes.repository.folder / "index-dead"
            left.mkdir()
            os.utime(left, (0, 0))
            workspace.collect_garbage()
            assert not left.exists()

    @pytest.mark.parametrize("what", ["file", "missing"])
    def test_tree_that_cannot_hold_our_folder_is_refused(self, tmp_path, what):
        place = tmp_path / "tree"
        if what == "file":
            place.write_text("no folder")
        with pytest.raises(StoreError) as caught:
            made_home(place)
        assert caught.value.code == "CA6007"
        assert place.exists() == (what == "file")


DYING = """
import os, signal, sys
from pathlib import Path
from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.workspace import Workspace, WorkspaceOptions

root, kind, when = Path(sys.argv[1]), *sys.argv[2:]
workspace = Workspace(root, options=WorkspaceOptions(sandbox_kind=kind))
die = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
if when == "before the changeset":
    workspace.changes.changesets.start = die
if when == "before mark":
    workspace.sandboxes.mark_sealed = die
if when == "before seal":
    workspace.changes.trees.seal = die
attempts = [workspace.attempt("p-1", "n", 1, actor="ann") for _ in range(2)]
for turn, attempt in enumerate(attempts, 1):
    here = attempt.__enter__()
    here.files.write(f"by-{turn}.txt", b"dead\\n")
    (here.sandbox.path / f"unrecorded-{turn}.txt").write_text("dead too\\n")
    print(here.changeset_id, flush=True)
    if when != "working":
        attempt.__exit__(None, None, None)
die()
"""


class TestAfterDeath:
    """What a killed process wrote is in the changeset that it had opened for it, and only there."""

    def die(self, workspace, root, when: str) -> list[str]:
        kind = workspace.sandboxes._wanted
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(root), kind, when],
            capture_output=True,
            check=False,
            timeout=60,
            text=True,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return done.stdout.split()

    def test_work_of_two_attempts_of_one_name_is_salvaged_apart(self, workspace, root):
        opened = self.die(workspace, root, "working")
        assert len(workspace.collect_garbage()) == 2
        changesets = {one.id: one for one in workspace.changes.changesets.of_plan(PLAN)}
        assert set(changesets) == set(opened)
        for turn, changeset_id in enumerate(opened, 1):
            changeset = changesets[changeset_id]
            assert changeset.finished
            assert changeset.actor == "ann"
            paths = sorted(entry.path for entry in changeset.entries)
            assert paths == [f"by-{turn}.txt", f"unrecorded-{turn}.txt"]
            assert workspace.merge(changeset_id).state == "merged"
        assert workspace.collect_garbage() == ()

    @pytest.mark.parametrize("when", ["before seal", "before mark"])
    def test_death_while_sealing_seals_the_same_changeset_once(self, workspace, root, when):
        (opened,) = self.die(workspace, root, when)
        assert len(workspace.collect_garbage()) == 1
        (changeset,) = workspace.changes.changesets.of_plan(PLAN)
        assert changeset.id == opened
        assert len(changeset.entries) == 2
        assert state_of(workspace, opened) == "sealed"

    def test_death_before_there_is_a_changeset_leaves_an_empty_one(self, workspace, root):
        assert self.die(workspace, root, "before the changeset") == []
        (gone,) = workspace.collect_garbage()
        (changeset,) = workspace.changes.changesets.of_plan(PLAN)
        assert (changeset.entries, changeset.node, changeset.attempt) == ((), "n", 1)
        assert gone.changeset == changeset.id


def test_sandbox_error_of_the_actor_is_its_own(workspace):
    with workspace.attempt(PLAN, "n") as attempt, pytest.raises(SandboxError) as caught:
        attempt.files.read("../../secret")
    assert caught.value.code == "CA5001"


@pytest.mark.parametrize("kind", ["overlay", "copy"])
def test_what_the_lists_in_the_sandbox_ignore_is_no_change(tmp_path, kind):
    """Build products of two actors must not meet, and must not keep the rest from the tree."""
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("*.log\n!kept.log\n")
    with Workspace(tmp_path, options=WorkspaceOptions(sandbox_kind=kind)) as workspace:
        workspace.begin("p")
        with workspace.attempt("p", "n") as attempt:
            made = (
                "mkdir __pycache__ sub/d; echo 1 | tee __pycache__/m.pyc sub/d/x.log sub/kept.log"
            )
            attempt.run("sh", "-c", made)
        changed = workspace.changes.changesets.get(attempt.changeset_id).entries
    assert [entry.path for entry in changed] == ["sub/kept.log"]
