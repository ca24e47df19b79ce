"""What the durable store of changesets adds to the contract: it survives, shares and tells."""

from __future__ import annotations

import json
import random
import sqlite3
from dataclasses import replace
from functools import partial
from itertools import count

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.errors import PlanError, RequestError, StoreError
from cleveragents.infrastructure import sqlite_changesets
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, Gate

CREATE = ChangeEntry.create("a.py", "1")
MODIFY = ChangeEntry.modify("a.py", "1", "2")
DELETE = ChangeEntry.delete("a.py", "2")


class Fault:
    """Raises at a named point while it is armed, this many times."""

    def __init__(self) -> None:
        self.point = ""
        self.times = 0

    def arm(self, point, times=1_000):
        self.point, self.times = point, times

    def __call__(self, point):
        if point == self.point and self.times:
            self.times -= 1
            raise sqlite3.OperationalError("disk I/O error")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.db"


@pytest.fixture
def fault():
    return Fault()


@pytest.fixture
def durable(path, fault):
    with Store(path, fault=fault) as store:
        yield store


@pytest.fixture
def store(durable):
    ids = count(1)
    return SqliteChangesetStore(durable, new_id=lambda: str(next(ids)), clock=FrozenClock())


def code_of(action, *arguments):
    try:
        action(*arguments)
    except PlanError as error:
        return error.code
    return None


def rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def everything(path):
    tables = ("contents", "changesets", "changes", "events", "chain")
    return [rows(path, f"SELECT * FROM {table}") for table in tables]


class TestSurviving:
    def test_what_was_acknowledged_is_there_after_a_restart(self, path):
        with Store(path) as durable:
            before = SqliteChangesetStore(durable)
            done = before.start("p-1", actor="writer", node="n", attempt=2)
            before.record(done, CREATE)
            before.finish(done)
            begun = before.start("p-1")
            before.record(begun, CREATE)
            before.record(begun, ChangeEntry.rename("a.py", "caf\udce9"))
            known = before.of_plan("p-1")
        with Store(path) as durable:
            after = SqliteChangesetStore(durable)
            assert after.of_plan("p-1") == known
            assert code_of(after.record, done, MODIFY) == "CA4002"
            assert code_of(after.record, begun, MODIFY) == "CA4003"
            assert code_of(after.record, begun, ChangeEntry.create("caf\udce9", "1")) == "CA4003"
            after.record(begun, CREATE)
            assert [entry.path for entry in after.get(begun).entries] == [
                "a.py",
                "caf\udce9",
                "a.py",
            ]

    def test_a_plan_can_be_shown_by_a_process_that_did_not_run_it(self, path):
        with Store(path) as durable:
            context = PlanExecutionContext("p-1", SqliteChangesetStore(durable))
            with context.changeset(actor="writer"):
                context.record_change(CREATE)
                context.record_change(MODIFY)
            diff = context.diff()
        with Store(path) as durable:
            assert PlanExecutionContext("p-1", SqliteChangesetStore(durable)).diff() == diff
        assert "+2" in diff

    @pytest.mark.parametrize("point", ["before-begin", "before-write", "before-commit"])
    def test_a_write_that_fails_leaves_nothing(self, store, path, fault, point):
        changeset_id = store.start("p-1")
        store.record(changeset_id, CREATE)
        before = everything(path)
        fault.arm(point)
        for action in (
            partial(store.start, "p-1"),
            partial(store.record, changeset_id, MODIFY),
            partial(store.finish, changeset_id),
        ):
            with pytest.raises(StoreError):
                action()
        fault.arm("")
        assert everything(path) == before
        store.record(changeset_id, MODIFY)
        assert code_of(store.record, changeset_id, CREATE) == "CA4003"
        store.finish(changeset_id)
        assert store.get(changeset_id).entries == (CREATE, MODIFY)

    def test_a_write_that_fails_half_way_is_not_remembered(self, store, durable):
        changeset_id = store.start("p-1")
        store.record(changeset_id, CREATE)
        refuse = (
            "CREATE TEMP TRIGGER full BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, ''); END"
        )
        durable.write(lambda tx: tx.execute(refuse).close())
        with pytest.raises(StoreError):
            store.record(changeset_id, DELETE)
        durable.write(lambda tx: tx.execute("DROP TRIGGER full").close())
        store.record(changeset_id, MODIFY)
        assert store.get(changeset_id).entries == (CREATE, MODIFY)

    def test_a_write_that_is_done_twice_counts_once(self, store, path, fault):
        changeset_id = store.start("p-1")
        for entry in (CREATE, MODIFY, DELETE):
            fault.arm("before-commit", times=1)
            store.record(changeset_id, entry)
        fault.arm("before-commit", times=1)
        store.finish(changeset_id)
        assert store.get(changeset_id).entries == (CREATE, MODIFY, DELETE)
        assert rows(path, "SELECT number FROM changes") == [(1,), (2,), (3,)]

    def test_a_refused_neighbour_in_the_same_commit_harms_nobody(self, store, durable):
        """The group is undone and done again one by one: nobody may remember the first time."""
        ids = [store.start("p-1") for _ in range(3)]
        for changeset_id in ids:
            store.record(changeset_id, CREATE)
        gate = Gate()
        durable.submit(lambda _: gate.pass_through())
        gate.wait_for(1)
        order = [(ids[0], MODIFY), (ids[1], MODIFY), (ids[2], CREATE), (ids[0], DELETE)]
        tickets = [
            durable.submit(lambda tx, order=order: store._record(tx, *order, 0.0))
            for order in [(one, replace(entry, at=0.0)) for one, entry in order]
        ]
        gate.open()
        assert [code_of(ticket.result) for ticket in tickets] == [None, None, "CA4003", None]
        assert [len(store.get(changeset_id).entries) for changeset_id in ids] == [3, 2, 1]
        assert code_of(store.record, ids[0], MODIFY) == "CA4003"
        assert code_of(store.record, ids[1], CREATE) == "CA4003"


