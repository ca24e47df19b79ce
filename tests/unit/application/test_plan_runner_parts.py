"""The parts of a run, and the rare moments: late timers, lost plans, results nobody can keep."""

from __future__ import annotations

import threading

import pytest

from cleveragents.application.run_journal import NodeRecord, PlanState, source_of
from cleveragents.application.services.attempt_order import Answer, Claim
from cleveragents.application.services.attempt_workers import AttemptWorkers
from cleveragents.application.services.node_rendering import references_in
from cleveragents.application.services.result_keeper import ResultKeeper
from cleveragents.application.services.timers import Timers
from cleveragents.domain.command import Finished
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan import Check, ForEach, LlmActor, Node
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import LogLine
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, Gate
from runkit import FunctionActor, World, node, plan


@pytest.fixture
def world(tmp_path):
    with Store(tmp_path / "state.db") as store, DurableCostTracker(store) as tracker:
        yield World(store, tracker)


def test_timers_call_in_the_order_of_their_time_and_then_of_asking():
    clock, called = FrozenClock(), []
    timers = Timers(clock)
    assert timers.next_s() is None
    timers.after(2, lambda: called.append("late"))
    timers.after(1, lambda: called.append("first"))
    timers.after(1, lambda: called.append("second"))
    assert timers.next_s() == 1
    timers.run()
    clock.advance(1.5)
    assert timers.next_s() == 0
    timers.run()
    assert called == ["first", "second"]
    clock.advance(1)
    timers.run()
    assert called[-1] == "late"


def test_threads_are_used_again_and_grow_with_the_work():
    workers, names, gate = AttemptWorkers(), [], Gate()
    done = threading.Semaphore(0)

    def work():
        names.append(threading.current_thread().name)
        done.release()

    workers.start(gate.pass_through)
    workers.start(work)
    assert done.acquire(timeout=10)
    while workers._idle.empty():
        pass
    workers.start(work)
    assert done.acquire(timeout=10)
    gate.open()
    assert workers.close() == 0
    assert len(set(names)) == 1
    assert len(workers._threads) == 2


def test_claim_is_given_once():
    claim = Claim()
    assert [claim.take(), claim.take()] == [True, False]


def kept_by(put, count):
    """Hand results over while the first one is being kept, and return what became of them."""
    gate, said = Gate(), []

    def first_waits(outcomes):
        if outcomes == ["0"]:
            gate.pass_through()
        put(outcomes)

    keeper = ResultKeeper(
        first_waits,
        lambda one: said.append((one, "ok")),
        lambda one, error: said.append((one, error)),
    )
    keeper.keep("0")
    gate.wait_for(1)
    for number in range(1, count):
        keeper.keep(str(number))
    gate.open()
    keeper.close()
    return said


def test_results_that_come_meanwhile_are_kept_together_and_in_order():
    batches = []
    said = kept_by(batches.append, 600)
    assert said == [(str(number), "ok") for number in range(600)]
    assert [len(one) for one in batches] == [1, 500, 99]


def test_results_that_cannot_be_kept_are_refused_each():
    error = PlanError("lost", code="CA6202")

    def refuse(_):
        raise error

    assert kept_by(refuse, 3) == [("0", error), ("1", error), ("2", error)]


def test_references_are_found_wherever_they_stand():
    one = Node(
        name="x",
        actor=LlmActor("m", "${nodes.a.output}"),
        needs=("a", "b", "c", "d"),
        inputs={"deep": {"list": ["${nodes.b.output}"]}},
        for_each=ForEach(over="${nodes.c.output}"),
        when="nodes.d.output == 1 and nodes.a.output",
    )
    assert references_in(one) == ("c", "d", "a", "b")


