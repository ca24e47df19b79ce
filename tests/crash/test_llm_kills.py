"""Model actors that are killed go on: no answer that was kept is asked for or paid again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

pytest.importorskip("pydantic_ai")

from cleveragents.application.run_journal import PlanState  # only with an SDK
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.runs import Runs
from cleveragents.testing import ModelServer
from cleveragents.workspace import Workspace
from crash.harness import FOLDER
from crash.llm_process import (
    MODEL,
    NODES,
    OPTIONS,
    PLAN_ID,
    POINTS,
    PRICES,
    TURNS,
    number_in,
    plant,
    script,
)

ENDED = (0, "end done 0\n")
KILLED = (-signal.SIGKILL, "")
#: `nox -s crash` sets it to 1,000; then each point is a place of death again and again.
NUMBERS = range(1, 7) if int(os.environ.get("CLEVERAGENTS_KILLS", "50")) > 50 else (4,)


@pytest.fixture(scope="module")
def processes():
    """The process that forks all others."""
    with subprocess.Popen(
        [sys.executable, str(FOLDER / "llm_process.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    ) as forking:
        yield forking


@pytest.fixture
def run(processes, tmp_path):
    """Return what runs a process to its end, be it a natural one, and says its code and words."""

    def run(root, server, *point):
        print(json.dumps([str(root), server.openai_url, *point]), file=processes.stdin, flush=True)
        code = int(processes.stdout.readline())
        errors = (tmp_path / f"{root.name}.err").read_text()
        assert "Traceback" not in errors, errors
        return code, (tmp_path / f"{root.name}.out").read_text()

    return run


def kept_turns(root):
    """Return the answers that are kept, as (node, turn), and what each cost."""
    with Store(root / ".cleveragents" / "state.db") as store, store.read() as connection:
        rows = connection.execute(
            "SELECT c.node, t.number, t.cost FROM turns t JOIN conversations c"
            " ON c.id = t.conversation"
        ).fetchall()
    turns = {(node, number): cost for node, number, cost in rows}
    assert len(turns) == len(rows), "an answer is kept twice"
    return turns


def questions(server):
    """Return how often each question was asked, as (node, turn)."""
    return Counter((f"n{number_in(one)}", one.turns + 1) for one in server.asked)


def cost_of(bill):
    return PRICES.cost_of(MODEL, bill.usage).pico


def judge_files(root):
    with Workspace(root, options=OPTIONS) as workspace, Runs(workspace) as runs:
        workspace.collect_garbage()
        assert runs.journal.get(PLAN_ID).state is PlanState.DONE
        outputs = {one.id: one.output for one in runs.nodes(PLAN_ID)}
        assert outputs == {f"n{number}": f"{number} is done" for number in range(NODES)}
        repository = workspace.changes.repository
        found = repository.files(workspace.changes.trees.tree_of(PLAN_ID).head)
        texts = {path: next(iter(repository.read([one.oid]))) for path, one in found.items()}
    expected = {}
    for number in range(NODES):
        expected[f"{number}.txt"] = b"done\n"
        expected[f"out/{number}.txt"] = f"{number}\n".encode()
        expected[f"ran{number}.txt"] = b"ran\n"
    assert texts == expected


def judge_money(root, server):
    """Everything billed is in the books: exactly what is known, and bounded what is not."""
    billed = Counter(map(cost_of, server.bills))
    kept = Counter(kept_turns(root).values())
    assert kept <= billed
    strays = sorted((billed - kept).elements(), reverse=True)
    # A minute later no process of before is alive, so that all it left open is charged.
    with (
        Store(root / ".cleveragents" / "state.db") as store,
        DurableCostTracker(store, clock=lambda: time.time() + 60) as tracker,
    ):
        unconfirmed = sorted(tracker.expire(), key=lambda one: one.upper_bound, reverse=True)
        bounds = [one.upper_bound.pico for one in unconfirmed]
        spent = tracker.balance("plan", PLAN_ID).spent
        assert spent.pico == sum(kept.elements()) + sum(bounds)
        assert len(strays) <= len(bounds)
        assert all(stray <= bound for stray, bound in zip(strays, bounds, strict=False))
        for number, one in enumerate(unconfirmed):
            if number < len(strays):
                one.settle(Money(strays[number]))
            else:
                one.release()
        assert tracker.balance("plan", PLAN_ID).spent.pico == sum(billed.elements())
        assert tracker.balance("plan", PLAN_ID).promised == Money(0)
    return len(bounds)


def test_plan_that_is_not_disturbed_asks_each_question_once(tmp_path, run):
    root = tmp_path / "tree"
    plant(root)
    with ModelServer(script) as server:
        assert run(root, server) == ENDED
        assert set(questions(server).values()) == {1}
        assert len(server.asked) == NODES * TURNS
        judge_files(root)
        assert judge_money(root, server) == 0


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("point", POINTS)
def test_plan_goes_on_after_death_at(tmp_path, run, point, number):
    if point == "sealed":
        number = min(number, NODES)
    root = tmp_path / "tree"
    plant(root)
    with ModelServer(script) as server:
        assert run(root, server, f"{point}:{number}") == KILLED
        kept, before = kept_turns(root), questions(server)
        assert run(root, server) == ENDED
        after = questions(server)
        assert {one: after[one] - before[one] for one in kept} == dict.fromkeys(kept, 0)
        assert len(kept_turns(root)) == NODES * TURNS
        judge_files(root)
        # At most what was on its way when it died.
        assert judge_money(root, server) <= NODES


def test_plan_survives_being_killed_again_and_again(tmp_path, run):
    root = tmp_path / "tree"
    plant(root)
    with ModelServer(script) as server:
        for number, point in enumerate(("kept", "after-a-tool", "answered", "paid", "in-a-tool")):
            assert run(root, server, f"{point}:{number % 2 + 1}") == KILLED
        assert run(root, server) == ENDED
        assert len(kept_turns(root)) == NODES * TURNS
        judge_files(root)
        judge_money(root, server)
