"""A hint that names a command works if it is pasted, whatever the plan is called."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cleveragents.application.attempts import Payer
from cleveragents.application.run_journal import NodeRecord, PlanState
from cleveragents.application.services.run_result import ANEW
from cleveragents.cli.cautions import Cautions
from cleveragents.cli.fix_view import FixEnd, _outcome
from cleveragents.cli.grammar import parser
from cleveragents.cli.run_end import RunEnd
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.budget import Limit, Scopes
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.plan import Budget
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.plan_options import NodeBudget
from cleveragents.infrastructure.plan_jobs import AsyncJob, held_elsewhere
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.providers.cost_tracker import CostTracker
from unit.cli.plankit import nodes

ODD = "my plan's; rm x"


def pasted(hint: str) -> list:
    """Read each command of a hint as a shell and the command line would."""
    commands = re.findall(r"`(cleveragents [^`]+)`", hint)
    assert commands
    return [parser().parse_args(shlex.split(one)[1:]) for one in commands]


def test_plan_that_is_run_elsewhere_can_be_followed_or_paused():
    job = AsyncJob(plan_id=ODD, owner="o", fence=1, since=0.0, alive_until=1.0)
    watch, pause = pasted(held_elsewhere(job).hint)
    assert (watch.plan, pause.plan) == (ODD, ODD)


def test_overspent_plan_names_an_amount_that_is_enough():
    plan = SimpleNamespace(budget=Budget(max_usd="1"), nodes=())
    tracker = CostTracker()
    purses = TrackerPurses(tracker)
    purses.set_budget(ODD, plan)
    tracker.record_usage("3", Scopes(plan=ODD))
    with pytest.raises(BudgetExceeded) as caught:
        purses.open(Payer(plan_id=ODD, node="n", actor="a"), print)
    (resume,) = pasted(caught.value.hint)
    assert (resume.plan, resume.budget_usd_max) == (ODD, "6")


def node_that_may_spend_one_dollar():
    node = SimpleNamespace(name="odd 'node'", budget=NodeBudget(max_usd=1))
    tracker = CostTracker()
    purses = TrackerPurses(tracker)
    purses.set_budget(ODD, SimpleNamespace(budget=None, nodes=(node,)))
    return tracker, purses, Payer(plan_id=ODD, node=node.name, actor="a")


def follow(tracker, hint):
    """Do what a hint about a label says."""
    (budget,) = pasted(hint)
    assert budget.run == ("budget", "set_budget")
    tracker.set_limit(Limit(budget.kind, budget.amount, name=budget.name))


def test_overspent_node_names_what_raises_its_own_budget():
    tracker, purses, payer = node_that_may_spend_one_dollar()
    purses.open(payer, print).record(3)
    with pytest.raises(BudgetExceeded, match="The budget of node `odd 'node'`") as caught:
        purses.open(payer, print)
    follow(tracker, caught.value.hint)
    purses.open(payer, print).reserve(3).release()


def test_call_that_a_node_has_no_money_for_names_what_raises_its_own_budget():
    tracker, purses, payer = node_that_may_spend_one_dollar()
    purse = purses.open(payer, print)
    with pytest.raises(BudgetExceeded) as caught:
        purse.reserve(9)
    follow(tracker, caught.value.hint)
    purse.reserve(9).release()


def test_run_that_stopped_names_the_way_on(capsys):
    model = RunModel(ODD, nodes("a"), end="paused")
    result = SimpleNamespace(plan_id=ODD, state=PlanState.PAUSED, error=None, nodes={}, exit_code=1)
    RunEnd(result, model, 0, b"", (), Cautions(ODD)).tell()
    (resume,) = pasted(capsys.readouterr().err)
    assert resume.plan == ODD


@pytest.mark.parametrize(("name", "begins"), [("mine", "More: change"), ("hunt", "Run `")])
def test_plan_that_is_no_file_of_the_user_is_not_to_be_changed(name, begins):
    told = {"hint": f"More: {ANEW}", "category": "tool.timeout"}
    result = SimpleNamespace(
        plan_id=ODD,
        error={"facts": {"node": "a"}},
        nodes={"a": NodeRecord(id="a", node="a", state=NodeState.FAILED, error=told)},
        exit_code=1,
    )
    end = RunEnd(result, RunModel(ODD, replace(nodes("a"), name=name)), 0, b"", (), Cautions(ODD))
    hint = end._hint()
    assert hint.startswith(begins)
    (resume,) = pasted(hint)
    assert resume.plan == ODD


def test_fixers_that_break_it_together_can_be_run_by_name():
    fixer = SimpleNamespace(name="odd name", files=1)
    report = SimpleNamespace(is_worse=True, fixers=(fixer,))
    (only,) = pasted(_outcome(report, FixEnd(1)))
    assert only.only == ["odd name"]