def test_nested_inputs_and_optional_fields_are_filled(world):
    built = []
    world.build = lambda value: built.append(value) or FunctionActor(lambda one: one.inputs)
    result = world.runner.run(
        plan(
            Node(
                name="a",
                actor=LlmActor("m", "Do ${inputs.deep.list.0}"),
                inputs={"deep": {"list": ["${plan.goal}", 1]}},
            )
        ),
        "p",
    )
    assert result.outputs == {"a": {"deep": {"list": ["try it", 1]}}}
    assert built == [LlmActor("m", "Do try it")]


# -- fan-out whose items cannot be known -----------------------------------------------------


def fanning(over="${nodes.scan.output}"):
    return node("port", "scan", for_each=ForEach(over=over))


def test_person_may_skip_a_fan_out_whose_items_are_not_known(world):
    world.actors["scan"] = lambda _: 3
    world.options["ask"] = lambda _: Answer(Action.SKIP)
    result = world.runner.run(plan(node("scan"), fanning(), node("last", "port")), "p")
    assert result.outputs == {"scan": 3, "port": None, "last": "last"}


def test_planner_may_repair_a_fan_out_whose_items_are_not_known(world):
    world.actors["scan"] = lambda _: 3
    world.options["replan"] = lambda _: fanning(over=["x", "y"])
    result = world.runner.run(plan(node("scan"), fanning()), "p")
    assert result.outputs["port"] == ["port", "port"]
    assert result.exit_code == 0


def test_failed_fan_out_goes_on_when_its_items_are_known_later(world):
    world.actors["scan"] = lambda _: 3
    first = world.runner.run(plan(node("scan"), fanning()), "p")
    assert first.exit_code == 1
    book = world.journal.take("p", lambda _: None)
    book.put(NodeRecord(id="scan", node="scan", state=NodeState.DONE, attempt=1, output=[1]))
    book.close()
    second = world.runner.resume("p")
    assert second.exit_code == 0
    assert second.outputs["port"] == ["port"]


# -- rare moments ----------------------------------------------------------------------------


def bump_fence(world):
    """Do what a process does that takes the plan over."""
    world.store.write(lambda tx: tx.execute("UPDATE plan_jobs SET fence = fence + 1"))


def test_run_that_lost_its_plan_stops_its_attempts_and_says_so(world):
    def work(attempt):
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        bump_fence(world)
        assert stopped.wait(10)
        attempt.stop.raise_if_stopped()

    world.actors["a"] = work
    with pytest.raises(PlanError) as caught:
        world.runner.run(plan(node("a"), node("b", "a")), "p")
    assert caught.value.code == "CA6202"
    assert world.ran("b") == []
    assert world.journal.get("p").state is PlanState.RUNNING


def test_result_of_a_run_that_lost_its_plan_is_not_kept(world):
    world.actors["a"] = lambda _: bump_fence(world)
    with pytest.raises(PlanError) as caught:
        world.runner.run(plan(node("a"), node("b", "a")), "p")
    assert caught.value.code == "CA6202"
    assert {one.state for one in world.journal.nodes("p")} == {NodeState.RUNNING}


def test_plan_with_nothing_to_do_is_done(world):
    assert world.runner.run(plan(node("a", when="false")), "p").exit_code == 0


def test_timer_of_an_attempt_that_has_ended_does_nothing(world):
    world.actors["slow"] = lambda _: threading.Event().wait(0.1) and None
    result = world.runner.run(plan(node("a", timeout_s=0.02), node("slow")), "p")
    assert result.exit_code == 0


def test_attempt_is_not_given_up_for_the_delay_of_an_earlier_one(world):
    def work(attempt):
        if attempt.attempt > 1:
            threading.Event().wait(0.2)
            return
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        assert stopped.wait(10)
        attempt.stop.raise_if_stopped()

    world.options["grace_s"] = 0.1
    world.actors["a"] = work
    result = world.runner.run(plan(node("a", timeout_s=0.15, attempts_max=2)), "p")
    assert result.nodes["a"].state is NodeState.FAILED
    assert result.left_behind == 0


