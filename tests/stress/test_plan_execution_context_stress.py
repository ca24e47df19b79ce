"""Real threads and tasks on one plan: every change is with its actor, in its order."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from itertools import count

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

ACTORS, ENTRIES = 16, 500


@pytest.fixture(scope="module")
def work():
    """What each actor does: it creates one file, and edits it over and over."""

    def of(actor):
        first = ChangeEntry.create("shared.py", f"{actor} 0", actor=actor)
        return [first] + [
            ChangeEntry.modify("shared.py", f"{actor} {n - 1}", f"{actor} {n}", actor=actor)
            for n in range(1, ENTRIES)
        ]

    return {actor: of(actor) for actor in (f"actor-{number}" for number in range(ACTORS))}


def assert_nothing_crossed(context, work):
    changesets = {changeset.actor: changeset for changeset in context.changesets()}
    assert len(context.changesets()) == len(changesets) == ACTORS
    for actor, entries in work.items():
        assert changesets[actor].entries == tuple(entries)
        assert changesets[actor].finished


def test_16_threads_with_overlapping_changesets_keep_500_entries_each(work):
    context = PlanExecutionContext(plan_id="p-1")

    def act(actor):
        with context.changeset(actor=actor):
            for entry in work[actor]:
                context.record_change(entry)

    run_together([lambda actor=actor: act(actor) for actor in work])
    assert_nothing_crossed(context, work)


def test_16_tasks_with_overlapping_changesets_keep_500_entries_each(work):
    context = PlanExecutionContext(plan_id="p-1")

    async def act(actor):
        with context.changeset(actor=actor):
            for entry in work[actor]:
                context.record_change(entry)
                await asyncio.sleep(0)

    async def together():
        await asyncio.gather(*map(act, work))

    asyncio.run(together())
    assert_nothing_crossed(context, work)


def test_callers_without_their_own_lose_nothing_while_changesets_come_and_go():
    """Each change is in one changeset, or its caller was told that there was none."""
    context = PlanExecutionContext(plan_id="p-1")
    total = 300

    def open_and_close(seed):
        chance = random.Random(seed)
        for _ in range(total):
            own = context.start_changeset()
            if chance.random() < 0.5:
                context.record_change(ChangeEntry.create(f"own/{own}", ""))
            context.finish_changeset()

    def record(caller):
        paths = [f"{caller}/{number}" for number in range(total)]
        codes = [code_of(context.record_change, ChangeEntry.create(path, "")) for path in paths]
        assert set(codes) <= {None, "CA4001"}
        return [path for path, code in zip(paths, codes, strict=True) if code is None]

    jobs = [lambda seed=seed: open_and_close(seed) for seed in range(4)]
    jobs += [lambda caller=caller: record(caller) for caller in "abcd"]
    kept = [path for paths in run_together(jobs) if paths for path in paths]
    recorded = [entry.path for entry in context.changes()]
    assert sorted(path for path in recorded if not path.startswith("own/")) == sorted(kept)
    for changeset in context.changesets():
        own = [entry.path for entry in changeset.entries if entry.path.startswith("own/")]
        assert own in ([], [f"own/{changeset.id}"])
    assert context._active_changeset_ids == []


def test_ids_are_unique_also_from_a_source_that_repeats_itself():
    turn = count()
    store = InMemoryChangesetStore(new_id=lambda: str(next(turn) // 2))
    started = run_together([lambda: [store.start("p-1") for _ in range(50)]] * 16)
    ids = [changeset_id for ids in started for changeset_id in ids]
    assert len(set(ids)) == len(ids) == 800
    assert {changeset.id for changeset in store.of_plan("p-1")} == set(ids)


def test_exactly_one_of_16_callers_creates_a_path_and_exactly_one_finishes():
    entry = ChangeEntry.create("a", "1")
    for _ in range(20):
        store = InMemoryChangesetStore()
        changeset_id = store.start("p-1")
        create = partial(code_of, store.record, changeset_id, entry)
        finish = partial(code_of, store.finish, changeset_id)
        assert sorted(map(str, run_together([create] * 16))) == ["CA4003"] * 15 + ["None"]
        assert sorted(map(str, run_together([finish] * 16))) == ["CA4002"] * 15 + ["None"]
        assert store.get(changeset_id).entries == (entry,)


def code_of(action, *arguments):
    try:
        action(*arguments)
    except PlanError as error:
        return error.code
    return None
