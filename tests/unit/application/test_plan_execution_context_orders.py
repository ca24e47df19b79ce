"""Every order of three callers' calls: once each call is atomic, these are all there is."""

from __future__ import annotations

from contextvars import Context

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError

pytestmark = pytest.mark.long

ENTRIES = [ChangeEntry.create(f"{number}.py", "", at=0.0) for number in range(3)]


def orders(left):
    """Yield every order in which callers can make so many calls each."""
    if not any(left):
        yield ()
    for caller, calls in enumerate(left):
        if calls:
            rest = (*left[:caller], calls - 1, *left[caller + 1 :])
            for order in orders(rest):
                yield (caller, *order)


def code_of(action, *arguments):
    try:
        action(*arguments)
    except PlanError as error:
        return error.code
    return None


def test_callers_that_start_record_finish_and_record_late_never_cross_in_any_order():
    walked = 0
    for order in orders((4, 4, 2)):
        ids = iter("abc")
        store = InMemoryChangesetStore(new_id=lambda ids=ids: next(ids), clock=lambda: 0.0)
        plan = PlanExecutionContext("p-1", store)
        callers = [Context() for _ in range(3)]
        steps = [iter(life_of(plan, entry)) for entry in ENTRIES]
        answers = {caller: [] for caller in range(3)}
        for caller in order:
            answers[caller].append(callers[caller].run(next(steps[caller])))
        for caller, entry in enumerate(ENTRIES):
            own, *codes = answers[caller]
            assert plan.changes(own) == (entry,)
            assert codes == [None, None, "CA4002"][: len(codes)]
        walked += 1
    assert walked == 3150


def life_of(plan, entry):
    late = ChangeEntry.modify(entry.path, "", "late")
    return (
        plan.start_changeset,
        lambda: code_of(plan.record_change, entry),
        lambda: code_of(plan.finish_changeset),
        lambda: code_of(plan.record_change, late),
    )


def test_callers_without_their_own_always_get_the_last_that_is_active():
    """Against a list: what is started is appended, what is finished is removed, the last is it."""
    for order in orders((2, 2, 3)):
        ids = iter("ab")
        store = InMemoryChangesetStore(new_id=lambda ids=ids: next(ids), clock=lambda: 0.0)
        plan = PlanExecutionContext("p-1", store)
        own, active, expected = {}, [], []
        entries = iter(ENTRIES)
        for caller in order:
            if caller == 2:
                entry = next(entries)
                expected.append((active[-1] if active else None, entry))
                code = code_of(Context().run, plan.record_change, entry)
                assert code == (None if active else "CA4001")
            elif own.get(caller) is None:
                own[caller] = Context().run(plan.start_changeset)
                active.append(own[caller])
            else:
                plan.finish_changeset(own[caller])
                active.remove(own[caller])
        for changeset in plan.changesets():
            here = tuple(entry for place, entry in expected if place == changeset.id)
            assert changeset.entries == here
