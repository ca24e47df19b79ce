"""States that scenarios start from."""

from __future__ import annotations

from behave import given, register_type

from cleveragents import Limit, Money
from world import PLAN, Helper


def parse_money(text: str) -> Money:
    return Money.of(text)


parse_money.pattern = r"\d+\.\d+"
register_type(Money=parse_money)


@given("a plan with a budget of {budget:Money} USD, of which {spent:Money} USD is spent")
def a_plan_with_a_budget(context, budget, spent):
    def begin(world):
        world.give_budget(budget)
        world.tracker.record_usage(spent, world.scopes)

    context.world.begin(begin)


@given("a plan without a budget")
def a_plan_without_a_budget(context):
    assert context.world.tracker.limits == ()


@given("a plan with a soft budget of {budget:Money} USD")
def a_plan_with_a_soft_budget(context, budget):
    context.world.tracker.set_limit(Limit("plan", budget, name=PLAN, hard=False, warn_at=(0.8,)))


@given('a healthy strategy "{healthy}" and a sick strategy "{sick}"')
def two_strategies(context, healthy, sick):
    context.world.helpers = [Helper(healthy), Helper(sick, sick=True)]


@given('"{name}" is paused')
def is_paused(context, name):
    def begin(world):
        for _ in range(3):
            world.breaker.record_failure(name)

    context.world.begin(begin)
    assert context.world.breaker.is_open(name)


@given("an actor with a changeset of its own")
def an_actor_with_a_changeset(context):
    context.world.plan.start_changeset()
