"""A plan that is killed at any moment goes on: every edit once, every cent in the books."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents.application.run_journal import PlanState
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure.books import check_books
from cleveragents.runs import Runs
from cleveragents.workspace import Workspace, WorkspaceOptions
from crash.harness import FOLDER, kill_after
from crash.plan_runner_process import COST, EDITORS, PLAN_ID, POINTS, WORKERS, plant, the_plan

#: `nox -s crash` sets it to 1,000.
KILLS = min(int(os.environ.get("CLEVERAGENTS_KILLS", "10")), 200)


def start(root, *words):
    return subprocess.Popen(
        [sys.executable, str(FOLDER / "plan_runner_process.py"), str(root), *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    words, errors = process.communicate(timeout=120)
    assert "Traceback" not in errors, errors
    return words.splitlines()


def judge(root, *, strays=0):
    """Fail unless the plan is done, and everything that it did is there exactly once.

    Strays are attempts of a process that had lost the plan and did not know it yet: what they
    spent is in the books, and nothing else of them is anywhere.
    """
    options = WorkspaceOptions(sandbox_kind="copy", confinement="off")
    with Workspace(root, options=options) as workspace, Runs(workspace) as runs:
        workspace.collect_garbage()
        plan = runs.journal.get(PLAN_ID)
        assert plan.state is PlanState.DONE
        nodes = {one.id: one for one in runs.nodes(PLAN_ID)}
        assert set(nodes) == {one.name for one in the_plan().nodes}
        assert {one.state for one in nodes.values()} == {NodeState.DONE}
        assert nodes["last"].output == "0no file"
        judge_files(workspace, nodes)
        judge_books(workspace, runs, nodes, strays)
        assert workspace.sandboxes.list(PLAN_ID) == ()
    assert list((root / ".cleveragents" / "sandboxes").glob("*/*")) == []


def judge_files(workspace, nodes):
    changes = workspace.changes
    repository = changes.repository
    head = changes.trees.tree_of(PLAN_ID).head
    found = repository.files(head)
    assert set(found) == {"first.txt", "list.txt", *(f"out/{n}.txt" for n in EDITORS)}
    (text,) = repository.read([found["list.txt"].oid])
    for number in EDITORS:
        assert text.count(f"slot-{number};done;\n".encode()) == 1, (
            f"edit {number} is not there once"
        )
    merges = changes.trees.merges(PLAN_ID)
    merged = [one.changeset_id for one in merges if one.state == "merged"]
    assert sorted(merged) == sorted(one.changeset for one in nodes.values() if one.changeset)
    assert {one.state for one in merges} <= {"merged", "rejected"}


def judge_books(workspace, runs, nodes, strays):
    with workspace.changes.store.read() as connection:
        books = check_books(connection, workspace.changes.repository)
        assert [(one.name, one.wrong) for one in books if one.wrong] == []
        rows = connection.execute("SELECT body FROM events WHERE kind = 'node.done'").fetchall()
    done = [one["node"] for (body,) in rows for one in json.loads(body)["nodes"]]
    assert sorted(done) == sorted(nodes)
    attempts = sum(one.attempt for one in nodes.values() if one.id.startswith("w")) + strays
    spent = runs.tracker.balance("plan", PLAN_ID).spent
    assert Money.of(COST).pico * WORKERS <= spent.pico <= Money.of(COST).pico * attempts


def processes_on(root):
    """Return the processes that still have to do with a tree."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(root) in said:
            found.append(said)
    return found


def test_plan_that_is_not_disturbed_passes_the_same_judge(tmp_path):
    plant(tmp_path / "tree")
    assert finished(start(tmp_path / "tree"))[-1] == "end done 0"
    judge(tmp_path / "tree")


def test_plan_survives_random_kills(tmp_path):
    """One tree after the other: each is killed until its plan is done."""
    chance, kills, trees = random.Random(KILLS), 0, 0
    while kills < KILLS:
        trees += 1
        root = tmp_path / str(trees)
        plant(root)
        said = []
        while not said or not said[-1].startswith("end"):
            process = start(root)
            if kills < KILLS:
                said = kill_after(process, chance.randrange(1, 110))
                kills += process.returncode == -signal.SIGKILL
            else:
                said = finished(process)
            said = [line.strip() for line in said]
            assert not any(line.startswith("refused") for line in said), said[-1]
        assert said[-1] == "end done 0"
        judge(root)
        assert processes_on(root) == []


@pytest.mark.parametrize("number", [1, 5])
@pytest.mark.parametrize("point", [one for one in POINTS if not one.endswith("-end")])
def test_plan_goes_on_after_death_at(tmp_path, point, number):
    root = tmp_path / "tree"
    plant(root)
    # Only as many attempts fail as the plan says.
    number = min(number, 2) if point == "rejected" else number
    process = start(root, f"point={point}:{number}")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert finished(start(root))[-1] == "end done 0"
    judge(root)


@pytest.mark.parametrize("point", ["before-end", "after-end"])
def test_plan_goes_on_after_death_at_its_end(tmp_path, point):
    root = tmp_path / "tree"
    plant(root)
    process = start(root, f"point={point}:1")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert finished(start(root))[-1] == "end done 0"
    judge(root)


def test_runner_that_merges_before_the_result_is_kept_is_caught(tmp_path):
    """The judge would be worth nothing if the naive order passed it."""
    root = tmp_path / "tree"
    plant(root)
    process = start(root, "point=merged:5", "merge-first")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    finished(start(root))
    with pytest.raises(AssertionError):
        judge(root)


def held(root, *words):
    """Start a process that waits after its first node, and let it come there."""
    process = start(root, "hold", *words)
    for line in process.stdout:
        if line.startswith("NodeFinished"):
            return process
    raise AssertionError(finished(process))


def let_go(process):
    process.stdin.write("\n")
    process.stdin.flush()
    return finished(process)


def test_second_process_is_refused_while_the_first_one_runs(tmp_path):
    root = tmp_path / "tree"
    plant(root)
    first = held(root)
    assert finished(start(root))[-1] == "refused CA6201"
    assert let_go(first)[-1] == "end done 0"
    judge(root)


def take_over(root, *words):
    """Let a process be silent beyond its lease while another one goes on; return what it says."""
    plant(root)
    first = held(root, "silent", "lease=0.1", *words)
    said = ["refused CA6201"]
    while said[-1] == "refused CA6201":
        said = finished(start(root))
    assert said[-1] == "end done 0"
    return let_go(first)


def test_process_that_was_silent_too_long_loses_the_plan_and_writes_nothing_more(tmp_path):
    assert take_over(tmp_path / "tree")[-1] == "refused CA6202"
    judge(tmp_path / "tree", strays=the_plan().at_once)


def test_runner_without_a_fence_is_caught(tmp_path):
    """The judge would be worth nothing if two processes on one plan passed it."""
    take_over(tmp_path / "tree", "no-fence")
    with pytest.raises(AssertionError):
        judge(tmp_path / "tree", strays=the_plan().at_once)