class TestSharing:
    def test_two_processes_see_one_changeset(self, path, store):
        with Store(path) as second:
            other = SqliteChangesetStore(second)
            changeset_id = store.start("p-1")
            store.record(changeset_id, CREATE)
            assert code_of(other.record, changeset_id, CREATE) == "CA4003"
            other.record(changeset_id, MODIFY)
            other.record(changeset_id, DELETE)
            assert code_of(store.record, changeset_id, MODIFY) == "CA4003"
            store.record(changeset_id, CREATE)
            assert other.get(changeset_id).entries == (CREATE, MODIFY, DELETE, CREATE)
            other.finish(changeset_id)
            assert code_of(store.record, changeset_id, DELETE) == "CA4002"
            assert code_of(store.finish, changeset_id) == "CA4002"

    def test_two_processes_never_share_an_id(self, path, store):
        ids = count(1)
        with Store(path) as second:
            other = SqliteChangesetStore(second, new_id=lambda: str(next(ids)))
            assert [store.start("p-1"), other.start("p-1")] == ["c-1", "c-2"]

    @pytest.mark.parametrize("seed", range(4))
    def test_it_refuses_exactly_what_the_store_in_memory_refuses(self, path, store, seed):
        """Two processes take turns; a memory of either that is not up to date would show."""
        chance = random.Random(seed)
        memory = InMemoryChangesetStore(new_id=lambda: "1", clock=FrozenClock())
        with Store(path) as second:
            turns = (store, SqliteChangesetStore(second, clock=FrozenClock()))
            assert memory.start("p") == store.start("p")
            for _ in range(60):
                entry = random_entry(chance)
                answer = code_of(chance.choice(turns).record, "c-1", entry)
                assert answer == code_of(memory.record, "c-1", entry)
            assert store.get("c-1") == turns[1].get("c-1") == memory.get("c-1")


def random_entry(chance):
    one, other = chance.sample(["a", "b", "a/c", "a/d"], 2)
    return chance.choice(
        [
            ChangeEntry.create(one, "1"),
            ChangeEntry.modify(one, "1", "2"),
            ChangeEntry.delete(one, "2"),
            ChangeEntry.rename(one, other),
            ChangeEntry.change_mode(one, 0o644, 0o755),
        ]
    )


