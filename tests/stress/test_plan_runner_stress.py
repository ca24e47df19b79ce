"""Many nodes, many plans and many wishes at once: nothing runs twice, nothing is forgotten."""

from __future__ import annotations

import threading

import pytest

from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.attempt_order import Claim
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure.audit import verify_chain
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.runs import _Once
from cleveragents.testing import run_together
from runkit import World, node, plan

pytestmark = pytest.mark.stress


@pytest.fixture
def world(tmp_path):
    with Store(tmp_path / "state.db") as store, DurableCostTracker(store) as tracker:
        world = World(store, tracker)
        world.options["listener"] = None
        yield world
        with store.read() as connection:
            assert verify_chain(connection).holds


def layers(prefix, width, depth):
    """Return layers of nodes, each of which needs two of the layer before."""
    nodes = []
    for row in range(depth):
        for column in range(width):
            needs = {f"{prefix}-{row - 1}-{column}", f"{prefix}-{row - 1}-{(column + 1) % width}"}
            nodes.append(node(f"{prefix}-{row}-{column}", *(sorted(needs) if row else ())))
    return nodes


def test_every_node_runs_once_and_after_what_it_needs(world):
    done, wrong = set(), []
    graph = plan(*layers("n", 16, 8), at_once=32)
    needs = {one.name: set(one.needs) for one in graph.nodes}

    def work(attempt):
        if not needs[attempt.instance] <= done:
            wrong.append(attempt.instance)
        done.add(attempt.instance)

    world.actors |= {name.replace("-", "_"): work for name in needs}
    result = world.runner.run(graph, "p")
    assert result.exit_code == 0
    assert wrong == []
    assert sorted(world.attempts) == sorted((name, 1) for name in needs)


def test_plans_of_many_threads_do_not_disturb_each_other(world):
    def run(number):
        graph = plan(*layers(f"t{number}", 4, 3), at_once=4)
        return world.runner.run(graph, f"p{number}")

    results = run_together([lambda n=n: run(n) for n in range(6)])
    assert {one.exit_code for one in results} == {0}
    assert len(world.attempts) == len(set(world.attempts)) == 6 * 12


def test_edits_of_one_file_by_many_nodes_are_all_there(world):
    """Each conflict runs its node again on the new tree until its edit is in."""

    def work(attempt):
        try:
            lines = attempt.files.read("list")
        except KeyError:
            lines = b""
        attempt.files.write("list", lines + attempt.instance.encode() + b"\n")

    names = [f"n{i}" for i in range(6)]
    world.actors |= dict.fromkeys(names, work)
    graph = plan(*(node(name, attempts_max=50) for name in names), at_once=2)
    result = world.runner.run(graph, "p")
    lines = world.workbench.tree["list"].decode().split()
    done = result.in_state(NodeState.DONE)
    assert sorted(lines) == sorted(done)


def test_stop_at_any_moment_leaves_a_plan_that_can_go_on(world):
    opened = []
    world.options["on_open"] = opened.append
    graph = plan(*layers("n", 8, 6), at_once=8)
    for moment in range(6):
        opened.clear()
        left = [moment * 5]

        def listen(_, left=left):
            left[0] -= 1
            if left[0] < 0:
                opened[0].request_stop(PlanState.PAUSED)

        world.options["listener"] = listen
        world.runner.run(graph, "p")
    world.options["listener"] = None
    assert world.runner.resume("p").exit_code == 0
    finished = [one for one in world.journal.nodes("p") if one.state is NodeState.DONE]
    assert len(finished) == 48


def test_failures_and_successes_at_once_are_all_told(world):
    lock, failed = threading.Lock(), set()

    def work(attempt):
        with lock:
            first = attempt.instance not in failed
            failed.add(attempt.instance)
        if first:
            raise SandboxError("once", code="CA5206", facts={"category": "tool.crash"})

    names = [f"n{i}" for i in range(24)]
    world.actors |= dict.fromkeys(names, work)
    assert world.runner.run(plan(*map(node, names), at_once=12), "p").exit_code == 0
    history = world.errors.history("p")
    assert history.count == history.decision_count == 24


@pytest.mark.parametrize("seed", range(3))
def test_exactly_one_caller_gets_a_claim(seed):
    claim = Claim()
    took = run_together([claim.take] * 16, restless=("cleveragents.",), seed=seed)
    assert took.count(True) == 1


def test_value_is_made_once_and_all_get_it():
    made = []
    once = _Once(lambda: made.append(1) or object())
    values = run_together([once.value] * 16, restless=("cleveragents.",))
    assert len(made) == 1
    assert len(set(map(id, values))) == 1
    broken = _Once(lambda: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            broken.value()
