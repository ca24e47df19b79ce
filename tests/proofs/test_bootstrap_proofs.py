"""The container hands out one context per plan, whoever comes first."""

from __future__ import annotations

from cleveragents.bootstrap import Container
from proofs.racekit import Arena, prove, refute, without_lock


def ask(container: Container) -> int:
    return id(container.plan_context("p"))


def ask_for_another(container: Container) -> int:
    return id(container.plan_context("q"))


def one_for_all(arena: Arena[Container]) -> bool:
    contexts = {*arena.returned.values(), ask(arena.subject)}
    return len(contexts) == 1


def test_two_first_callers_get_one_context_in_every_order():
    prove(Container, [ask, ask], one_for_all)


def test_contexts_of_two_plans_are_both_kept_in_every_order():
    prove(
        Container,
        [ask, ask_for_another],
        lambda arena: (
            arena.returned[0] == ask(arena.subject)
            and arena.returned[1] == ask_for_another(arena.subject)
        ),
    )


def test_twin_without_its_lock_is_caught():
    refute(lambda: without_lock(Container(), "_plan_contexts_lock"), [ask, ask], one_for_all)
