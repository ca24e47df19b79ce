"""No change is crossed or lost: in every order of two callers it is where its rule puts it.

What calls do at the same moment, results, refusals and the whole state included, must be
what they do one after the other, in some order.
"""

from __future__ import annotations

from contextvars import Context, ContextVar
from itertools import combinations_with_replacement, permutations

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError
from proofs import racekit
from proofs.racekit import prove, refute, without_lock

# Made once: what a search does not have to trace makes it faster.
A, B, SAME = (ChangeEntry.create(path, "1", at=0.0) for path in ("a", "b", "same"))
PLAN = "p-1"


@pytest.fixture(autouse=True)
def _fewer_tries(monkeypatch):
    """Every meeting is searched exhaustively; chance, which is slow, gets fewer tries at each."""
    monkeypatch.setattr(racekit, "ATTEMPTS_PER_SEED", 30)


# Each caller brings its own ids, as chance would: a shared source would only add orders.
CALLER = ContextVar("caller", default="c")


def empty_store(kind=InMemoryChangesetStore):
    return kind(new_id=CALLER.get, clock=lambda: 0.0)


def as_caller(name, action, *arguments):
    """Run in a context of its own, under a name."""
    context = Context()
    context.run(CALLER.set, name)
    return context.run(action, *arguments)


def store_with_one(kind=InMemoryChangesetStore):
    store = empty_store(kind)
    as_caller("1", store.start, PLAN)
    return store


def context_with(active, kind=PlanExecutionContext):
    """A plan with changesets that somebody else started: callers have none of their own."""
    context = kind(PLAN, empty_store())
    for number in range(active):
        as_caller(str(number + 1), context.start_changeset)
    return context


def callers(*actions):
    """Return workers under names of their own, to whom a refusal is its code."""

    def caller(name, action):
        def run(subject):
            CALLER.set(name)
            try:
                return action(subject)
            except PlanError as error:
                return error.code

        return run

    return [caller(f"w{index}", action) for index, action in enumerate(actions)]


def state(subject):
    store = getattr(subject, "_changeset_store", subject)
    active = sorted(getattr(subject, "_active_changeset_ids", []))
    return store.of_plan(PLAN), active


def outcome(subject, returned):
    return [returned[index] for index in sorted(returned)], *state(subject)


def one_after_the_other(setup, workers):
    """Yield the outcome of every order, each caller in a context of its own."""
    for order in permutations(range(len(workers))):
        subject = setup()
        returned = {index: Context().run(workers[index], subject) for index in order}
        yield outcome(subject, returned)


def assert_atomic(setup, workers):
    allowed = list(one_after_the_other(setup, workers))
    prove(setup, workers, lambda arena: outcome(arena.subject, arena.returned) in allowed)


def names(meeting):
    return "-".join(action.__name__ for action in meeting)


# The store: every pair of methods on one changeset and on one plan.


def start(s):
    return s.start(PLAN)


def record(s):
    return s.record("c-1", SAME)


def finish(s):
    return s.finish("c-1")


def get(s):
    return s.get("c-1")


def of_plan(s):
    return s.of_plan(PLAN)


STORE_MEETINGS = [
    pair
    for pair in combinations_with_replacement((start, record, finish, get, of_plan), 2)
    if set(pair) - {get, of_plan}
]


@pytest.mark.parametrize("meeting", STORE_MEETINGS, ids=names)
def test_store_methods_at_the_same_moment_do_what_they_do_one_after_the_other(meeting):
    assert_atomic(store_with_one, callers(*meeting))


def test_entries_of_one_caller_keep_their_order_among_those_of_others():
    later = ChangeEntry.modify("a", "1", "2", at=0.0)

    def record_both(s):
        s.record("c-1", A)
        s.record("c-1", later)

    def in_order(arena):
        entries = arena.subject.get("c-1").entries
        return [entry for entry in entries if entry != SAME] == [A, later] and len(entries) == 3

    prove(store_with_one, callers(record_both, record), in_order)


# The context: callers without their own changeset, and callers with one.


def start_changeset(c):
    return c.start_changeset()


def record_change(c):
    return c.record_change(A)


def record_another(c):
    return c.record_change(B)


def record_named(c):
    return c.record_change(B, "c-1")


def finish_first(c):
    return c.finish_changeset("c-1")


def finish_second(c):
    return c.finish_changeset("c-2")


CONTEXT_MEETINGS = [
    (0, start_changeset, record_change),
    (0, start_changeset, start_changeset),
    (1, start_changeset, record_change),
    (1, start_changeset, finish_first),
    (1, record_change, record_another),
    (1, record_change, record_named),
    (1, record_change, finish_first),
    (1, record_named, finish_first),
    (1, finish_first, finish_first),
    (2, record_change, finish_second),
    (2, finish_first, finish_second),
]


