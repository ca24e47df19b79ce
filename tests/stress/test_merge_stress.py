"""The headline: many actors edit shared files at once, and every edit is accounted for."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest

from cleveragents.domain.conflict import ConflictState
from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.sandbox.sandboxes import SandboxManager
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

ACTORS, EDITS, FILES = 16, 20, 5


class Workshop:
    """Everything an attempt goes through: sandbox, edits, seal, merge."""

    def __init__(self, root, store):
        self.repository = GitRepository(root, root / ".cleveragents")
        self.changesets = SqliteChangesetStore(store)
        self.trees = PlanTrees(store, self.repository)
        self.harvest = Harvest(self.repository, self.changesets, self.trees)
        self.manager = SandboxManager(self.repository, store, tree_of=self.trees.tree_of)
        self.manager.prepare(self.trees.begin("p").base)
        self.ready = threading.Barrier(ACTORS)

    def attempt(self, n, edit):
        """One actor's one run; all have their sandboxes before anybody merges."""
        sandbox = self.manager.create("p", f"n{n}", 1)
        changeset_id = self.changesets.start("p", actor=f"a{n}", node=f"n{n}", attempt=1)
        for step in range(EDITS):
            path = sandbox.path / f"f{step % FILES}"
            path.write_bytes(edit(n, step, path.read_bytes()))
        self.ready.wait(30)
        self.harvest.seal(sandbox, changeset_id)
        self.manager.mark_sealed(sandbox.id, changeset_id)
        self.manager.release(sandbox.id)
        return self.trees.merge(changeset_id)

    def tree(self):
        found = self.repository.files(self.trees.tree_of("p").head)
        return b"".join(self.repository.read([blob.oid for blob in found.values()]))


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [one for one in os.environ if one.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "tree"
    root.mkdir()
    for n in range(FILES):
        lines = (f"file {n} line {line}\n" for line in range(3 * ACTORS * EDITS))
        (root / f"f{n}").write_text("".join(lines), encoding="utf-8")
    with Store(root / ".cleveragents" / "state.db") as store:
        workshop = Workshop(root, store)
        with workshop.manager:
            yield workshop


def mark(n, step):
    return f"edit {step} of actor {n}\n".encode()


def own_line(n, step, data):
    lines = data.splitlines(keepends=True)
    lines[3 * (n * EDITS + step)] = mark(n, step)
    return b"".join(lines)


def shared_line(n, step, data):
    lines = data.splitlines(keepends=True)
    lines[3 * step] = mark(n, step)
    return b"".join(lines)


def test_320_of_320_edits_of_16_actors_survive_and_nobody_works_twice(workshop):
    outcomes = run_together([partial(workshop.attempt, n, own_line) for n in range(ACTORS)])
    assert {one.state for one in outcomes} == {"merged"}
    tree = workshop.tree()
    kept = sum(mark(n, step) in tree for n in range(ACTORS) for step in range(EDITS))
    assert kept == ACTORS * EDITS
    attempts = [row.attempt for row in workshop.trees.merges("p")]
    assert attempts == [1] * ACTORS


def test_edits_of_the_same_lines_are_in_the_tree_or_in_an_open_conflict(workshop):
    outcomes = run_together([partial(workshop.attempt, n, shared_line) for n in range(ACTORS)])
    assert sorted(one.state for one in outcomes) == ["conflicted"] * (ACTORS - 1) + ["merged"]
    tree = workshop.tree()
    asked = dict.fromkeys(range(ACTORS), b"")
    for conflict in workshop.trees.conflicts("p"):
        assert conflict.state == ConflictState.OPEN
        [data] = workshop.repository.read([conflict.theirs.content_id])
        asked[int(conflict.theirs.actor[1:])] += data
        assert len(conflict.theirs.lines) == EDITS // FILES
    for n, outcome in enumerate(outcomes):
        found = tree if outcome.state == "merged" else asked[n]
        assert all(mark(n, step) in found for step in range(EDITS))
