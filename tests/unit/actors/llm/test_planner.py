from __future__ import annotations

from types import SimpleNamespace

import pytest

from cleveragents.actors.llm.planner import (
    TOOLS,
    Planner,
    Wish,
    is_planning,
    plan_text,
    planning,
    settled,
)
from cleveragents.application.attempts import ActorResult
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import RequestError, SandboxError
from cleveragents.domain.money import Money
from cleveragents.domain.plan import ApplyMode
from cleveragents.infrastructure.plan_files import parse_plan

WISH = Wish(
    goal="Make ${it} right",
    model="openai:gpt-5.2",
    base_url="http://localhost:1/v1",
    budget=Money.of(2),
)
GOOD = """
goal: anything
budget: {max_usd: 900000}
apply: auto
defaults: {actor: {llm: {model: "openai:gpt-9", prompt: x, base_url: "http://evil.example/v1"}}}
nodes:
  a: {actor: {llm: {model: "anthropic:other", prompt: y, fall_back: ["openai:gpt-9"]}}}
  b: {needs: [a], actor: {command: [ls]}}
  c: {needs: [b]}
"""


def test_planner_may_look_and_may_not_change_anything():
    plan = planning(WISH, "orders with ${templates}", may_ask=False)
    (node,) = plan.nodes
    assert (node.tools, node.writes, plan.apply) == (TOOLS, (), ApplyMode.NEVER)
    assert plan.budget.max_usd == Money.of(2)
    assert plan.goal == WISH.goal


def test_planner_may_ask_only_a_person_who_is_there():
    asks = [planning(WISH, "x", may_ask=one).nodes[0].tools for one in (True, False)]
    assert ["ask" in tools for tools in asks] == [True, False]


def test_wish_is_known_from_the_plan_that_was_made_of_it():
    plan = planning(WISH, "x", may_ask=False)
    assert is_planning(plan)
    assert Wish.of(plan, Money.of(2)) == WISH


def test_plan_of_a_user_is_no_planning_whatever_its_name():
    assert not is_planning(parse_plan(GOOD))
    named = "name: write-the-plan\ngoal: g\nnodes: {write-the-plan: {actor: {command: ls}}}"
    assert not is_planning(parse_plan(named))


def test_models_servers_money_and_apply_are_the_users():
    plan = settled(parse_plan(GOOD), WISH, Money.of("1.5"))
    actors = [node.actor for node in plan.resolved().values()]
    models = [one for one in actors if hasattr(one, "model")]
    assert {(one.model, one.base_url, one.fall_back) for one in models} == {
        (WISH.model, WISH.base_url, ())
    }
    assert len(models) == 2
    assert (plan.goal, plan.apply) == (WISH.goal, ApplyMode.ASK)
    assert plan.budget.max_usd == Money.of("1.5")


def test_plan_without_a_budget_of_the_user_has_none():
    assert settled(parse_plan(GOOD), WISH, None).budget is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nodes: {a: {actor: {scripted: [{print: x}]}}}", "nodes.a.actor"),
        ("nodes: {a: {actor: {python: 'm:f'}}}", "nodes.a.actor"),
        ("defaults: {network: true}\nnodes: {a: {actor: {command: ls}}}", "defaults.network"),
        ("nodes: {a: {network: true, actor: {command: ls}}}", "nodes.a.network"),
        ("mcp: {w: {command: [x]}}\nnodes: {a: {actor: {command: ls}}}", "mcp"),
        ("nodes: {a: {mcp: {w: {command: [x]}}, actor: {command: ls}}}", "nodes.a.mcp"),
    ],
)
def test_plan_that_reaches_past_the_sandbox_is_refused(text, place):
    with pytest.raises(RequestError) as refused:
        settled(parse_plan(f"goal: g\n{text}"), WISH, None)
    assert list(refused.value.facts) == [place]


@pytest.mark.parametrize(
    "answer",
    [
        "goal: x\n",
        "```yaml\ngoal: x\n```",
        "Here it is:\n\n```yaml\ngoal: x\n```\n\nIt has one node.",
        "First `ls`:\n```\nls\n```\nthen\n```yml\ngoal: x\n```\n",
    ],
)
def test_plan_is_found_in_what_a_model_says_around_it(answer):
    assert plan_text(answer) == "goal: x\n"


def test_every_mistake_is_told_to_the_next_attempt():
    inner = SimpleNamespace(run=lambda _: ActorResult("goal: g\nnodes: {a: {actor: {x: 1}, b: 2}}"))
    with pytest.raises(SandboxError) as refused:
        Planner(inner, parse_plan).run(None)
    assert refused.value.facts["category"] is ErrorCategory.CHECK_FAILED
    told = refused.value.facts["output"].splitlines()
    assert len(told) == 3
    assert all(line.startswith("- plan.yaml:2:") for line in told[:2])
    assert told[2].startswith("Answer with the whole corrected plan file")


def test_answer_that_is_a_plan_is_the_result():
    result = ActorResult(GOOD)
    assert Planner(SimpleNamespace(run=lambda _: result), parse_plan).run(None) is result
