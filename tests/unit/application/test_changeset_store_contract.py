"""What every `ChangesetStore` promises; a new store joins by a branch of the fixture `make`."""

from __future__ import annotations

from functools import partial
from itertools import count, repeat

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.ports import ChangesetStore
from cleveragents.domain.changeset import ChangeEntry, Changeset
from cleveragents.domain.errors import InternalError, PlanError
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together

CREATE = ChangeEntry.create("a.py", "1")
MODIFY = ChangeEntry.modify("a.py", "1", "2")


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite"])
def make(request, tmp_path):
    """Make a store of the kind; further keywords go to it."""
    if request.param == "memory":
        yield InMemoryChangesetStore
    else:
        with Store(tmp_path / "state.db") as durable:
            yield partial(SqliteChangesetStore, durable)


@pytest.fixture
def store(make, clock):
    ids = count(1)
    return make(new_id=lambda: str(next(ids)), clock=clock)


def assert_refused(code, action, *arguments):
    with pytest.raises(PlanError) as caught:
        action(*arguments)
    assert caught.value.code == code
    return caught.value


def test_store_contract_offers_every_method_of_the_port(store):
    methods = {name for name in vars(ChangesetStore) if not name.startswith("_")}
    assert methods == {"start", "record", "finish", "get", "of_plan"}
    assert methods <= set(dir(store))


def test_store_contract_start_opens_an_empty_changeset_of_its_owner(store):
    changeset_id = store.start("p-1", actor="writer", node="n-1", attempt=2)
    assert store.get(changeset_id) == Changeset(
        id="c-1", plan_id="p-1", actor="writer", node="n-1", attempt=2, entries=(), finished=False
    )


def test_store_contract_entries_keep_the_order_in_which_they_were_recorded(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, CREATE)
    store.record(changeset_id, MODIFY)
    assert store.get(changeset_id).entries == (CREATE, MODIFY)


def test_store_contract_a_snapshot_does_not_change_later(store):
    changeset_id = store.start("p-1")
    snapshot = store.get(changeset_id)
    store.record(changeset_id, CREATE)
    store.finish(changeset_id)
    assert (snapshot.entries, snapshot.finished) == ((), False)


def test_store_contract_a_plan_has_its_changesets_in_the_order_of_their_start(store):
    first, other, second = store.start("p-1"), store.start("p-2"), store.start("p-1")
    store.finish(first)
    assert [changeset.id for changeset in store.of_plan("p-1")] == [first, second]
    assert [changeset.id for changeset in store.of_plan("p-2")] == [other]
    assert store.of_plan("p-3") == ()


def test_store_contract_a_finished_changeset_takes_no_change_and_stays_as_it_is(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, CREATE)
    store.finish(changeset_id)
    error = assert_refused("CA4002", store.record, changeset_id, MODIFY)
    assert error.message == "Changeset `c-1` is finished and takes no more changes"
    assert_refused("CA4002", store.finish, changeset_id)
    assert (store.get(changeset_id).entries, store.get(changeset_id).finished) == ((CREATE,), True)


def test_store_contract_an_unknown_changeset_is_refused(store):
    for action in (store.get, store.finish, lambda name: store.record(name, CREATE)):
        error = assert_refused("CA4002", action, "c-9")
        assert error.message == "Changeset 'c-9' was never started"


def test_store_contract_an_entry_that_cannot_follow_leaves_no_trace(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, CREATE)
    assert_refused("CA4003", store.record, changeset_id, CREATE)
    store.record(changeset_id, MODIFY)
    store.record(changeset_id, ChangeEntry.delete("a.py", "2"))
    assert_refused("CA4003", store.record, changeset_id, MODIFY)
    assert len(store.get(changeset_id).entries) == 3
    store.record(changeset_id, CREATE)


def test_store_contract_changesets_do_not_know_of_each_other(store):
    """Two actors may create one path, each in its sandbox; the merge decides, not the record."""
    for changeset_id in (store.start("p-1"), store.start("p-1")):
        store.record(changeset_id, CREATE)
        assert store.get(changeset_id).entries == (CREATE,)


def test_store_contract_every_kind_of_entry_is_given_back_as_it_was_recorded(store):
    entries = (
        ChangeEntry.create("a", b"1", 0o755, actor="w", node="n", attempt=3, tool_call="t"),
        ChangeEntry.modify("a", b"1", b""),
        ChangeEntry.rename("a", "b"),
        ChangeEntry.rename("b", "c/d", b"", b"2"),
        ChangeEntry.change_mode("c/d", 0o755, 0o644),
        ChangeEntry.delete("c/d", b"2"),
        ChangeEntry.create("l", b"target", 0o120000),
    )
    changeset_id = store.start("p-1")
    for entry in entries:
        store.record(changeset_id, entry)
    kept = store.get(changeset_id).entries
    assert kept == entries
    assert [type(entry.kind) for entry in kept] == [type(entry.kind) for entry in entries]
    assert [entry.mode_after for entry in kept] == [entry.mode_after for entry in entries]
    assert [entry.after and entry.after.data for entry in kept] == [
        entry.after and entry.after.data for entry in entries
    ]


