"""Plans on a real tree: sandboxes are made when they are needed, and only then."""

from __future__ import annotations

import threading

import pytest

from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.run_options import RunOptions
from cleveragents.bootstrap import Container
from cleveragents.domain.command import Command
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import PlanError, SandboxError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import (
    Budget,
    Check,
    CommandActor,
    EditStep,
    Node,
    Plan,
    PythonActor,
    Recovery,
    ScriptedActor,
    SpendStep,
    WriteStep,
)
from cleveragents.domain.plan_graph import NodeState
from cleveragents.runs import RunParts, Runs
from cleveragents.settings import Settings
from cleveragents.testing import Gate, run_together
from cleveragents.workspace import Workspace, WorkspaceOptions
from runkit import FunctionActor


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    options = WorkspaceOptions(sandbox_kind="copy", confinement="off")
    with Workspace(root, options=options) as workspace:
        yield workspace


def plan(*nodes, **options):
    return Plan(goal="try it", nodes=nodes, **options)


def scripted(name, *steps, needs=(), **options):
    return Node(name=name, actor=ScriptedActor(steps), needs=needs, **options)


def function(name, *needs, **options):
    return Node(name=name, actor=PythonActor(f"kit:{name}"), needs=needs, **options)


def runs_of(workspace, options=None, **functions):
    def build(value):
        return FunctionActor(functions[value.function.partition(":")[2]])

    return Runs(workspace, RunParts(build_actor=build), options)


def files_of(workspace, plan_id):
    changes = workspace.changes
    found = changes.repository.files(changes.trees.tree_of(plan_id).head)
    contents = changes.repository.read([blob.oid for blob in found.values()])
    return dict(zip(found, contents, strict=True))


def test_changes_reach_the_tree_of_the_plan_and_later_nodes(workspace):
    with Runs(workspace) as runs:
        result = runs.run(
            plan(
                scripted("a", EditStep("a.txt", "one", "two")),
                Node(name="b", actor=CommandActor("cat a.txt"), needs=("a",)),
                scripted("c", WriteStep("c.txt", "new"), check=Check("grep -q new c.txt")),
            ),
            "p",
        )
    assert result.exit_code == 0, result.error
    assert result.outputs["b"].strip() == "two"
    assert files_of(workspace, "p") == {"a.txt": b"two\n", "c.txt": b"new"}
    assert workspace.sandboxes.list("p") == ()


def test_plan_that_touches_no_file_makes_no_sandbox_and_never_looks_at_the_tree(workspace):
    with Runs(workspace) as runs:
        assert runs.run(plan(scripted("a", SpendStep(0.01))), "p").exit_code == 0
    assert workspace.sandboxes.list() == ()
    with pytest.raises(PlanError):
        workspace.changes.trees.tree_of("p")


def test_what_the_user_edits_after_the_start_is_not_in_the_base_of_the_plan(workspace):
    """The first node uses no file: the tree counts as it was when the user started the plan."""

    def edit(_):
        (workspace.changes.root / "a.txt").write_text("edited\n")
        (workspace.changes.root / "late.txt").write_text("late\n")

    def look(attempt):
        return attempt.files.read("a.txt").decode()

    with runs_of(workspace, edit=edit, look=look) as runs:
        result = runs.run(plan(function("edit"), function("look", "edit")), "p")
    assert result.outputs["look"] == "one\n"
    assert set(files_of(workspace, "p")) == {"a.txt"}


def test_tree_that_cannot_be_taken_stops_a_plan_before_any_attempt(workspace, monkeypatch):
    def refuse(_):
        raise PlanError("no tree", code="CA4108")

    with runs_of(workspace, a=lambda _: 1) as runs, monkeypatch.context() as patch:
        patch.setattr(workspace, "begin", refuse)
        with pytest.raises(PlanError, match="no tree"):
            runs.run(plan(function("a")), "p")
        assert (runs.plans()[0].state, runs.nodes("p")) == (PlanState.READY, ())


