"""States that scenarios start from."""

from __future__ import annotations

from behave import given, register_type

from cleveragents import Limit, Money
from tree import both_act, line_replaced
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


@given('a plan on a file "{path}" of {count:d} lines')
def a_plan_on_a_file(context, path, count):
    tree = context.world.tree
    tree.write(path, [f"line {number}" for number in range(1, count + 1)])
    tree.workspace.begin(PLAN)
    tree.before = tree.files()


@given('"{actor}" wrote "{line}" into line {number:d}')
def an_actor_wrote(context, actor, line, number):
    tree = context.world.tree
    tree.workspace.merge(tree.act(actor, ("app.txt", line_replaced(number, line))))


@given('"{actor}" wrote "{line}" into line {number:d} and made {count:d} more files')
def an_actor_wrote_and_made(context, actor, line, number, count):
    tree = context.world.tree
    edits = [(f"made/{one}.txt", lambda _: ["made"]) for one in range(1, count + 1)]
    changeset = tree.act(actor, ("app.txt", line_replaced(number, line)), *edits)
    tree.workspace.merge(changeset)


@given('line {number:d} is "{first}" for "{one}" and "{second}" for "{other}"')
def two_actors_wrote(context, number, first, one, second, other):  # noqa: PLR0913, PLR0917  # the words of the step
    both_act(context.world.tree, (one, first, number), (other, second, number))


@given('the user wrote "{line}" into line {number:d} meanwhile')
def the_user_wrote(context, line, number):
    context.world.tree.replace("app.txt", number, line)


@given("an apply of the plan was killed after its first file")
def an_apply_was_killed(context):
    context.world.tree.die_while_applying()


@given("one of these files is there already, and is ignored")
def one_is_there_already(context):
    context.world.tree.write("made/1.txt", ["of the user"])
    context.world.tree.write(".gitignore", ["made/"])


@given("the user applied the plan")
def the_user_applied(context):
    context.world.tree.run("changes", "apply", PLAN)


@given("the user reverted the plan")
def the_user_reverted(context):
    context.world.tree.run("changes", "revert", PLAN)
