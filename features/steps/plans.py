"""Plans from their first node to the user's tree."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from behave import given, then, when

from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.run_options import RunOptions
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import NodeStarted
from cleveragents.infrastructure.plan_files import parse_plan
from cleveragents.runs import Runs
from cleveragents.workspace import Workspace

if TYPE_CHECKING:
    from cleveragents import Money
    from cleveragents.application.services.plan_run import PlanRun
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.domain.run_events import RunEvent

FILE = "book.txt"


@dataclass
class PlanWorld:
    """A tree, a plan on it, and what came of its last run."""

    opened: ExitStack = field(default_factory=ExitStack)
    starts: list[str] = field(default_factory=list)
    stops_at_first_node: bool = False
    text: str = ""
    plan_id: str = "p-7f3a"
    run: PlanRun | None = None
    result: RunResult | None = None
    root: Path = field(init=False)
    workspace: Workspace = field(init=False)
    runs: Runs = field(init=False)

    def __post_init__(self) -> None:
        self.root = Path(self.opened.enter_context(TemporaryDirectory()))
        self.workspace = self.opened.enter_context(Workspace(self.root))
        options = RunOptions(listener=self.hear, on_open=self.open)
        self.runs = self.opened.enter_context(Runs(self.workspace, options=options))

    def open(self, run: PlanRun) -> None:
        self.run = run

    def hear(self, event: RunEvent) -> None:
        if isinstance(event, NodeStarted):
            self.starts.append(event.node)
            if self.stops_at_first_node and self.run is not None:
                self.stops_at_first_node = False
                self.run.request_stop(PlanState.PAUSED)

    def go(self) -> None:
        self.result = self.runs.run(parse_plan(self.text), self.plan_id)

    def go_on(self, budget: Money | None = None) -> None:
        self.result = self.runs.resume(self.plan_id, budget_usd_max=budget)

    def done(self) -> int:
        return len(self.result.in_state(NodeState.DONE))


def world_of(context) -> PlanWorld:
    if not hasattr(context, "plans"):
        context.plans = PlanWorld()
        context.add_cleanup(context.plans.opened.close)
    return context.plans


def chain(count: int, steps: str) -> str:
    """Return nodes of which each needs the one before."""
    text = ""
    for number in range(count):
        needs = f"needs: [n{number - 1}], " if number else ""
        text += f"  n{number}: {{{needs}actor: {{scripted: [{steps % number}]}}}}\n"
    return text


@given("a plan of {count:d} nodes, one after the other")
def a_chain(context, count):
    world_of(context).text = "goal: Write\nnodes:\n" + chain(
        count, "{write: n%s.txt, text: written}"
    )


@given("a plan of {count:d} nodes that was stopped while its first node worked")
def a_stopped_chain(context, count):
    a_chain(context, count)
    stop_at_first_node(context)
    assert world_of(context).done() == 1


@given("a plan of {count:d} nodes that is done")
def a_finished_chain(context, count):
    a_chain(context, count)
    world_of(context).go()


@given(
    "a plan with a budget of {budget:Money} USD and {count:d} nodes that pay {price:Money} USD each"
)
def a_plan_that_pays(context, budget, count, price):
    nodes = chain(count, f"{{print: node %s}}, {{spend: {price.usd}}}")
    world_of(context).text = f"goal: Pay\nbudget: {{max_usd: {budget.usd}}}\nnodes:\n{nodes}"


@given(
    "a plan with a budget of {budget:Money} USD and {count:d} nodes"
    " that pay {price:Money} USD each, stopped by it"
)
def a_plan_stopped_by_its_budget(context, budget, count, price):
    a_plan_that_pays(context, budget, count, price)
    world_of(context).go()


@given(
    "a plan with a budget of {budget:Money} USD and {count:d} nodes at once"
    " that pay {price:Money} USD each"
)
def a_plan_that_pays_at_once(context, budget, count, price):
    world_of(context).text = (
        f"goal: Pay\nbudget: {{max_usd: {budget.usd}}}\nat_once: {count}\non_failure: continue\n"
        f"nodes:\n  pay:\n    for_each: {list(range(count))}\n"
        f"    actor: {{scripted: [{{spend: {price.usd}}}]}}\n"
    )


@given("a file with {count:d} chapters")
def a_file(context, count):
    chapters = "".join(f"Chapter {number}\n\n\n\nold {number}\n\n\n\n" for number in range(count))
    (world_of(context).root / FILE).write_text(chapters, encoding="utf-8")


@when("the user stops the plan while its first node works")
def stop_at_first_node(context):
    world_of(context).stops_at_first_node = True
    world_of(context).go()


@when("the plan is run")
def the_plan_is_run(context):
    world_of(context).go()


@when("the user goes on with the plan")
def goes_on(context):
    world_of(context).go_on()


@when("the user goes on with a budget of {budget:Money} USD")
def goes_on_with_a_budget(context, budget):
    world_of(context).go_on(budget)


@when("{count:d} actors edit a chapter of their own at the same moment")
def edit_their_own(context, count):
    edit(world_of(context), [(f"old {number}", f"new {number}") for number in range(count)])


@when("{count:d} actors edit the same chapter at the same moment")
def edit_the_same(context, count):
    edit(world_of(context), [("old 0", f"new {number}") for number in range(count)])


def edit(world: PlanWorld, edits: list[tuple[str, str]]) -> None:
    """Let each actor read the old file before any edit is merged."""
    nodes = "".join(
        f"  n{number}:\n"
        f"    recovery: {{cures: {{plan.conflict: [ask]}}}}\n"
        f'    actor: {{scripted: [{{edit: {FILE}, old: "{old}\\n", new: "{new}\\n"}}]}}\n'
        for number, (old, new) in enumerate(edits)
    )
    world.text = f"goal: Edit\nat_once: {len(edits)}\non_failure: continue\nnodes:\n{nodes}"
    world.go()


@then('the plan is "{state}"')
def the_plan_is(context, state):
    assert world_of(context).result.state == state, world_of(context).result


@then('the plan is "{state}" with the code {code}')
def the_plan_is_with(context, state, code):
    result = world_of(context).result
    assert (result.state, result.error["code"]) == (state, code), result


@then("{count:d} of its nodes is done")
@then("{count:d} of its nodes are done")
def of_its_nodes_are_done(context, count):
    assert world_of(context).done() == count


@then("every node worked once")
def every_node_worked_once(context):
    starts = world_of(context).starts
    assert sorted(starts) == sorted({*starts}) == ["n0", "n1", "n2"], starts


@then("the files of all {count:d} nodes are in the plan")
def the_files_are_there(context, count):
    world = world_of(context)
    found = world.workspace.changes.difference(world.plan_id).records()
    assert [one["path"] for one in found] == [f"n{number}.txt" for number in range(count)]


@then("the plan has paid {amount:Money} USD")
def the_plan_has_paid(context, amount):
    world = world_of(context)
    paid = world.runs.tracker.balance("plan", world.plan_id).spent
    assert paid == amount, paid


@then("the user's file is untouched")
def the_file_is_untouched(context):
    assert "new" not in (world_of(context).root / FILE).read_text(encoding="utf-8")


@then("after the apply all {count:d} edits are in the user's file")
def the_edits_are_there(context, count):
    world = world_of(context)
    world.workspace.changes.applies.apply(world.plan_id)
    text = (world.root / FILE).read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "new" in line] == [
        f"new {number}" for number in range(count)
    ]


@then("a person is asked to choose between 2 versions")
def a_person_is_asked(context):
    world = world_of(context)
    assert world.result.exit_code == 5, world.result
    (conflict,) = world.workspace.changes.trees.conflicts(world.plan_id)
    assert conflict.ours.content_id != conflict.theirs.content_id