class TestMemory:
    def test_a_record_does_not_read_the_entries_before_it(self, store, durable):
        changeset_id = store.start("p-1")
        store.record(changeset_id, CREATE)
        said = []
        durable._connection.set_trace_callback(said.append)
        store.record(changeset_id, MODIFY)
        assert any("INSERT INTO changes" in statement for statement in said)
        assert not any("FROM changes WHERE" in statement for statement in said)

    def test_open_changesets_are_remembered_by_their_paths_alone(self, store):
        changeset_id = store.start("p-1")
        store.record(changeset_id, CREATE)
        _, overlay = store._overlays[changeset_id]
        assert [file.content for file in overlay._files.values()] == [None]

    def test_finished_changesets_are_not_remembered(self, store):
        changeset_id = store.start("p-1")
        store.record(changeset_id, CREATE)
        store.finish(changeset_id)
        assert store._overlays == {}

    def test_of_many_open_changesets_the_least_used_is_read_again(self, store, monkeypatch):
        monkeypatch.setattr(sqlite_changesets, "OVERLAYS_MAX", 2)
        ids = [store.start("p-1") for _ in range(3)]
        for changeset_id in ids:
            store.record(changeset_id, CREATE)
        assert list(store._overlays) == ids[1:]
        assert code_of(store.record, ids[0], CREATE) == "CA4003"
        store.record(ids[0], MODIFY)

    def test_equal_contents_have_one_row(self, store, path):
        for _ in range(3):
            changeset_id = store.start("p-1")
            store.record(changeset_id, CREATE)
            store.record(changeset_id, MODIFY)
        assert rows(path, "SELECT size, data FROM contents") == [(1, b"1"), (1, b"2")]


class TestTelling:
    def test_every_step_is_an_event_of_its_plan_and_actor(self, store, path):
        changeset_id = store.start("p-1", actor="writer", node="n", attempt=2)
        store.record(changeset_id, ChangeEntry.create("caf\udce9", "1", tool_call="t-1", at=7))
        store.finish(changeset_id)
        told = rows(path, "SELECT kind, plan, actor, body FROM events ORDER BY seq")
        assert [row[:3] for row in told] == [
            ("changeset.started", "p-1", "writer"),
            ("change.recorded", "p-1", "writer"),
            ("changeset.finished", "p-1", "writer"),
        ]
        started, recorded, finished = (json.loads(row[3]) for row in told)
        assert started == {"changeset": "c-1", "node": "n", "attempt": 2}
        assert recorded == {
            "changeset": "c-1",
            "number": 1,
            "kind": "create",
            "path": "caf\\udce9",
            "old_path": None,
            "before": None,
            "after": CREATE.after.sha256,
            "mode_before": None,
            "mode_after": 0o100644,
            "node": "n",
            "attempt": 2,
            "tool_call": "t-1",
            "at": 7.0,
        }
        (digest,) = rows(path, "SELECT hex(digest) FROM changesets")[0]
        assert finished == {"changeset": "c-1", "entries": 1, "digest": digest.lower()}

    def test_an_entry_tells_its_own_maker_where_the_changeset_names_none(self, store, path):
        changeset_id = store.start("p-1")
        store.record(changeset_id, ChangeEntry.create("a", "1", actor="b", node="n", attempt=1))
        actor, body = rows(path, "SELECT actor, body FROM events")[-1]
        assert (actor, json.loads(body)["node"], json.loads(body)["attempt"]) == ("b", "n", 1)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE changes SET path = CAST('b.py' AS BLOB)",
        "UPDATE changes SET kind = 'delete' WHERE number = 2",
        "DELETE FROM changes WHERE number = 2",
        "UPDATE contents SET data = CAST('3' AS BLOB)",
        "DELETE FROM contents",
    ],
    ids=["path", "kind", "missing", "content", "no content"],
)
def test_a_changed_row_is_found_when_it_is_read(store, path, damage):
    changeset_id = store.start("p-1")
    store.record(changeset_id, CREATE)
    store.record(changeset_id, MODIFY)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(damage)
    connection.close()
    for ask in (partial(store.get, changeset_id), partial(store.of_plan, "p-1")):
        with pytest.raises(StoreError, match="The store is damaged") as caught:
            ask()
        assert caught.value.code == "CA6004"


def test_names_that_are_not_utf_8_are_refused(store, path):
    odd = "caf\udce9"
    changeset_id = store.start("p-1")
    for ask in (
        partial(store.start, odd),
        partial(store.of_plan, odd),
        partial(store.start, "p-1", actor=odd),
        partial(store.start, "p-1", node=odd),
        partial(store.record, changeset_id, ChangeEntry.create("a", "1", tool_call=odd)),
    ):
        with pytest.raises(RequestError, match="must be a text that UTF-8 can hold"):
            ask()
    assert code_of(store.get, odd) == "CA4002"
    assert len(rows(path, "SELECT * FROM events")) == 1
