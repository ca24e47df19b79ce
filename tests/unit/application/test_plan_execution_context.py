from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services import plan_execution_context as module
from cleveragents.application.services.plan_execution_context import (
    PlanExecutionContext,
    carried,
)
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.testing import Gate, run_together


@pytest.fixture(autouse=True)
def _own_context():
    """What a test binds must not be the next test's own changeset."""
    kept = module._own.get()
    yield
    module._own.set(kept)


@pytest.fixture
def context():
    return PlanExecutionContext(plan_id="p-1")


def entry(name="a", **by):
    return ChangeEntry.create(f"{name}.py", name, **by)


def elsewhere(action, *arguments):
    """Run as a caller that has nothing of ours: a thread with a context of its own."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(action, *arguments).result()


def paths(context, changeset_id):
    return [change.path for change in context.changes(changeset_id)]


def refused(code, action, *arguments):
    with pytest.raises(PlanError) as caught:
        action(*arguments)
    assert caught.value.code == code
    return caught.value


class TestWhereAChangeGoes:
    def test_without_any_changeset_recording_is_refused(self, context):
        error = refused("CA4001", context.record_change, entry())
        assert str(error) == "No active changeset. Call start_changeset() first."

    def test_after_every_changeset_is_finished_recording_is_refused(self, context):
        def start_and_finish():
            context.start_changeset()
            context.finish_changeset()

        elsewhere(start_and_finish)
        refused("CA4001", context.record_change, entry())

    def test_a_change_goes_to_the_changeset_that_the_call_names(self, context):
        first = context.start_changeset()
        second = context.start_changeset()
        context.record_change(entry(), first)
        assert (paths(context, first), paths(context, second)) == (["a.py"], [])

    def test_a_change_goes_to_the_callers_own_not_to_the_last_one_started(self, context):
        own = context.start_changeset()
        other = elsewhere(context.start_changeset)
        context.record_change(entry())
        assert (paths(context, own), paths(context, other)) == (["a.py"], [])

    def test_a_caller_without_its_own_gets_the_last_one_that_is_still_active(self, context):
        first = elsewhere(context.start_changeset)
        second = elsewhere(context.start_changeset)
        context.record_change(entry("a"))
        context.finish_changeset(second)
        context.record_change(entry("b"))
        assert (paths(context, first), paths(context, second)) == (["b.py"], ["a.py"])

    def test_a_changeset_that_the_store_finished_is_passed_over(self):
        """The store is the authority, also when it was finished behind our back."""
        store = InMemoryChangesetStore()
        context = PlanExecutionContext("p-1", store)
        first, second = elsewhere(context.start_changeset), elsewhere(context.start_changeset)
        store.finish(second)
        context.record_change(entry())
        assert paths(context, first) == ["a.py"]
        assert context._active_changeset_ids == [first]

    def test_an_entry_that_is_refused_is_not_tried_elsewhere(self, context):
        first, second = elsewhere(context.start_changeset), elsewhere(context.start_changeset)
        context.record_change(entry())
        refused("CA4003", context.record_change, entry())
        assert (paths(context, first), paths(context, second)) == ([], ["a.py"])

    def test_a_changeset_of_another_plan_is_refused(self):
        store = InMemoryChangesetStore()
        one, two = PlanExecutionContext("p-1", store), PlanExecutionContext("p-2", store)
        foreign = two.start_changeset()
        one.start_changeset()
        error = refused("CA4002", one.record_change, entry(), foreign)
        assert error.message == f"Changeset `{foreign}` is of plan `p-2`, not of `p-1`"
        refused("CA4002", one.finish_changeset, foreign)
        refused("CA4002", one.diff, foreign)
        assert two.changes() == ()

    def test_a_changeset_that_was_never_started_is_refused(self, context):
        refused("CA4002", context.record_change, entry(), "c-9")

    def test_a_changeset_that_another_context_of_the_plan_started_can_be_named(self):
        store = InMemoryChangesetStore()
        changeset_id = PlanExecutionContext("p-1", store).start_changeset()
        resumed = PlanExecutionContext("p-1", store)
        resumed.record_change(entry(), changeset_id)
        resumed.finish_changeset(changeset_id)
        assert paths(resumed, changeset_id) == ["a.py"]
        assert resumed.changesets()[0].finished

    def test_two_plans_of_one_caller_do_not_mix(self):
        one, two = PlanExecutionContext("p-1"), PlanExecutionContext("p-2")
        first = one.start_changeset()
        with two.changeset() as second:
            one.record_change(entry("a"))
            two.record_change(entry("b"))
        one.record_change(entry("c"))
        assert (paths(one, first), paths(two, second)) == (["a.py", "c.py"], ["b.py"])


class TestFinishing:
    def test_a_caller_whose_own_is_finished_never_falls_through_to_anothers(self, context):
        other = elsewhere(context.start_changeset)
        own = context.start_changeset()
        context.finish_changeset()
        error = refused("CA4002", context.record_change, entry())
        assert error.facts["changeset"] == own
        assert paths(context, other) == []

    def test_a_caller_whose_own_was_finished_by_somebody_else_is_told(self, context):
        own = context.start_changeset()
        elsewhere(context.start_changeset)
        elsewhere(context.finish_changeset, own)
        refused("CA4002", context.record_change, entry())

    def test_a_caller_starts_anew_after_it_finished(self, context):
        context.start_changeset()
        context.finish_changeset()
        second = context.start_changeset()
        context.record_change(entry())
        assert paths(context, second) == ["a.py"]

    def test_a_caller_without_its_own_must_name_what_it_finishes(self, context):
        other = elsewhere(context.start_changeset)
        refused("CA4001", context.finish_changeset)
        assert not context.changesets(other)[0].finished

    def test_a_changeset_is_finished_once(self, context):
        context.start_changeset()
        context.finish_changeset()
        refused("CA4002", context.finish_changeset)

    def test_a_finish_that_the_store_could_not_do_can_be_done_again(self, context, monkeypatch):
        own = context.start_changeset()
        with monkeypatch.context() as broken:
            broken.setattr(context._changeset_store, "finish", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                context.finish_changeset()
        assert context._active_changeset_ids == [own]
        context.finish_changeset()
        assert context._active_changeset_ids == []


class TestBlock:
    def test_a_block_opens_a_changeset_of_its_owner_and_finishes_it(self, context):
        with context.changeset(actor="writer", node="n-1", attempt=1) as own:
            context.record_change(entry(actor="writer"))
        (changeset,) = context.changesets(own)
        assert (changeset.actor, changeset.node, changeset.attempt) == ("writer", "n-1", 1)
        assert (changeset.finished, changeset.entries) == (True, (entry(actor="writer"),))

    def test_leaving_a_block_restores_what_was_bound_before(self, context):
        with context.changeset() as outer:
            with context.changeset() as inner:
                context.record_change(entry("in"))
            context.record_change(entry("out"))
        assert (paths(context, outer), paths(context, inner)) == (["out.py"], ["in.py"])
        refused("CA4001", context.record_change, entry())

    def test_leaving_a_block_restores_also_over_a_changeset_started_inside(self, context):
        with context.changeset() as outer:
            with context.changeset():
                inner = context.start_changeset()
            context.record_change(entry())
        assert (paths(context, outer), paths(context, inner)) == (["a.py"], [])

    def test_an_exception_finishes_the_block_and_keeps_what_was_recorded(self, context):
        def fail_inside():
            with context.changeset():
                context.record_change(entry())
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_inside()
        (own,) = [changeset.id for changeset in context.changesets()]
        assert (paths(context, own), context.changesets(own)[0].finished) == (["a.py"], True)

    def test_a_block_may_be_finished_early(self, context):
        with context.changeset() as own:
            context.finish_changeset()
            refused("CA4002", context.record_change, entry())
        assert context.changesets(own)[0].finished

    def test_a_block_whose_store_fails_says_so_and_still_restores(self, context, monkeypatch):
        outer = context.start_changeset()
        error = PlanError("The store is full", code="CA4009")

        def fail(_):
            raise error

        monkeypatch.setattr(context._changeset_store, "finish", fail)
        with pytest.raises(PlanError, match="The store is full"), context.changeset():
            pass
        context.record_change(entry())
        assert paths(context, outer) == ["a.py"]


class TestThreadsAndTasks:
    def test_threads_that_start_and_finish_in_any_order_keep_their_own(self, context):
        gate = Gate()

        def early():
            with context.changeset(actor="early") as own:
                context.record_change(entry("e1"))
                gate.pass_through()
                context.record_change(entry("e2"))
            return own

        def late():
            gate.wait_for(1)
            with context.changeset(actor="late") as own:
                context.record_change(entry("l1"))
                gate.open()
            return own

        first, second = run_together([early, late])
        assert (paths(context, first), paths(context, second)) == (["e1.py", "e2.py"], ["l1.py"])

    def test_carried_work_records_as_its_caller_in_any_number_of_threads(self, context):
        with context.changeset(actor="writer") as own, ThreadPoolExecutor(4) as executor:
            elsewhere(context.start_changeset)
            work = carried(lambda number: context.record_change(entry(f"f{number}")))
            list(executor.map(work, range(20)))
        assert sorted(paths(context, own)) == sorted(f"f{number}.py" for number in range(20))

    def test_what_carried_work_opens_stays_its_own(self, context):
        outer = context.start_changeset()
        inner = elsewhere(carried(context.start_changeset))
        context.record_change(entry())
        assert (paths(context, outer), paths(context, inner)) == (["a.py"], [])

    def test_carried_keeps_arguments_and_result(self):
        assert carried(divmod)(7, 2) == (3, 1)
        assert carried(dict)(a=1) == {"a": 1}

    def test_work_that_outlives_its_callers_block_is_refused(self, context):
        with context.changeset():
            late = carried(context.record_change)
        elsewhere(context.start_changeset)
        refused("CA4002", elsewhere, late, entry())

    def test_tasks_and_their_threads_inherit_and_keep_their_own(self, context):
        async def actor(name):
            with context.changeset(actor=name) as own:
                for number in range(5):
                    await asyncio.sleep(0)
                    context.record_change(entry(f"{name}{number}"))
                await asyncio.to_thread(context.record_change, entry(f"{name}-thread"))
                await asyncio.create_task(child(name))
            return own

        async def child(name):
            context.record_change(entry(f"{name}-child"))

        async def together():
            return await asyncio.gather(*(actor(name) for name in "abcd"))

        for name, own in zip("abcd", asyncio.run(together()), strict=True):
            rest = [f"{name}-thread.py", f"{name}-child.py"]
            assert paths(context, own) == [f"{name}{number}.py" for number in range(5)] + rest


class TestViews:
    def test_changes_of_a_plan_come_changeset_by_changeset(self, context):
        first, second = context.start_changeset(), context.start_changeset()
        context.record_change(entry("b"), second)
        context.record_change(entry("a"), first)
        assert paths(context, None) == ["a.py", "b.py"]
        assert [changeset.id for changeset in context.changesets()] == [first, second]

    def test_diff_shows_one_changeset_or_the_plan(self, context):
        with context.changeset() as first:
            context.record_change(ChangeEntry.modify("x", "1\n", "2\n"))
        with context.changeset():
            context.record_change(ChangeEntry.modify("x", "2\n", "3\n"))
        assert context.diff(first).endswith("@@ -1 +1 @@\n-1\n+2\n")
        assert context.diff().endswith("@@ -1 +1 @@\n-1\n+3\n")

    def test_diff_of_a_plan_refuses_to_hide_one_change_behind_another(self, context):
        for after in ("2\n", "3\n"):
            with context.changeset():
                context.record_change(ChangeEntry.modify("x", "1\n", after))
        refused("CA4004", context.diff)

    def test_a_plan_without_changes_has_an_empty_diff(self, context):
        assert (context.plan_id, context.diff(), context.changes()) == ("p-1", "", ())

    def test_a_plan_must_have_an_id(self):
        with pytest.raises(RequestError, match="`plan_id` must not be empty"):
            PlanExecutionContext(plan_id="")


def test_a_store_needs_only_start_and_record_for_the_plain_calls():
    """A double written after the documented calls, without owners and snapshots, works."""

    class Minimal:
        def __init__(self):
            self.calls = []

        def start(self, plan_id):
            self.calls.append(plan_id)
            return "c-1"

        def record(self, changeset_id, change):
            self.calls.append((changeset_id, change))

    store = Minimal()
    context = PlanExecutionContext(plan_id="p-1", changeset_store=store)
    assert context.start_changeset() == "c-1"
    context.record_change(entry())
    context.record_change(entry("b"), changeset_id="c-1")
    assert store.calls == ["p-1", ("c-1", entry()), ("c-1", entry("b"))]


def test_the_store_is_never_called_while_the_lock_is_held():
    class Watching(InMemoryChangesetStore):
        def __getattribute__(self, name):
            if name in {"start", "record", "finish", "get", "of_plan"}:
                assert not context._changeset_lock.locked()
            return super().__getattribute__(name)

    context = PlanExecutionContext("p-1", Watching())
    own = context.start_changeset()
    context.record_change(entry())
    elsewhere(context.record_change, entry("b"))
    context.record_change(entry("c"), own)
    context.finish_changeset()
    with context.changeset():
        context.diff()
    context.changes()


def test_a_long_lived_caller_does_not_keep_its_plans_alive():
    def serve():
        seen = []
        for number in range(10):
            context = PlanExecutionContext(f"p-{number}")
            context.start_changeset()
            seen.append(weakref.ref(context))
        del context
        gc.collect()
        return [reference() for reference in seen], len(module._own.get())

    alive, bound = copy_context().run(serve)
    assert alive == [None] * 10
    assert bound <= 2
