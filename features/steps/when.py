"""The one event of a scenario."""

from __future__ import annotations

from contextlib import suppress

from behave import when

from cleveragents import BudgetExceeded, ChangeEntry, CleverAgentsError
from tree import both_act, line_replaced
from world import PLAN


class ProviderAnswerError(Exception):
    """An answer as an SDK raises it."""

    def __init__(self, status_code: int, headers: dict[str, str]) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code
        self.headers = headers


def ask(world, cost):
    try:
        return world.tracker.reserve(cost, world.scopes)
    except BudgetExceeded as refused:
        return refused


@when("an actor asks for a request that could cost {cost:Money} USD")
def an_actor_asks(context, cost):
    context.world.outcomes = [ask(context.world, cost)]


@when("two actors ask at the same moment for a request that could cost {cost:Money} USD")
def two_actors_ask(context, cost):
    context.world.at_the_same_moment(lambda world: [lambda: ask(world, cost)] * 2)


@when("an actor makes a request that could cost {bound:Money} USD and costs {cost:Money} USD")
def an_actor_makes_a_request(context, bound, cost):
    ask(context.world, bound).settle(cost)


@when(
    "an actor makes a request that could cost {bound:Money} USD"
    " and nothing is heard of it for {hours:d} hours"
)
def nothing_is_heard(context, bound, hours):
    ask(context.world, bound)
    context.world.clock.advance(hours * 3600)


@when("an actor spends {cost:Money} USD {times:d} times")
def an_actor_spends(context, cost, times):
    for _ in range(times):
        context.world.tracker.record_usage(cost, context.world.scopes)


@when("{actors:d} actors record {cost:Money} USD each at the same moment")
def actors_record(context, actors, cost):
    context.world.at_the_same_moment(
        lambda world: [lambda: world.tracker.record_usage(cost, world.scopes)] * actors
    )


@when("an actor asks for context")
def an_actor_asks_for_context(context):
    context.world.outcomes = [context.world.ask_for_context()]


@when("an actor asks for context {times:d} times")
def an_actor_asks_for_context_often(context, times):
    context.world.outcomes = [context.world.ask_for_context() for _ in range(times)]


@when('"{name}" is well again and {seconds:d} seconds pass and an actor asks for context')
def is_well_again(context, name, seconds):
    next(one for one in context.world.helpers if one.name == name).sick = False
    context.world.clock.advance(seconds)
    context.world.outcomes = [context.world.ask_for_context()]


@when('{actors:d} actors report a failure of "{name}" at the same moment')
def actors_report_a_failure(context, actors, name):
    context.world.at_the_same_moment(
        lambda world: [lambda: world.breaker.record_failure(name)] * actors
    )


@when('{seconds:d} seconds pass and {actors:d} actors want "{name}" at the same moment')
def actors_want(context, seconds, actors, name):
    context.world.begin(lambda world: world.clock.advance(seconds))
    context.world.at_the_same_moment(lambda world: [lambda: world.breaker.acquire(name)] * actors)


@when("a provider answers an actor with status {status:d}")
def a_provider_answers(context, status):
    record_and_decide(context.world, ProviderAnswerError(status, {}))


@when("a provider answers an actor with status {status:d} and asks to wait {seconds:d} seconds")
def a_provider_asks_to_wait(context, status, seconds):
    record_and_decide(context.world, ProviderAnswerError(status, {"retry-after": str(seconds)}))


def record_and_decide(world, error):
    record = world.recovery.record_error(PLAN, error, node="n", provider="p", model="m")
    world.outcomes = [record, world.recovery.recover(record)]


@when('an actor fails with a message that holds the key "{key}"')
def an_actor_fails_with_a_key(context, key):
    record_and_decide(context.world, ValueError(f"request with {key} was refused"))


@when("{actors:d} actors fail at the same moment")
def actors_fail(context, actors):
    context.world.at_the_same_moment(
        lambda world: [
            lambda number=number: world.recovery.record_error(PLAN, ValueError(f"{number}"))
            for number in range(actors)
        ],
        restless=("cleveragents.application.services.error_recovery_service",),
    )


@when("an actor records a change without having started a changeset")
def an_actor_records_without_a_changeset(context):
    record(context, lambda: ChangeEntry.create("a.txt", "a\n"))


@when('the actor records a change of the path "{path}"')
def the_actor_records(context, path):
    record(context, lambda: ChangeEntry.create(path, "a\n"))


@when('the actor creates the file "{path}" with the line "{line}"')
def the_actor_creates(context, path, line):
    record(context, lambda: ChangeEntry.create(path, f"{line}\n"))


def record(context, make_entry):
    try:
        context.world.plan.record_change(make_entry())
    except CleverAgentsError as refused:
        context.world.outcomes = [refused]


@when("{actors:d} actors with overlapping changesets record {changes:d} changes each")
def actors_with_overlapping_changesets(context, actors, changes):
    def act(plan, number):
        with plan.changeset(actor=f"actor-{number}") as changeset_id:
            for change in range(changes):
                plan.record_change(ChangeEntry.create(f"{number}/{change}.txt", "a\n"))
        return changeset_id

    context.world.at_the_same_moment(
        lambda world: [lambda number=number: act(world.plan, number) for number in range(actors)]
    )


@when("{actors:d} actors ask for the plan at the same moment")
def actors_ask_for_the_plan(context, actors):
    context.world.at_the_same_moment(
        lambda world: [lambda: world.container.plan_context(PLAN)] * actors
    )


@when(
    '"{one}" writes "{first}" into line {a:d} and "{other}" writes "{second}" into line {b:d},'
    " both at once"
)
def two_actors_write(context, one, first, a, other, second, b):  # noqa: PLR0913, PLR0917  # the words of the step
    both_act(context.world.tree, (one, first, a), (other, second, b))


@when('"{actor}" fails after writing "{line}" into line {number:d}')
def an_actor_fails_half_way(context, actor, line, number):
    def fail(lines):
        attempt.files.write("app.txt", "\n".join(line_replaced(number, line)(lines)).encode())
        raise LookupError("the actor fails")

    workspace = context.world.tree.workspace
    with (
        suppress(LookupError),
        workspace.attempt(PLAN, "step", actor=actor) as attempt,
    ):
        fail(attempt.files.read("app.txt").decode().splitlines())


@when("the user applies the plan")
def the_user_applies(context):
    context.world.tree.run("changes", "apply", PLAN)


@when('the user applies the plan with "{flags}"')
def the_user_applies_with(context, flags):
    context.world.tree.run("changes", "apply", PLAN, *flags.split())


@when("the user reverts the plan")
def the_user_reverts(context):
    context.world.tree.run("changes", "revert", PLAN)


@when("the user reverts the last revert")
def the_user_reverts_the_revert(context):
    tree = context.world.tree
    last = tree.records("changes", "show", PLAN)[-1]
    tree.run("changes", "revert", last["id"])


@when("the user asks for something else")
def the_user_asks_for_something_else(context):
    context.world.tree.run("settings")


@when("the user takes {side}")
def the_user_takes(context, side):
    tree = context.world.tree
    (conflict,) = tree.workspace.changes.trees.conflicts(PLAN)
    tree.run("changes", "resolve", conflict.id, "--take", side)