def test_tools_of_one_attempt_that_start_together_share_one_sandbox(workspace):
    def work(attempt):
        run_together(
            [lambda i=i: attempt.files.write(f"{i}.txt", b"x") for i in range(4)], timeout_s=30
        )

    with runs_of(workspace, a=work) as runs:
        assert runs.run(plan(function("a")), "p").exit_code == 0
    assert len(workspace.changes.changesets.of_plan("p")) == 1
    assert len(files_of(workspace, "p")) == 5


def test_sandbox_that_cannot_be_made_fails_the_attempt(workspace, monkeypatch):
    def refuse(*_):
        raise SandboxError("no room", code="CA5002")

    monkeypatch.setattr(workspace.sandboxes, "create", refuse)
    with runs_of(workspace, a=lambda attempt: attempt.files.read("a.txt")) as runs:
        result = runs.run(plan(function("a", attempts_max=1)), "p")
    assert result.nodes["a"].error["code"] == "CA5002"


def test_what_a_check_changes_does_not_count(workspace):
    litter = Check("touch litter.txt")
    with runs_of(
        workspace, a=lambda attempt: attempt.files.write("b.txt", b"b"), idle=lambda _: None
    ) as runs:
        result = runs.run(plan(function("a", check=litter), function("idle", check=litter)), "p")
    assert result.exit_code == 0
    assert set(files_of(workspace, "p")) == {"a.txt", "b.txt"}
    states = {one.state for one in workspace.changes.trees.merges("p")}
    assert states == {"merged", "rejected"}


def test_commands_of_an_attempt_are_ended_by_its_stop(workspace):
    lines = []

    def work(attempt):
        finished = attempt.bench.run(
            Command(("sh", "-c", "echo on; sleep 60")), stop=attempt.stop, on_output=lines.append
        )
        assert finished.stopped == "cancelled"
        attempt.stop.raise_if_stopped()

    with runs_of(workspace, a=work) as runs:
        result = runs.run(plan(function("a", timeout_s=0.5, attempts_max=1)), "p")
    assert result.nodes["a"].error["code"] == "CA2201"
    assert lines == [b"on\n"]


def crossing():
    """Return two actors that change one line, each from the tree as it was."""
    gate = Gate(30)

    def work(attempt):
        text = attempt.files.read("a.txt")
        if attempt.attempt == 1:
            gate.pass_through()
        attempt.files.write("a.txt", text.rstrip() + attempt.instance.encode() + b"\n")

    def open_gate():
        gate.wait_for(2)
        gate.open()

    thread = threading.Thread(target=open_gate)
    thread.start()
    return work, thread


def test_two_nodes_that_change_one_line_are_both_in_the_end(workspace):
    work, thread = crossing()
    with runs_of(workspace, a=work, b=work) as runs:
        result = runs.run(plan(function("a"), function("b")), "p")
    thread.join()
    assert result.exit_code == 0
    assert files_of(workspace, "p")["a.txt"] in {b"oneab\n", b"oneba\n"}
    assert all(one.state != "open" for one in workspace.changes.trees.conflicts("p"))


def test_conflict_stays_open_until_it_is_resolved_and_then_the_plan_goes_on(workspace):
    work, thread = crossing()
    ask = Recovery(cures={ErrorCategory.CONFLICT: (Action.ASK,)})
    with runs_of(workspace, a=work, b=work, last=lambda _: "end") as runs:
        told = plan(
            function("a", recovery=ask), function("b", recovery=ask), function("last", "a", "b")
        )
        result = runs.run(told, "p")
        thread.join()
        assert (result.exit_code, len(result.needs_person)) == (5, 1)
        (conflict,) = workspace.changes.trees.conflicts("p")
        workspace.changes.trees.resolve(conflict.id, b"oneboth\n")
        assert runs.resume("p").exit_code == 0
    assert files_of(workspace, "p")["a.txt"] == b"oneboth\n"