def test_store_contract_many_writers_of_one_changeset_each_keep_their_order(store):
    changeset_id = store.start("p-1")

    def work(name):
        for n in range(5):
            store.record(changeset_id, ChangeEntry.create(f"{name}/{n}", "1"))

    run_together([partial(work, name) for name in "abcd"])
    paths = [entry.path for entry in store.get(changeset_id).entries]
    assert len(paths) == 20
    for name in "abcd":
        assert [path for path in paths if path[0] == name] == [f"{name}/{n}" for n in range(5)]


def test_store_contract_a_path_is_created_by_one_of_many(store):
    changeset_id = store.start("p-1")

    def create():
        try:
            store.record(changeset_id, CREATE)
        except PlanError as error:
            return error.code

    answers = run_together([create] * 8)
    assert sorted(map(str, answers)) == ["CA4003"] * 7 + ["None"]
    assert store.get(changeset_id).entries == (CREATE,)


@pytest.mark.parametrize(("what", "maker"), [("actor", "b"), ("node", "n-2"), ("attempt", 2)])
def test_store_contract_an_entry_of_another_maker_is_refused(store, what, maker):
    changeset_id = store.start("p-1", actor="a", node="n-1", attempt=1)
    store.record(changeset_id, ChangeEntry.create("x", "1", actor="a", node="n-1", attempt=1))
    error = assert_refused(
        "CA4003", store.record, changeset_id, ChangeEntry.create("y", "1", **{what: maker})
    )
    assert f"is of {what}" in error.message
    assert len(store.get(changeset_id).entries) == 1


def test_store_contract_an_entry_without_a_time_gets_the_time_of_its_record(store, clock):
    changeset_id = store.start("p-1")
    store.record(changeset_id, ChangeEntry.create("a", "1", at=7.0))
    clock.advance(60)
    store.record(changeset_id, ChangeEntry.create("b", "1"))
    assert [entry.at for entry in store.get(changeset_id).entries] == [7.0, clock()]


def test_store_contract_names_that_are_not_utf_8_survive(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, ChangeEntry.create("caf\udce9", b"\xff\0"))
    (entry,) = store.get(changeset_id).entries
    assert (entry.path, entry.after.data) == ("caf\udce9", b"\xff\0")


def test_store_contract_equal_contents_are_kept_once(store):
    text = "x" * 1000
    for _ in range(2):
        changeset_id = store.start("p-1")
        store.record(changeset_id, ChangeEntry.create("a", text.encode()))
        store.record(changeset_id, ChangeEntry.modify("a", text.encode(), "y"))
    first, second = store.of_plan("p-1")
    kept = {id(entry.after.data) for entry in (*first.entries, *second.entries)}
    kept |= {id(entry.before.data) for entry in (first.entries[1], second.entries[1])}
    assert len(kept) == 2


def test_store_contract_every_changeset_has_an_id_of_its_own(make):
    store = make()
    ids = [store.start("p-1") for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(len(changeset_id) == len("c-0123456789") for changeset_id in ids)


def test_store_contract_asks_again_when_an_id_is_taken(make):
    ids = iter(["same", "same", "other"])
    store = make(new_id=lambda: next(ids))
    assert [store.start("p-1"), store.start("p-1")] == ["c-same", "c-other"]


def test_store_contract_gives_up_on_a_source_of_ids_that_repeats_for_ever(make):
    ids = repeat("same")
    store = make(new_id=lambda: next(ids))
    store.start("p-1")
    with pytest.raises(InternalError, match="repeated itself"):
        store.start("p-1")
    assert len(store.of_plan("p-1")) == 1


def test_store_contract_many_entries_are_recorded_in_their_order(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, CREATE, MODIFY)
    assert store.get(changeset_id).entries == (CREATE, MODIFY)


def test_store_contract_many_entries_are_refused_together(store):
    changeset_id = store.start("p-1")
    store.record(changeset_id, ChangeEntry.create("b.py", "1"))
    assert_refused("CA4003", store.record, changeset_id, CREATE, CREATE)
    assert [entry.path for entry in store.get(changeset_id).entries] == ["b.py"]
    # Nothing of the refused ones is remembered either: the first of them is still possible.
    store.record(changeset_id, CREATE)
    assert_refused("CA4003", store.record, changeset_id, ChangeEntry.create("b.py", "1"))
