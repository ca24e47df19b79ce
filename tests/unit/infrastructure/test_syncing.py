"""Writes that do not wait for the disk: what dies with a process, and what with the machine."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading

import pytest

from cleveragents.application.attempts import Payer
from cleveragents.application.conversations import Turn
from cleveragents.domain.errors import PlanError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure import syncing
from cleveragents.infrastructure.audit import verify_balances, verify_chain
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.infrastructure.store import Store
from cleveragents.infrastructure.syncing import SYNC_S, Syncing
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.testing import FrozenClock

PAYER = Payer(plan_id="p", node="n", actor="llm")
PROMISED, COST = Money.of("0.5"), Money.of("0.1")


def append(kind="test"):
    return lambda tx: tx.event(kind, {}, at=1)


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.db"


@pytest.fixture
def one(path, clock):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    yield Syncing(connection, path, clock)
    connection.close()


def mode_of(one):
    return one._connection.execute("PRAGMA synchronous").fetchone()[0]


FULL, NORMAL = 2, 1


def test_commit_that_need_not_wait_is_due_a_little_later(one, clock):
    one.prepare(wait=False)
    assert mode_of(one) == NORMAL
    one.committed(surely=True)
    clock.advance(SYNC_S / 2)
    one.committed(surely=True)
    assert one.due_in_s == pytest.approx(SYNC_S / 2), "the oldest counts"


def test_commit_that_waits_takes_all_before_it_along(one):
    one.prepare(wait=False)
    one.committed(surely=True)
    one.prepare(wait=True)
    assert mode_of(one) == FULL
    one.committed(surely=True)
    assert one.due_in_s is None


def test_commit_that_may_have_changed_nothing_takes_nothing_along(one):
    """SQLite writes nothing then, and so it syncs nothing."""
    one.prepare(wait=False)
    one.committed(surely=True)
    one.prepare(wait=True)
    one.committed(surely=False)
    assert one.due_in_s is not None


def test_what_is_overdue_lets_the_next_commit_wait(one, clock):
    """Without it, writes that follow each other closely would never reach the disk."""
    one.prepare(wait=False)
    one.committed(surely=True)
    clock.advance(SYNC_S)
    one.prepare(wait=False)
    assert mode_of(one) == FULL


def test_what_nobody_takes_along_is_brought_to_the_disk(one, path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    one._connection.execute("CREATE TABLE t (a)")
    one.prepare(wait=False)
    one.committed(surely=True)
    one.catch_up()
    assert one.due_in_s is None
    assert synced == [path.with_name("state.db-wal").stat().st_ino]


def test_log_that_was_emptied_needs_no_sync(tmp_path):
    connection = sqlite3.connect(tmp_path / "other.db")
    Syncing(connection, tmp_path / "state.db").catch_up()
    connection.close()


def test_disk_that_fails_meanwhile_is_told_in_the_log(one, monkeypatch, caplog):
    def fails(_):
        raise OSError("broken")

    one._connection.execute("CREATE TABLE t (a)")
    monkeypatch.setattr(os, "fsync", fails)
    one.catch_up()
    assert "was not brought to the disk" in caplog.text


def test_store_that_is_idle_syncs_by_itself(path, monkeypatch):
    synced = threading.Event()
    monkeypatch.setattr(Syncing, "catch_up", lambda one: (setattr(one, "_due", None), synced.set()))
    with Store(path) as store:
        store.write(append(), sync=False)
        assert synced.wait(10)


def test_store_that_closes_syncs_first(path, monkeypatch):
    caught_up = []
    monkeypatch.setattr(syncing, "SYNC_S", 3600)
    monkeypatch.setattr(
        Syncing, "catch_up", lambda one: (setattr(one, "_due", None), caught_up.append(1))
    )
    with Store(path) as store:
        store.write(append(), sync=False)
    assert caught_up == [1]


def test_what_was_remembered_is_forgotten_when_another_process_writes(path):
    with Store(path) as one, Store(path) as other:
        for store in (one, other, one, one, other):
            store.write(append())
            store.write(append(), sync=False)
        with one.read() as connection:
            assert verify_chain(connection).checked == 10
            assert verify_chain(connection).holds


def test_what_was_remembered_is_forgotten_when_a_commit_fails(path):
    faults = []

    def fault(point):
        if point == "before-commit" and faults:
            raise faults.pop()

    with Store(path, fault=fault) as store:
        store.write(append())
        faults += [OSError("no")] * 2  # of the group, and of each write alone
        with pytest.raises(OSError, match="no"):
            store.write(append())
        assert store.write(append()) == 2
        with store.read() as connection:
            assert verify_chain(connection).holds


# -- answers that are kept and paid in one step --------------------------------------------


def turn(held, number=1):
    return Turn(
        number=number,
        attempt=1,
        model="m",
        request="[]",
        response="[]",
        usage=Usage(),
        cost=COST,
        reservation=held.id,
    )


class Machine:
    """A store, and what of it is on the disk for sure: a copy after each commit that waited."""

    def __init__(self, folder):
        self.path = folder / "state.db"
        self.disk = folder / "disk"
        self.disk.mkdir()
        self.commits = 0
        self.store = Store(self.path, fault=self._fault)

    def _fault(self, point):
        if point == "after-commit":
            self.commits += 1
            if self.store._syncing._waits:
                for file in self.path.parent.glob("state.db*"):
                    shutil.copy(file, self.disk)

    def after_its_death(self):
        """Return the store as it is found when the machine is switched on again."""
        (self.disk / "state.db-shm").unlink(missing_ok=True)
        return Store(self.disk / "state.db")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(syncing, "SYNC_S", 3600)
    found = Machine(tmp_path)
    yield found
    found.store.close()


def late():
    return 10**10


def test_answer_is_kept_and_paid_by_one_commit(machine):
    told = []
    with DurableCostTracker(machine.store) as tracker:
        conversations = SqliteConversations(machine.store)
        known = conversations.open("p", "n", "d")
        held = TrackerPurses(tracker).open(PAYER, told.append).reserve(PROMISED)
        before = machine.commits
        conversations.keep(known.id, turn(held), held)
        assert machine.commits == before + 1
        assert tracker.balance("plan", "p").spent == COST
        assert tracker.balance("plan", "p").promised == Money(0)
        assert told == [COST]
        assert len(conversations.open("p", "n", "d").turns) == 1


def test_answer_that_is_not_kept_is_not_paid_by_keeping_it(machine):
    """Both or neither; whoever asked pays for it then."""
    with DurableCostTracker(machine.store) as tracker:
        conversations = SqliteConversations(machine.store)
        known = conversations.open("p", "n", "d")
        held = TrackerPurses(tracker).open(PAYER, lambda _: None).reserve(PROMISED)
        with pytest.raises(PlanError):
            conversations.keep(known.id, turn(held, number=2), held)
        assert tracker.balance("plan", "p").promised == PROMISED


@pytest.mark.parametrize("elsewhere", [True, False], ids=["other-store", "memory"])
def test_books_that_are_elsewhere_are_paid_right_after(machine, tmp_path, elsewhere):
    with Store(tmp_path / "books.db") as books, DurableCostTracker(books) as durable:
        tracker = durable if elsewhere else CostTracker()
        conversations = SqliteConversations(machine.store)
        held = TrackerPurses(tracker).open(PAYER, lambda _: None).reserve(PROMISED)
        conversations.keep(conversations.open("p", "n", "d").id, turn(held), held)
        assert tracker.balance("plan", "p").spent == COST


def test_promise_survives_the_machine_where_its_answer_did_not(machine):
    """What may have been billed is charged at its upper bound: never is it silently free."""
    tracker = DurableCostTracker(machine.store)
    conversations = SqliteConversations(machine.store)
    held = TrackerPurses(tracker).open(PAYER, lambda _: None).reserve(PROMISED)
    conversations.keep(conversations.open("p", "n", "d").id, turn(held), held)
    with machine.after_its_death() as store, DurableCostTracker(store, clock=late) as found:
        assert [one.id for one in found.expire()] == [held.id]
        assert found.balance("plan", "p").spent == PROMISED
        assert SqliteConversations(store).open("p", "n", "d").turns == ()
        with store.read() as connection:
            assert verify_chain(connection).holds
            assert verify_balances(connection).holds
    tracker.close()


def test_next_promise_takes_the_answer_before_it_to_the_disk(machine):
    tracker = DurableCostTracker(machine.store)
    conversations = SqliteConversations(machine.store)
    purse = TrackerPurses(tracker).open(PAYER, lambda _: None)
    held = purse.reserve(PROMISED)
    conversations.keep(conversations.open("p", "n", "d").id, turn(held), held)
    purse.reserve(PROMISED)
    with machine.after_its_death() as store:
        assert len(SqliteConversations(store).open("p", "n", "d").turns) == 1
        with store.read() as connection:
            (spent,) = connection.execute(
                "SELECT spent FROM accounts WHERE key = 'plan:p'"
            ).fetchone()
    assert spent == COST.pico
    tracker.close()