def test_higher_budget_lets_a_plan_go_on(workspace):
    with Runs(workspace) as runs:
        told = plan(
            scripted("a", SpendStep(0.06)),
            scripted("b", SpendStep(0.06), needs=("a",)),
            budget=Budget(max_usd=0.1),
        )
        assert runs.run(told, "p").exit_code == 4
        assert runs.resume("p", budget_usd_max=0.2).exit_code == 0
        assert runs.tracker.balance("plan", "p").spent == Money.of("0.12")


def test_plan_is_paused_and_cancelled_from_elsewhere(workspace):
    gate = Gate(30)

    def work(_):
        gate.pass_through()

    with runs_of(workspace, a=work, b=lambda _: None) as runs:
        told = plan(function("a"), function("b", "a"))
        results = []
        thread = threading.Thread(target=lambda: results.append(runs.run(told, "p")))
        thread.start()
        gate.wait_for(1)
        with runs_of(workspace) as others:
            others.pause("p")
            while others.journal.job("p").wish is None:
                threading.Event().wait(0.01)
        # The wish is polled: let it be heard before the attempt ends.
        threading.Event().wait(0.6)
        gate.open()
        thread.join()
        assert (results[0].state, results[0].exit_code) == (PlanState.PAUSED, 130)
        with pytest.raises(PlanError):
            runs.pause("p")
        runs.cancel("p")
        assert [one.state for one in runs.plans()] == [PlanState.CANCELLED]
        assert runs.resume("p").exit_code == 0
        runs.move("p", PlanState.APPLIED)
        with pytest.raises(PlanError) as caught:
            runs.cancel("nobody")
        assert caught.value.code == "CA4107"


def test_cancel_is_heard_by_whoever_runs_the_plan(workspace):
    heard = threading.Event()

    def work(attempt):
        stopped = threading.Event()
        attempt.stop.when_stopped(lambda _: stopped.set())
        heard.set()
        assert stopped.wait(30)
        attempt.stop.raise_if_stopped()

    with runs_of(workspace, RunOptions(grace_s=5), a=work) as runs:
        results = []
        thread = threading.Thread(target=lambda: results.append(runs.run(plan(function("a")), "p")))
        thread.start()
        assert heard.wait(30)
        runs.cancel("p")
        runs.cancel("p")
        thread.join()
    assert results[0].state is PlanState.CANCELLED
    assert results[0].nodes["a"].state is NodeState.WAITING


def test_draft_waits_until_somebody_says_that_it_is_ready(workspace):
    with runs_of(workspace, a=lambda _: None) as runs:
        plan_id = runs.add(plan(function("a")), draft=True)
        assert runs.plans()[0].state is PlanState.DRAFT
        runs.move(plan_id, PlanState.READY)
        assert runs.resume(plan_id).exit_code == 0
        assert [one.state for one in runs.nodes(plan_id)] == [NodeState.DONE]


def test_work_that_a_dead_run_left_in_a_sandbox_is_salvaged_and_rejected(workspace):
    with runs_of(workspace, a=lambda _: None) as runs:
        plan_id = runs.add(plan(function("a")))
        book = runs.journal.take(plan_id, lambda _: None)
        bench = runs._runner._crew.workbench.open(plan_id, "a", 1, actor=None)
        bench.files.write("b.txt", b"left")
        bench.seal()
        bench.close()
        book.close()
        assert runs.resume(plan_id).exit_code == 0
    (row,) = workspace.changes.trees.merges(plan_id)
    assert row.state == "rejected"
    assert set(files_of(workspace, plan_id)) == {"a.txt"}


def test_node_that_writes_where_it_must_not_is_refused_with_the_path(workspace):
    with runs_of(workspace, a=lambda attempt: attempt.files.rename("a.txt", "b.md")) as runs:
        result = runs.run(plan(function("a", writes=("*.md",), attempts_max=1)), "p")
    assert result.nodes["a"].error["code"] == "CA4201"
    assert "'a.txt'" in result.nodes["a"].error["message"]
    assert files_of(workspace, "p") == {"a.txt": b"one\n"}