def test_attempt_that_is_being_ended_by_its_worker_is_not_given_up(world):
    """Its actor is done, and a check of ours is on its way out."""

    def command(_, stop):
        stopped = threading.Event()
        stop.when_stopped(lambda _: stopped.set())
        assert stopped.wait(10)
        threading.Event().wait(0.2)
        return Finished(0, None, b"", b"", 0.0, "cancelled")

    world.workbench.command = command
    result = world.runner.run(
        plan(node("a", timeout_s=0.05, attempts_max=1, check=Check("x"))), "p"
    )
    assert result.nodes["a"].error["code"] == "CA2201"
    assert result.left_behind == 0


def test_changes_that_cannot_be_sealed_and_sandboxes_that_cannot_be_given_back_hurt_nobody(world):
    class Stubborn(type(world.workbench.open("p", "x", 1, actor=None))):
        def seal(self):
            raise OSError("disk")

        def close(self):
            raise OSError("disk")

    world.workbench.open = lambda *about, actor: Stubborn(world.workbench, (*about, actor))
    world.actors["a"] = lambda _: 1 / 0
    result = world.runner.run(plan(node("a", attempts_max=1)), "p")
    assert result.nodes["a"].error["message"] == "division by zero"


def test_plan_that_was_revised_meanwhile_is_run_as_it_is_now(world):
    old, new = plan(node("a")), plan(node("a", inputs={"x": 1}))
    world.runner.add(old, "p")
    get = world.journal.get
    world.journal.get = lambda plan_id: _revised(world, get(plan_id), new)
    world.actors["a"] = lambda attempt: attempt.inputs
    assert world.runner.resume("p").outputs == {"a": {"x": 1}}


def _revised(world, known, new):
    world.store.write(
        lambda tx: tx.execute("UPDATE plans SET source = ?, digest = 'new'", (source_of(new),))
    )
    return known


def test_run_that_must_end_at_once_does_not_wait_for_a_person(world):
    gate, opened = Gate(30), []
    world.options["on_open"] = opened.append

    def ask(_):
        opened[0].request_stop()
        opened[0].request_stop()
        gate.pass_through()
        return Answer(Action.RETRY)

    world.options["ask"] = ask
    world.actors["a"] = denied
    result = world.runner.run(plan(node("a")), "p")
    assert (result.state, result.left_behind) == (PlanState.CANCELLED, 1)
    gate.open()


def denied(_):
    raise PermissionError("no")


def test_merge_under_way_is_not_given_up_by_a_hard_stop(world):
    """Its result is kept: to forget it would make the same edit twice."""
    opened, stopped = [], threading.Event()
    world.options |= {"on_open": opened.append, "grace_s": 0.01}
    plan_id = world.runner.add(plan(node("a")))
    bench = world.workbench.open(plan_id, "a", 1, actor=None)
    bench.files.write("a.txt", b"1")
    book = world.journal.take(plan_id, lambda _: None)
    book.put(
        NodeRecord(
            id="a", node="a", state=NodeState.MERGING, attempt=1, output=7, changeset=bench.seal()
        )
    )
    book.close()
    merge = world.workbench.merge

    def slow(changeset_id):
        opened[0].request_stop()
        opened[0].request_stop()
        stopped.wait(0.1)
        return merge(changeset_id)

    world.workbench.merge = slow
    result = world.runner.resume(plan_id)
    assert (result.state, result.outputs) == (PlanState.DONE, {"a": 7})
    assert world.ran("a") == []


def test_actor_that_talks_a_lot_is_heard_in_full(world):
    """In portions, so that the clock is looked at in between."""
    gate, lines = Gate(30), []

    def talk(attempt):
        for number in range(1_500):
            attempt.log(str(number))
        gate.open()

    def listen(event):
        if isinstance(event, LogLine):
            gate.pass_through()
            lines.append(event.text)

    world.options["listener"] = listen
    world.actors["a"] = talk
    assert world.runner.run(plan(node("a")), "p").exit_code == 0
    assert lines == [str(number) for number in range(1_500)]
