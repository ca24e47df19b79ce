"""Nodes run when what they need is done, see its outputs, and end as the plan says."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest

from cleveragents.application.attempts import Recorded
from cleveragents.application.run_journal import NodeRecord, PlanState, plan_of, source_of
from cleveragents.application.services.attempt_order import Answer, actor_name
from cleveragents.application.services.plan_progress import PlanProgress
from cleveragents.domain.budget import Limit
from cleveragents.domain.command import Finished
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import PlanError, RequestError, SandboxError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import (
    Budget,
    Check,
    CommandActor,
    DeleteStep,
    ForEach,
    LlmActor,
    Node,
    NodeBudget,
    OnFailure,
    PrintStep,
    Recovery,
    ScriptedActor,
)
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import (
    AttemptFailed,
    LogLine,
    NodeFinished,
    NodeStarted,
    PlanEnded,
    PlanStarted,
    SpendChanged,
)
from cleveragents.domain.stop_signal import Stopped
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.testing import Gate
from runkit import FunctionActor, World, node, plan


@pytest.fixture
def world(tmp_path):
    with Store(tmp_path / "state.db") as store, DurableCostTracker(store) as tracker:
        yield World(store, tracker)


def failing(*messages, then="fine", category=ErrorCategory.TOOL_CRASH):
    """An actor that fails once with each message, and then does it."""
    left = list(messages)

    def work(_):
        if left:
            raise SandboxError(left.pop(0), code="CA5206", facts={"category": category})
        return then

    return work


def always(category=ErrorCategory.TOOL_CRASH):
    def work(_):
        raise SandboxError("never works", code="CA5206", facts={"category": category})

    return work


# -- order, inputs, outputs ------------------------------------------------------------------


def test_dependants_start_after_what_they_need_and_see_its_output(world):
    seen = {}
    world.actors["b"] = lambda attempt: seen.update(attempt.inputs) or {"n": 2}
    result = world.runner.run(
        plan(
            node("a"),
            node(
                "b", "a", inputs={"text": "<${nodes.a.output}>", "list": [1, "${nodes.a.output}"]}
            ),
            node("c", "b"),
        ),
        "p",
    )
    assert (result.state, result.exit_code) == (PlanState.DONE, 0)
    assert seen == {"text": "<a>", "list": [1, "a"]}
    assert result.outputs == {"a": "a", "b": {"n": 2}, "c": "c"}
    assert [name for name, _ in world.attempts] == ["a", "b", "c"]


def test_attempt_gets_the_node_with_its_templates_filled(world):
    built, nodes = [], []

    def build(value):
        built.append(value)
        return FunctionActor(lambda attempt: nodes.append(attempt.node))

    world.build = build
    actor = CommandActor(("echo", "${inputs.n}", "$${HOME}", "plain"))
    shell = CommandActor("echo $HOME", shell=True)
    world.runner.run(
        plan(
            Node(name="a", actor=actor, inputs={"n": 3}, env={"GOAL": "${plan.goal}"}),
            Node(name="b", actor=shell, needs=("a",)),
            Node(
                name="c",
                actor=ScriptedActor((PrintStep("<${plan.goal}>"), DeleteStep("x"))),
                needs=("b",),
            ),
        ),
        "p",
    )
    assert built[0] == CommandActor(("echo", "3", "${HOME}", "plain"))
    assert built[1] is shell
    assert built[2].steps[0].text == "<try it>"
    assert dict(nodes[0].env) == {"GOAL": "try it"}
    assert dict(nodes[0].inputs) == {"n": 3}


def test_an_attempt_cannot_change_what_another_one_sees(world):
    world.actors["a"] = lambda _: [1]
    world.actors["b"] = lambda attempt: attempt.inputs["list"].append(2)
    world.actors["c"] = lambda attempt: attempt.inputs["list"]
    wish = {"list": "${nodes.a.output}"}
    result = world.runner.run(
        plan(node("a"), node("b", "a", inputs=wish), node("c", "a", "b", inputs=wish)), "p"
    )
    assert result.outputs["c"] == [1]


def test_fan_out_runs_once_for_each_item_and_joins_in_declared_order(world):
    gate = Gate()
    world.actors["scan"] = lambda _: ["x", "y", "z"]

    def port(attempt):
        # The first to come ends last.
        if attempt.instance == "port[0]":
            gate.pass_through()
        else:
            gate.wait_for(1)
            if attempt.instance == "port[2]":
                gate.open()
        return attempt.inputs["item"] * 2

    world.actors["port"] = port
    each = ForEach(over="${nodes.scan.output}")
    result = world.runner.run(
        plan(
            node("scan"),
            node("port", "scan", for_each=each, inputs={"item": "${item}"}),
            node("join", "port"),
        ),
        "p",
    )
    assert result.outputs["port"] == ["xx", "yy", "zz"]
    assert result.in_state(NodeState.DONE) == ("scan", "port[0]", "port[1]", "port[2]", "join")


def test_fan_out_over_nothing_is_done_at_once(world):
    result = world.runner.run(plan(node("a", for_each=ForEach(over=[])), node("b", "a")), "p")
    assert result.outputs == {"a": [], "b": "b"}


def test_condition_that_does_not_hold_skips_the_node_and_dependants_see_null(world):
    world.actors["c"] = lambda attempt: attempt.inputs
    result = world.runner.run(
        plan(
            node("a", inputs={"go": False}, when="inputs.go"),
            node("c", "a", inputs={"a": "${nodes.a.output}"}),
        ),
        "p",
    )
    assert world.ran("a") == []
    assert result.nodes["a"].state is NodeState.SKIPPED
    assert result.outputs["c"] == {"a": None}


def test_condition_and_items_that_cannot_be_found_out_fail_the_node(world):
    world.actors["scan"] = lambda _: 3
    result = world.runner.run(
        plan(
            node("scan"),
            node("port", "scan", for_each=ForEach(over="${nodes.scan.output}")),
            node("when", "scan", when='nodes.scan.output > "text"'),
            on_failure=OnFailure.CONTINUE,
        ),
        "p",
    )
    assert result.in_state(NodeState.FAILED) == ("port", "when")
    assert result.nodes["port"].error["code"] == "CA1101"
    assert world.ran("port") == world.ran("when") == []


def test_at_most_at_once_attempts_run_at_the_same_time(world):
    running, most, lock = [0], [0], threading.Lock()
    barrier = threading.Barrier(3)

    def work(_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        barrier.wait(10)
        with lock:
            running[0] -= 1

    names = [f"n{i}" for i in range(9)]
    world.actors |= dict.fromkeys(names, work)
    assert world.runner.run(plan(*map(node, names), at_once=3), "p").exit_code == 0
    assert most[0] == 3


@pytest.mark.long
def test_ten_thousand_nodes_in_a_row_are_no_burden_to_the_bookkeeping():
    names = [f"n{i}" for i in range(10_000)]
    long = plan(node(names[0]), *(node(one, before) for before, one in pairwise(names)))
    kept = {
        name: NodeRecord(id=name, node=name, state=NodeState.DONE, output=1) for name in names[:-1]
    }
    progress = PlanProgress(long, kept)
    assert [one.instance.id for one in progress.ready] == [names[-1]]
    assert progress.settled == 9_999


def test_output_that_json_cannot_hold_fails_the_attempt(world):
    world.actors["a"] = lambda _: {"set": {1}}
    world.actors["b"] = lambda _: float("nan")
    world.actors["c"] = lambda _: "x" * 10_000_001
    result = world.runner.run(
        plan(node("a"), node("b"), node("c"), on_failure=OnFailure.CONTINUE), "p"
    )
    assert {one.error["code"] for one in result.nodes.values()} == {"CA4202"}


def test_plan_survives_its_way_through_json():
    whole = plan(
        node("a", inputs={"x": [1, {"y": None}]}, budget=NodeBudget(max_usd=0.1)),
        node("b", "a", when="nodes.a.output == 1", check=Check("true")),
        budget=Budget(max_usd=1),
    )
    assert plan_of(source_of(whole)) == whole


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (CommandActor("pytest -q"), "command:pytest"),
        (CommandActor("make | tee log", shell=True), "command:make"),
        (LlmActor("anthropic:sonnet", "hi"), "llm:anthropic:sonnet"),
        (ScriptedActor(()), "scripted"),
    ],
)
def test_actor_is_named_by_what_it_is(value, name):
    assert actor_name(value) == name


# -- files -----------------------------------------------------------------------------------


def test_changes_are_merged_before_a_dependant_starts(world):
    world.actors["a"] = lambda attempt: attempt.files.write("a.txt", b"1")
    world.actors["b"] = lambda attempt: attempt.files.read("a.txt").decode()
    result = world.runner.run(plan(node("a"), node("b", "a")), "p")
    assert result.outputs["b"] == "1"
    assert world.workbench.tree == {"a.txt": b"1"}


def test_attempt_that_touches_no_file_makes_no_changeset(world):
    world.runner.run(plan(node("a")), "p")
    assert world.workbench.sealed == {}
    assert all(bench.closed for bench in world.workbench.benches)


def test_changes_of_a_failed_attempt_are_sealed_and_rejected(world):
    def work(attempt):
        attempt.files.write("a.txt", str(attempt.attempt).encode())
        if attempt.attempt == 1:
            raise SandboxError("no", code="CA5206", facts={"category": ErrorCategory.TOOL_CRASH})

    world.actors["a"] = work
    world.runner.run(plan(node("a")), "p")
    assert world.workbench.states == {"c-1": "rejected", "c-2": "merged"}
    assert world.workbench.tree == {"a.txt": b"2"}


def test_node_that_writes_where_it_must_not_fails_and_nothing_is_merged(world):
    world.actors["a"] = lambda attempt: attempt.files.write("docs/a.md", b"1")
    result = world.runner.run(plan(node("a", writes=("src/**",), attempts_max=1)), "p")
    assert result.nodes["a"].error["code"] == "CA4201"
    assert world.workbench.tree == {}


def test_node_that_writes_where_it_may_is_done(world):
    world.actors["a"] = lambda attempt: attempt.files.write("src/x/a.py", b"1")
    assert world.runner.run(plan(node("a", writes=("src/**",))), "p").exit_code == 0


def test_failed_check_is_told_to_the_next_attempt_and_a_passed_one_ends_it(world):
    codes = [1, 0]
    world.workbench.command = lambda _, __: Finished(codes.pop(0), None, b"red", b"tests", 0.1)
    heard = []
    world.actors["a"] = lambda attempt: heard.append(attempt.feedback)
    result = world.runner.run(plan(node("a", check=Check("pytest -q"))), "p")
    assert result.exit_code == 0
    assert heard[0] == ()
    assert "exit code 1" in heard[1][0]
    assert "redtests" in heard[1][0]
    assert result.nodes["a"].feedback == ()


@pytest.mark.parametrize("stopped", ["time", "output"])
def test_check_that_did_not_end_by_itself_is_a_failure(world, stopped):
    world.workbench.command = lambda _, __: Finished(0, None, b"", b"", 0.1, stopped)
    result = world.runner.run(plan(node("a", attempts_max=1, check=Check("x y", shell=True))), "p")
    assert result.nodes["a"].error["code"] == "CA4203"


def test_check_that_cannot_be_started_is_a_failure(world):
    def refuse(*_):
        raise SandboxError("no such program", code="CA5008")

    world.workbench.command = refuse
    result = world.runner.run(plan(node("a", attempts_max=1, check=Check("nothing"))), "p")
    assert result.nodes["a"].error["code"] == "CA5008"


# -- conflicts -------------------------------------------------------------------------------


def crossing(world, times):
    """Let a node find that others changed its file meanwhile, so many times."""
    left = [times]

    def work(attempt):
        attempt.files.write("a.txt", b"mine")
        if left[0]:
            left[0] -= 1
            world.workbench.tree["a.txt"] = str(left[0]).encode()

    world.actors["a"] = work


def test_conflict_runs_the_node_again_on_the_new_tree(world):
    crossing(world, 1)
    result = world.runner.run(plan(node("a")), "p")
    assert result.exit_code == 0
    assert world.ran("a") == [1, 2]
    assert world.workbench.states == {"c-1": "rejected", "c-2": "merged"}
    assert world.workbench.tree == {"a.txt": b"mine"}


def test_conflict_that_stays_waits_for_a_person_and_goes_on_when_resolved(world):
    crossing(world, 1)
    world.actors["b"] = lambda attempt: attempt.files.read("a.txt").decode()
    result = world.runner.run(plan(node("a", attempts_max=1), node("b", "a")), "p")
    assert (result.state, result.exit_code) == (PlanState.FAILED, 5)
    assert result.needs_person == ("a",)
    assert result.blocked == ("b",)
    assert world.workbench.states == {"c-1": "conflicted"}
    again = world.runner.resume("p")
    assert (again.exit_code, world.ran("a")) == (5, [1])
    world.workbench.resolved.add("c-1")
    final = world.runner.resume("p")
    assert (final.exit_code, final.outputs["b"]) == (0, "mine")
    assert world.ran("a") == [1]


def test_conflicted_changes_that_a_person_rejected_are_made_anew(world):
    crossing(world, 1)
    world.runner.run(plan(node("a", attempts_max=1)), "p")
    world.workbench.reject("c-1")
    assert world.runner.resume("p").exit_code == 0
    assert world.ran("a") == [1, 2]


# -- recovery --------------------------------------------------------------------------------


def test_failure_is_retried_and_told_with_its_decision(world):
    world.actors["a"] = failing("broken")
    assert world.runner.run(plan(node("a"), node("b", "a")), "p").exit_code == 0
    (failed,) = world.told(AttemptFailed)
    assert (failed.code, failed.action, failed.attempt) == ("CA5206", Action.RETRY, 1)
    assert world.ran("a") == [1, 2]
    assert world.errors.history("p").count == 1


def test_waiting_for_a_retry_holds_no_slot(world):
    gate = Gate()
    world.errors._settings = world.errors._settings.__class__(
        policy=world.errors._settings.policy.__class__(backoff_s=0.2, backoff_s_max=0.2)
    )
    world.errors._chance = lambda: 0.9
    world.actors["a"] = failing("broken")
    world.actors["b"] = lambda _: gate.open()
    result = world.runner.run(plan(node("a"), node("b"), at_once=1), "p")
    assert result.exit_code == 0
    order = [one.node for one in world.told(NodeStarted)]
    assert order == ["a", "b", "a"]


def recording(world, then=lambda _: None):
    """An actor that records its fault itself, and fails with it."""

    def work(attempt):
        error = ConnectionRefusedError("no route")
        record = world.errors.record_error("p", error, node="a", provider="o", model="m")
        attempt.hand_over(Recorded(error, record))
        then(attempt)
        raise error

    return work


def test_fault_that_its_actor_recorded_is_decided_about_and_not_recorded_again(world):
    world.actors["a"] = recording(world)
    result = world.runner.run(plan(node("a", attempts_max=2)), "p")
    history = world.errors.history("p")
    assert [one.action for one in history.decisions] == [Action.RETRY, Action.ASK]
    assert (history.count, history.undecided) == (2, ())
    assert result.nodes["a"].error["message"] == history.records[-1].message


@pytest.mark.parametrize("is_left_behind", [False, True])
def test_fault_of_an_attempt_that_is_stopped_meanwhile_is_decided_about_too(world, is_left_behind):
    gate = Gate(30)

    def until_stopped(attempt):
        if not is_left_behind:
            attempt.stop.when_stopped(lambda _: gate.open())
        gate.pass_through()

    world.actors["a"] = recording(world, until_stopped)
    world.runner.run(plan(node("a", timeout_s=0.05, attempts_max=1)), "p")
    gate.open()
    for thread in threading.enumerate():
        if thread.name.startswith("ca-attempts"):
            thread.join(10)
    history = world.errors.history("p")
    assert [one.category for one in history.records] == [
        ErrorCategory.CONNECT,
        ErrorCategory.TOOL_TIMEOUT,
    ]
    assert history.undecided == ()


def test_attempts_max_ends_retries_and_says_so(world):
    world.actors["a"] = failing("1", "2", "3", category=ErrorCategory.CHECK_FAILED)
    result = world.runner.run(plan(node("a", attempts_max=2)), "p")
    assert world.ran("a") == [1, 2]
    assert "all 2 attempts are used" in result.nodes["a"].error["reason"]
    assert result.needs_person == ("a",)
    assert "needs a person" in result.error["message"]


def test_recovery_of_the_node_goes_before_the_usual_one(world):
    skip = Recovery(cures={ErrorCategory.TOOL_CRASH: (Action.SKIP,)})
    never = Recovery(times_max={Action.RETRY: 0})
    often = Recovery(times_max={Action.RETRY: 4})
    world.actors["skip"] = always()
    world.actors["never"] = always()
    world.actors["often"] = failing(*"1234")
    result = world.runner.run(
        plan(
            node("skip", recovery=skip),
            node("never", recovery=never),
            node("often", recovery=often, attempts_max=9),
            on_failure=OnFailure.CONTINUE,
        ),
        "p",
    )
    assert result.nodes["skip"].state is NodeState.SKIPPED
    assert world.ran("never") == [1]
    assert world.ran("often")[-1] >= 4


def test_fall_back_is_taken_where_the_actor_has_one(world):
    world.actors["a"] = always(ErrorCategory.QUOTA)
    world.fall_backs["a"] = lambda _: "by the other"
    result = world.runner.run(plan(node("a"), node("b")), "p")
    assert result.outputs["a"] == "by the other"


def test_person_is_asked_and_the_answer_is_carried_out(world):
    answers = {
        "again": Answer(Action.RETRY, "try harder"),
        "skip": Answer(Action.SKIP),
        "stop": Answer(),
    }
    asked = []
    heard = []

    def ask(question):
        asked.append(question.node)
        return answers[question.node]

    def again(attempt):
        heard.append(attempt.feedback)
        if len(heard) == 1:
            raise PermissionError("denied")

    world.options["ask"] = ask
    world.actors |= {"again": again, "skip": always(ErrorCategory.TOOL_DENIED)}
    world.actors["stop"] = always(ErrorCategory.TOOL_DENIED)
    result = world.runner.run(
        plan(node("again"), node("skip"), node("stop"), on_failure=OnFailure.CONTINUE), "p"
    )
    assert sorted(asked) == ["again", "skip", "stop"]
    assert heard[1][-1] == "try harder"
    states = {name: str(one.state) for name, one in result.nodes.items()}
    assert states == {"again": "done", "skip": "skipped", "stop": "failed"}


def test_person_who_raises_has_nothing_to_say(world):
    world.options["ask"] = lambda _: 1 / 0
    world.actors["a"] = always(ErrorCategory.TOOL_DENIED)
    assert world.runner.run(plan(node("a")), "p").exit_code == 1


def test_planner_puts_another_node_in_the_place_of_the_failed_one(world):
    world.options["replan"] = lambda question: node(question.node, inputs={"way": "other"})

    def work(attempt):
        if not attempt.inputs:
            raise PermissionError("denied")
        return attempt.inputs["way"]

    world.actors["a"] = work
    result = world.runner.run(plan(node("a")), "p")
    assert result.outputs == {"a": "other"}
    assert dict(plan_of(world.journal.get("p").source).nodes[0].inputs) == {"way": "other"}


@pytest.mark.parametrize("says", [None, node("b"), node("a", "a2")], ids=["none", "name", "needs"])
def test_planner_without_a_fitting_node_changes_nothing(world, says):
    world.options["replan"] = lambda _: says
    world.actors["a"] = always(ErrorCategory.TOOL_DENIED)
    result = world.runner.run(plan(node("a")), "p")
    assert (result.exit_code, world.ran("a")) == (1, [1])


def test_stop_on_failure_lets_running_ones_finish_and_starts_nothing_new(world):
    gate = Gate()

    def slow(_):
        gate.pass_through()
        return "kept"

    def bad(_):
        gate.wait_for(1)
        raise PermissionError("no")

    def listen(event):
        world.events.append(event)
        if isinstance(event, NodeFinished) and event.node == "bad":
            gate.open()

    world.options["listener"] = listen
    world.actors |= {"slow": slow, "bad": bad}
    result = world.runner.run(plan(node("slow"), node("bad"), node("late"), at_once=2), "p")
    assert result.outputs == {"slow": "kept"}
    assert world.ran("late") == []
    assert (result.state, result.exit_code) == (PlanState.FAILED, 1)


def test_continue_on_failure_runs_all_that_does_not_need_the_failed_one(world):
    world.actors["bad"] = always(ErrorCategory.TOOL_DENIED)
    result = world.runner.run(
        plan(node("bad"), node("behind", "bad"), node("free"), on_failure=OnFailure.CONTINUE), "p"
    )
    assert result.outputs == {"free": "free"}
    assert result.blocked == ("behind",)


def test_failed_nodes_are_tried_again_by_resume_and_finished_ones_are_not(world):
    world.actors["bad"] = failing("1", category=ErrorCategory.TOOL_DENIED)
    first = world.runner.run(plan(node("good"), node("bad", "good"), node("last", "bad")), "p")
    assert first.exit_code == 1
    second = world.runner.resume("p")
    assert second.exit_code == 0
    assert world.ran("good") == [1]
    assert world.ran("bad") == [1, 2]
    assert world.runner.resume("p").outputs == second.outputs
    assert world.ran("last") == [1]


# -- money -----------------------------------------------------------------------------------


def spend(amount):
    return lambda attempt: attempt.purse.reserve(amount).settle(amount) and None


def test_budget_refusal_stops_the_plan_and_a_higher_budget_goes_on(world):
    world.actors |= {"a": spend(0.06), "b": spend(0.06)}
    told = plan(node("a"), node("b", "a"), node("c", "b"), budget=Budget(max_usd=0.1))
    result = world.runner.run(told, "p")
    assert (result.state, result.exit_code) == (PlanState.FAILED, 4)
    assert world.ran("b") == [1]
    assert result.error["code"] == "CA2103"
    assert world.runner.resume("p").exit_code == 4
    world.tracker.set_limit(Limit("plan", 1, name="p"))
    assert world.runner.resume("p").exit_code == 0
    assert world.ran("a") == [1]
    assert world.tracker.balance("plan", "p").spent == Money.of("0.12")


@pytest.mark.parametrize(
    "cures",
    [(Action.SKIP,), (Action.RETRY,), (Action.FEEDBACK, Action.FALL_BACK), (Action.REPLAN,)],
    ids="-".join,
)
def test_no_recovery_lets_a_plan_without_money_end_as_done(world, cures):
    """Nodes that the budget stopped did not run: only a larger budget may run or pass them."""
    world.options |= {"ask": lambda _: Answer(Action.SKIP), "replan": lambda _: node("b")}
    world.actors |= {"a": spend(0.06), "b": spend(0.06)}
    world.fall_backs["b"] = lambda _: "cheap"
    own = Recovery(cures={ErrorCategory.BUDGET: cures})
    told = plan(
        node("a"),
        node("b", "a", recovery=own),
        node("c", "a"),
        at_once=1,
        on_failure=OnFailure.CONTINUE,
        budget=Budget(max_usd=0.1),
    )
    result = world.runner.run(told, "p")
    assert (result.state, result.exit_code) == (PlanState.FAILED, 4)
    assert result.in_state(NodeState.FAILED) == ("b",)
    assert "only more money helps" in result.nodes["b"].error["reason"]
    assert (world.ran("b"), world.ran("c")) == ([1], [])
    world.tracker.set_limit(Limit("plan", 1, name="p"))
    assert world.runner.resume("p").exit_code == 0
    assert (world.ran("b"), world.ran("c")) == ([1, 2], [1])


def test_person_is_not_asked_about_a_budget_and_the_rest_is_not_started(world):
    """Whoever runs the plan set the budget: to raise it is a command, and no answer."""
    asked = []
    world.options["ask"] = lambda question: asked.append(question) or Answer(Action.SKIP)
    world.actors["a"] = spend(1)
    told = plan(
        node("a"), node("b"), at_once=1, on_failure=OnFailure.CONTINUE, budget=Budget(max_usd=0.1)
    )
    assert world.runner.run(told, "p").exit_code == 4
    assert (asked, world.ran("b")) == ([], [])


def test_budget_of_a_node_holds_for_all_its_attempts(world):
    def work(attempt):
        attempt.purse.reserve(0.04).settle(0.04)
        raise SandboxError("no", code="CA5206", facts={"category": ErrorCategory.CHECK_FAILED})

    world.actors["a"] = work
    result = world.runner.run(plan(node("a", budget=NodeBudget(max_usd=0.1), attempts_max=9)), "p")
    assert result.exit_code == 4
    assert world.tracker.balance("label", "node=p/a").spent == Money.of("0.08")


def test_spending_and_lines_are_told(world):
    def work(attempt):
        attempt.purse.record(0.01, model="m")
        with attempt.purse.reserve(0.05) as held:
            held.settle(0.02)
        attempt.purse.reserve(0.05).release()
        attempt.log("hello")

    world.actors["a"] = work
    world.runner.run(plan(node("a")), "p", session="s")
    assert [one.amount for one in world.told(SpendChanged)] == [Money.of("0.01"), Money.of("0.02")]
    assert [one.text for one in world.told(LogLine)] == ["hello"]
    assert world.tracker.balance("session", "s").spent == Money.of("0.03")
    assert world.tracker.balance("actor", "python:kit:a").spent == Money.of("0.03")
    with world.store.read() as connection:
        kinds = [row[0] for row in connection.execute("SELECT kind FROM events WHERE plan = 'p'")]
    assert [one for one in kinds if one.startswith(("plan.", "node."))] == [
        "plan.added",
        "plan.running",
        "node.started",
        "node.log",
        "node.done",
        "plan.done",
    ]


# -- time and stopping -----------------------------------------------------------------------


def test_attempt_out_of_time_is_asked_to_stop_and_fails(world):
    def work(attempt):
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        assert stopped.wait(10)
        attempt.stop.raise_if_stopped()

    world.actors["a"] = work
    result = world.runner.run(plan(node("a", timeout_s=0.02, attempts_max=1)), "p")
    assert result.nodes["a"].error["code"] == "CA2201"
    assert result.nodes["a"].error["category"] == "tool.timeout"
    assert (result.exit_code, result.left_behind) == (1, 0)


def test_result_that_comes_after_the_time_does_not_count(world):
    def work(attempt):
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        assert stopped.wait(10)
        attempt.files.write("a.txt", b"late")
        return "late"

    world.actors["a"] = work
    result = world.runner.run(plan(node("a", timeout_s=0.02, attempts_max=1)), "p")
    assert result.nodes["a"].state is NodeState.FAILED
    assert world.workbench.tree == {}


def test_attempt_that_ignores_its_stop_is_left_behind_and_cannot_do_harm_later(world):
    gate = Gate(30)
    ended = threading.Event()

    def work(attempt):
        if attempt.attempt == 1:
            gate.pass_through()
            attempt.files.write("a.txt", b"from the dead")
            ended.set()
        else:
            attempt.files.write("a.txt", b"second")
        return attempt.attempt

    world.actors["a"] = work
    # Long enough for the second attempt on a slow machine.
    result = world.runner.run(plan(node("a", timeout_s=0.5)), "p")
    assert result.outputs == {"a": 2}
    assert result.left_behind == 1
    assert "left behind" in world.told(AttemptFailed)[0].message
    gate.open()
    assert ended.wait(10)
    for thread in threading.enumerate():
        if thread.name.startswith("ca-attempts"):
            thread.join(10)
    assert world.workbench.tree == {"a.txt": b"second"}
    assert sorted(world.workbench.states.values()) == ["merged", "rejected"]
    assert world.errors.history("p").count == 1
    assert world.journal.nodes("p")[0].state is NodeState.DONE


def test_plan_past_its_deadline_stops_all_attempts_and_can_go_on(world):
    calm = threading.Event()

    def work(attempt):
        if attempt.attempt == 1:
            stopped = threading.Event()
            attempt.stop.when_stopped(lambda _: stopped.set())
            assert stopped.wait(10)
            attempt.stop.raise_if_stopped()
        calm.set()

    world.actors["a"] = work
    result = world.runner.run(plan(node("a"), deadline_s=0.05), "p")
    assert (result.state, result.exit_code) == (PlanState.FAILED, 4)
    assert result.error["code"] == "CA2201"
    assert result.nodes["a"].state is NodeState.WAITING
    assert world.runner.resume("p").exit_code == 0


@pytest.mark.parametrize("state", [PlanState.CANCELLED, PlanState.PAUSED])
def test_first_request_to_stop_lets_attempts_finish_and_keeps_what_is_done(world, state):
    gate = Gate()
    opened = []
    world.options["on_open"] = opened.append

    def work(_):
        gate.pass_through()
        return "kept"

    def stop():
        gate.wait_for(1)
        opened[0].request_stop(state)
        gate.open()

    world.actors["a"] = work
    thread = threading.Thread(target=stop)
    thread.start()
    result = world.runner.run(plan(node("a"), node("b", "a")), "p")
    thread.join()
    assert (result.state, result.exit_code) == (state, 130)
    assert result.outputs == {"a": "kept"}
    assert world.runner.resume("p").exit_code == 0
    assert world.ran("a") == [1]


def test_second_request_to_stop_stops_attempts_and_they_are_run_again_later(world):
    gate = Gate()
    opened = []
    world.options["on_open"] = opened.append

    def work(attempt):
        if attempt.attempt > 1:
            return "later"
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        gate.pass_through()
        assert stopped.wait(10)
        raise Stopped

    def stop():
        gate.wait_for(1)
        gate.open()
        opened[0].request_stop()
        opened[0].request_stop()

    world.actors["a"] = work
    thread = threading.Thread(target=stop)
    thread.start()
    result = world.runner.run(plan(node("a")), "p")
    thread.join()
    assert (result.state, result.exit_code) == (PlanState.CANCELLED, 130)
    assert result.nodes["a"].state is NodeState.WAITING
    assert world.told(AttemptFailed) == []
    assert world.runner.resume("p").outputs == {"a": "later"}


def test_interrupt_of_the_coordinating_thread_stops_the_attempts(world):
    def work(attempt):
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        assert stopped.wait(10)
        attempt.stop.raise_if_stopped()

    def listen(event):
        if isinstance(event, NodeStarted):
            raise KeyboardInterrupt

    world.options["listener"] = listen
    world.actors["a"] = work
    with pytest.raises(KeyboardInterrupt):
        world.runner.run(plan(node("a"), node("b")), "p")
    world.options["listener"] = None
    world.actors["a"] = lambda _: "fine"
    assert world.runner.resume("p").exit_code == 0


def test_store_that_cannot_be_written_ends_the_run_with_its_error(world):
    def merge(_):
        raise PlanError("out of reach", code="CA4105")

    world.workbench.merge = merge
    world.actors["a"] = lambda attempt: attempt.files.write("a.txt", b"1")
    with pytest.raises(PlanError, match="out of reach"):
        world.runner.run(plan(node("a")), "p")
    del world.workbench.merge
    assert world.runner.resume("p").exit_code == 0
    assert world.ran("a") == [1]
    assert world.workbench.tree == {"a.txt": b"1"}


# -- the plan itself -------------------------------------------------------------------------


def test_events_tell_the_whole_story_in_order(world):
    world.runner.run(plan(node("a")), "p")
    kinds = [type(one) for one in world.events]
    assert kinds == [PlanStarted, NodeStarted, NodeFinished, PlanEnded]


def test_plan_of_another_content_cannot_take_a_name_that_is_there(world):
    world.runner.add(plan(node("a")), "p")
    world.runner.add(plan(node("a")), "p")
    with pytest.raises(PlanError) as caught:
        world.runner.add(plan(node("b")), "p")
    assert caught.value.code == "CA6203"
    with pytest.raises(RequestError):
        world.journal.add(" ", "{}")


def test_draft_is_not_run(world):
    world.runner.add(plan(node("a")), "p", state=PlanState.DRAFT)
    with pytest.raises(PlanError) as caught:
        world.runner.resume("p")
    assert caught.value.code == "CA6203"
    world.journal.move("p", PlanState.READY)
    assert world.runner.resume("p").exit_code == 0


def test_interrupted_attempts_are_recorded_and_run_again(world):
    plan_id = world.runner.add(plan(node("a"), node("b")))
    book = world.journal.take(plan_id, lambda _: None)
    book.put(NodeRecord(id="a", node="a", state=NodeState.RUNNING, attempt=1))
    book.close()
    result = world.runner.resume(plan_id)
    assert result.exit_code == 0
    assert world.ran("a") == [2]
    assert world.ran("b") == [1]
    (record,) = world.errors.history(plan_id).records
    assert (record.node, record.category) == ("a", ErrorCategory.STALLED)
    assert world.workbench.salvaged == [(plan_id, frozenset())]


def test_error_whose_run_died_before_it_was_decided_gets_its_decision_at_resume(world):
    plan_id = world.runner.add(plan(node("a")))
    book = world.journal.take(plan_id, lambda _: None)
    book.put(NodeRecord(id="a", node="a", state=NodeState.RUNNING, attempt=1))
    world.errors.handle(plan_id, ValueError("decided"), node="a", attempt=1)
    died = world.errors.record_error(plan_id, ValueError("not decided"), node="a", attempt=1)
    book.close()
    assert world.errors.history(plan_id).undecided == (died,)
    assert world.runner.resume(plan_id).exit_code == 0
    history = world.errors.history(plan_id)
    assert history.undecided == ()
    assert history.count == history.decision_count == 3


@pytest.mark.parametrize("was", ["sealed", "merged"])
def test_result_that_was_kept_before_the_crash_is_merged_once_and_not_made_again(world, was):
    plan_id = world.runner.add(plan(node("a"), node("b", "a")))
    bench = world.workbench.open(plan_id, "a", 1, actor=None)
    bench.files.write("a.txt", b"1")
    changeset = bench.seal()
    book = world.journal.take(plan_id, lambda _: None)
    made = NodeRecord(
        id="a", node="a", state=NodeState.MERGING, attempt=1, output=7, changeset=changeset
    )
    book.put(made)
    if was == "merged":
        world.workbench.merge(changeset)
    book.close()
    result = world.runner.resume(plan_id)
    assert result.outputs == {"a": 7, "b": "b"}
    assert world.ran("a") == []
    assert world.workbench.merges == [changeset]
    assert world.workbench.salvaged == [(plan_id, frozenset({changeset}))]