def test_sandbox_that_cannot_be_salvaged_does_not_keep_a_plan_from_going_on(workspace, monkeypatch):
    def refuse():
        raise SandboxError("torn", code="CA5004")

    with runs_of(workspace, a=lambda _: None) as runs:
        plan_id = runs.add(plan(function("a")))
        runs.journal.take(plan_id, lambda _: None).close()
        monkeypatch.setattr(workspace, "collect_garbage", refuse)
        assert runs.resume(plan_id).exit_code == 0


def test_no_attempt_begins_once_bills_without_a_promise_ate_the_budget(workspace):
    """What a foreign agent costs is known when it is done: the next one is not started."""

    def agent(attempt):
        attempt.purse.record(0.6)

    nodes = [function(name, *needs) for name, needs in [("a", ()), ("b", "a"), ("c", "b")]]
    with runs_of(workspace, a=agent, b=agent, c=agent) as runs:
        result = runs.run(plan(*nodes, budget=Budget(max_usd=1)), "p")
        assert (result.state, result.exit_code) == (PlanState.FAILED, 4)
        assert result.error["code"] == "CA2103"
        assert [result.nodes[name].state for name in "ab"] == [NodeState.DONE, NodeState.DONE]
        assert runs.tracker.balance("plan", "p").spent == Money.of("1.20")
        again = runs.resume("p", budget_usd_max=2)
    assert again.state is PlanState.DONE


class TestContext:
    """Actors look for context in the files as they see them."""

    @pytest.fixture
    def services(self, tmp_path):
        with Container(Settings(context_index_folder=str(tmp_path / "index"))) as services:
            yield services

    def runs(self, workspace, services, **functions):
        def build(value):
            return FunctionActor(functions[value.function.partition(":")[2]])

        parts = RunParts(build_actor=build, find_context=services.pipeline.build)
        return Runs(workspace, parts)

    def test_file_that_an_actor_has_just_written_is_found_by_its_next_request(
        self, workspace, services
    ):
        root = workspace.changes.root

        def look(attempt):
            return attempt.find_context(ContextRequest("settle the invoice", root)).render()

        def work(attempt):
            before = look(attempt)
            attempt.files.write("invoices.py", b"def settle_invoice():\n    return 1\n")
            written = look(attempt)
            attempt.files.write("invoices.py", b"\n\ndef settle_invoice():\n    return 2\n")
            changed = look(attempt)
            attempt.files.remove("invoices.py")
            return [before, written, changed, look(attempt)]

        with self.runs(workspace, services, a=work) as runs:
            result = runs.run(plan(function("a")), "p")
        before, written, changed, removed = result.outputs["a"]
        assert "invoice" not in before
        assert "invoices.py:1-2\n```\ndef settle_invoice():\n    return 1\n" in written
        assert "    return 2\n" in changed
        assert "return 1" not in changed
        assert "invoice" not in removed

    def test_what_was_merged_into_the_plan_is_found_before_a_sandbox_is_made(
        self, workspace, services
    ):
        def write(attempt):
            attempt.files.write("invoices.py", b"def settle_invoice(): ...\n")
            attempt.files.remove("a.txt")

        def look(attempt):
            request = ContextRequest("settle the invoice of a.txt", workspace.changes.root)
            found = attempt.find_context(request).render()
            return [found, len(workspace.sandboxes.list())]

        with self.runs(workspace, services, write=write, look=look) as runs:
            result = runs.run(plan(function("write"), function("look", "write")), "p")
        found, sandboxes = result.outputs["look"]
        assert "def settle_invoice" in found
        assert "one" not in found
        assert sandboxes == 0

    def test_other_actors_do_not_see_what_is_not_merged(self, workspace, services):
        gate = Gate()

        def write(attempt):
            attempt.files.write("invoices.py", b"def settle_invoice(): ...\n")
            gate.pass_through()

        def look(attempt):
            gate.wait_for(1)
            request = ContextRequest("settle the invoice", workspace.changes.root)
            found = attempt.find_context(request).render()
            gate.open()
            return found

        with self.runs(workspace, services, write=write, look=look) as runs:
            result = runs.run(plan(function("write"), function("look")), "p")
        assert "invoice" not in result.outputs["look"]
