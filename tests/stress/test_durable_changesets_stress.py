"""Real threads on two stores of one file: no change is lost, doubled or crossed."""

from __future__ import annotations

from functools import partial

import pytest

from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]


@pytest.fixture
def stores(tmp_path):
    """As two processes would have them."""
    path = tmp_path / "state.db"
    with Store(path) as one, Store(path) as other:
        yield SqliteChangesetStore(one), SqliteChangesetStore(other)


def recorded(store, changeset_id, entry, refusal="CA4003"):
    try:
        store.record(changeset_id, entry)
    except PlanError as error:
        if error.code != refusal:
            raise
        return False
    return True


def test_actors_of_two_processes_keep_their_changes_apart(stores):
    contexts = [PlanExecutionContext("p", store) for store in stores]

    def act(n):
        context = contexts[n % 2]
        with context.changeset(actor=str(n)) as changeset_id:
            for step in range(4):
                context.record_change(ChangeEntry.create(f"{n}/{step}", str(n)))
        return changeset_id

    ids = run_together([partial(act, n) for n in range(40)])
    kept = {changeset.id: changeset for changeset in stores[0].of_plan("p")}
    assert sorted(kept) == sorted(ids)
    for n, changeset_id in enumerate(ids):
        changeset = kept[changeset_id]
        assert [entry.path for entry in changeset.entries] == [f"{n}/{step}" for step in range(4)]
        assert (changeset.actor, changeset.finished) == (str(n), True)


def test_writers_of_one_changeset_in_two_processes_create_each_path_once(stores):
    """Most are refused: groups are undone and done again, and memories become stale."""
    changeset_id = stores[0].start("p")

    def create(n):
        taken = []
        for step in range(6):
            path = (n + step) % 20
            if recorded(stores[n % 2], changeset_id, ChangeEntry.create(str(path), str(n))):
                taken.append(path)
        return taken

    taken = [
        path for paths in run_together([partial(create, n) for n in range(24)]) for path in paths
    ]
    assert sorted(taken) == list(range(20))
    entries = stores[1].get(changeset_id).entries
    assert sorted(int(entry.path) for entry in entries) == list(range(20))


def test_nothing_is_recorded_after_the_finish_by_whichever_process(stores):
    for _ in range(5):
        changeset_id = stores[0].start("p")

        def record(n, changeset_id=changeset_id):
            entry = ChangeEntry.create(str(n), "1")
            return entry.path if recorded(stores[n % 2], changeset_id, entry, "CA4002") else None

        def finish(changeset_id=changeset_id):
            stores[1].finish(changeset_id)
            return stores[1].get(changeset_id)

        *paths, finished = run_together([*(partial(record, n) for n in range(12)), finish])
        assert stores[0].get(changeset_id) == finished
        assert {entry.path for entry in finished.entries} == set(paths) - {None}