@pytest.mark.parametrize(
    "meeting", CONTEXT_MEETINGS, ids=lambda meeting: f"{meeting[0]}-active-{names(meeting[1:])}"
)
def test_calls_at_the_same_moment_do_what_they_do_one_after_the_other(meeting):
    active, *actions = meeting
    assert_atomic(lambda: context_with(active), callers(*actions))


class Owners:
    """A plan and two callers, each with a changeset of its own; the second started last."""

    def __init__(self, kind=PlanExecutionContext):
        self.plan = kind(PLAN, empty_store())
        self.callers = Context(), Context()
        for name, caller in zip("12", self.callers, strict=True):
            caller.run(CALLER.set, name)
            caller.run(self.plan.start_changeset)


def first_records(o):
    return o.callers[0].run(o.plan.record_change, A)


def second_records(o):
    return o.callers[1].run(o.plan.record_change, B)


def first_records_late(o):
    o.callers[0].run(o.plan.finish_changeset)
    o.callers[0].run(o.plan.record_change, A)


def stranger_starts(o):
    return o.plan.start_changeset()


def each_has_its_own(arena):
    plan = arena.subject.plan
    return (plan.changes("c-1"), plan.changes("c-2")) == ((A,), (B,))


def test_two_actors_that_record_at_the_same_moment_never_cross():
    prove(Owners, callers(first_records, second_records), each_has_its_own)


def test_an_actor_keeps_its_own_while_another_starts():
    prove(
        Owners,
        callers(first_records, stranger_starts),
        lambda arena: arena.subject.plan.changes("c-1") == (A,),
    )


def test_a_late_change_of_a_finished_caller_never_lands_with_another():
    prove(
        Owners,
        callers(first_records_late, second_records),
        lambda arena: arena.returned[0] == "CA4002" and arena.subject.plan.changes() == (B,),
    )


# The planted bugs: each proof above can fail.


class LastStartedDecides(PlanExecutionContext):
    """The rule that a lock cannot save: every step is atomic, and changes still cross."""

    def record_change(self, entry, changeset_id=None):
        self._changeset_store.record(changeset_id or self._last_active_id(), entry)


def test_recency_instead_of_ownership_is_found():
    refute(
        lambda: Owners(LastStartedDecides),
        callers(first_records, second_records),
        each_has_its_own,
    )


def test_the_guard_without_its_lock_is_found_in_a_blind_spot():
    """`if not ids` and `ids[-1]` with a finish in between: the IndexError of the racy code."""
    found = refute(
        lambda: without_lock(context_with(1), "_changeset_lock"),
        callers(record_change, finish_first),
        lambda arena: not arena.raised,
    )
    assert found


class GivesUp(PlanExecutionContext):
    """A guard and a read that are atomic, but no second look when the store has the last word."""

    def _record_into_last(self, entry):
        self._changeset_store.record(self._last_active_id(), entry)


def test_a_stale_id_is_found():
    """With another changeset active, a caller must not be told that its target is finished."""
    workers = callers(record_change, finish_second)
    allowed = list(one_after_the_other(lambda: context_with(2), workers))
    assert list(one_after_the_other(lambda: context_with(2, GivesUp), workers)) == allowed
    refute(
        lambda: context_with(2, GivesUp),
        workers,
        lambda arena: outcome(arena.subject, arena.returned) in allowed,
    )


class AsksByIn(InMemoryChangesetStore):
    """A planted bug where the search is half blind: `in` on a dictionary."""

    def _add_locked(self, head):
        if head.plan_id not in self._ids_of_plan:
            self._ids_of_plan[head.plan_id] = []
        super()._add_locked(head)


def both_started(arena):
    started = [changeset.id for changeset in arena.subject.of_plan(PLAN)]
    return sorted(started) == sorted(arena.returned.values()) and len(set(started)) == 2


def one_created_it(arena):
    return sorted(map(str, arena.returned.values())) == ["CA4003", "None"] and (
        arena.subject.get("c-1").entries == (SAME,)
    )


def nothing_after_the_finish(arena):
    recorded = arena.returned[0] is None
    return arena.returned[1].entries == ((SAME,) if recorded else ()) and (
        arena.subject.get("c-1") == arena.returned[1]
    )


def finish_and_look(s):
    s.finish("c-1")
    return s.get("c-1")


RACES = {
    "first changesets of a plan": (empty_store, callers(start, start), both_started),
    "one path twice": (store_with_one, callers(record, record), one_created_it),
    "record after finish": (
        store_with_one,
        callers(record, finish_and_look),
        nothing_after_the_finish,
    ),
}


@pytest.mark.parametrize("race", RACES)
def test_store_races_cannot_happen(race):
    prove(*RACES[race])


@pytest.mark.parametrize("race", RACES)
def test_store_races_are_found_when_the_lock_is_missing(race):
    setup, workers, holds = RACES[race]
    refute(lambda: without_lock(setup(), "_lock"), workers, holds)


def test_a_get_or_create_by_in_is_found_without_its_lock():
    refute(
        lambda: without_lock(empty_store(AsksByIn), "_lock"), callers(start, start), both_started
    )
