"""The journal keeps runs, and lets one process at a time write about a plan."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from cleveragents.application.run_journal import Lost, NodeRecord, PlanState, StopRequest
from cleveragents.domain.budget import Scopes
from cleveragents.domain.errors import PlanError, StoreError
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure import plan_journal
from cleveragents.infrastructure.audit import verify_chain
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.plan_jobs import AsyncJob, JobHeart
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.infrastructure.sandbox.owner import Owner
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together

DONE = NodeRecord(
    id="port[2]",
    node="port",
    state=NodeState.DONE,
    attempt=3,
    actor="command:make",
    output={"n": [1, None], "odd": "caf\udce9"},
    changeset="c-1",
    feedback=("no",),
    error={"code": "CA4203"},
)
#: A process of another machine, of which nobody here can tell whether it lives.
STRANGER = Owner("ffffffffffffffff", 7, "9", "aa")


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "state.db") as store:
        yield store


@pytest.fixture
def journal(store, clock):
    journal = SqliteRunJournal(store, clock=clock)
    journal.add("p", "{}")
    return journal


def quiet(_):
    """Nobody listens."""


def refused(code, call, *args):
    with pytest.raises(PlanError) as caught:
        call(*args)
    assert caught.value.code == code
    return caught.value


def test_what_was_put_is_there_for_the_next_process(journal, store):
    book = journal.take("p", quiet)
    book.put(DONE)
    book.put(DONE, NodeRecord(id="x", node="x", state=NodeState.SKIPPED), wait=False)
    book.log(DONE, "hello")
    book.end(PlanState.DONE, None)
    assert journal.get("p").state is PlanState.DONE
    other = SqliteRunJournal(store)
    assert other.nodes("p") == (DONE, NodeRecord(id="x", node="x", state=NodeState.SKIPPED))
    with store.read() as connection:
        assert verify_chain(connection).holds


def test_plans_are_listed_in_the_order_of_their_coming(journal):
    journal.add("a", '{"x":1}', session="s", state=PlanState.DRAFT)
    assert [(one.id, one.state, one.session) for one in journal.plans()] == [
        ("p", PlanState.READY, None),
        ("a", PlanState.DRAFT, "s"),
    ]
    assert refused("CA4107", journal.get, "unknown").facts == {"plan": "unknown"}


def test_what_was_running_is_interrupted_and_waits_again(journal, store):
    book = journal.take("p", quiet)
    running = NodeRecord(id="a", node="a", state=NodeState.RUNNING, attempt=2)
    book.put(running, DONE)
    book.close()
    again = journal.take("p", quiet)
    assert again.interrupted == (running,)
    assert [one.state for one in again.nodes] == [NodeState.WAITING, NodeState.DONE]
    assert again.plan.state is PlanState.RUNNING
    again.close()
    with store.read() as connection:
        found = connection.execute("SELECT count(*) FROM events WHERE kind = 'node.interrupted'")
        assert found.fetchone() == (1,)


def test_plan_that_is_run_elsewhere_is_refused_with_who_and_since_when(journal, clock):
    book = journal.take("p", quiet)
    error = refused("CA6201", journal.take, "p", quiet)
    assert error.facts["since"] == clock()
    assert error.facts["pid"] == Owner.parse(error.facts["owner"]).pid
    refused("CA6201", journal.move, "p", PlanState.CANCELLED)
    book.end(PlanState.PAUSED, None)
    journal.take("p", quiet).close()


def test_exactly_one_of_many_takers_gets_the_plan(journal):
    books = []

    def take():
        with suppress(PlanError):
            books.append(journal.take("p", quiet))

    run_together([take] * 8)
    assert len(books) == 1
    books[0].close()


def taken_over(journal, store, clock):
    """Let a process of another machine hold the plan, be silent too long, and lose it."""
    old = SqliteRunJournal(store, clock=clock, owner=lambda: STRANGER).take("p", quiet)
    old._heart.close()
    refused("CA6201", journal.take, "p", quiet)
    clock.advance(10.1)
    return old, journal.take("p", quiet)


def test_old_holder_can_write_nothing_more_after_a_takeover(journal, store, clock):
    old, new = taken_over(journal, store, clock)
    assert new.fence == old.fence + 1
    refused("CA6202", old.put, DONE)
    old.put(DONE, wait=False)
    old.log(DONE, "late")
    refused("CA6202", old.revise, "[]")
    refused("CA6202", old.end, PlanState.DONE, None)
    old.close()
    new.put(NodeRecord(id="b", node="b", state=NodeState.DONE))
    assert [one.id for one in journal.nodes("p")] == ["b"]
    assert journal.job("p").fence == new.fence
    new.end(PlanState.DONE, None)


def test_journal_without_a_fence_is_caught(journal, store, clock, monkeypatch):
    """The test above would be worth nothing if the naive journal passed it."""
    old, new = taken_over(journal, store, clock)
    monkeypatch.setattr(plan_journal, "check_fence", lambda *_: None)
    with pytest.raises(pytest.fail.Exception):
        refused("CA6202", old.put, DONE)
    assert [one.id for one in journal.nodes("p")] == [DONE.id]
    new.close()


def test_dead_process_of_this_machine_is_taken_over_at_once(journal, store, clock):
    dead = Owner(Owner.here().machine, 2**22 - 1, "1", "aa")
    old = SqliteRunJournal(store, clock=clock, owner=lambda: dead).take("p", quiet)
    journal.take("p", quiet).close()
    old.close()


def test_owner_that_cannot_be_read_holds_until_its_lease_is_over():
    job = AsyncJob("p", "nonsense", 1, 0.0, 10.0)
    assert job.is_held(10.0)
    assert not job.is_held(10.1)


def heard_within(seconds=10.0):
    """Return a listener and a function that waits for the next news."""
    news, came = [], threading.Semaphore(0)

    def listen(one):
        news.append(one)
        came.release()

    def wait():
        assert came.acquire(timeout=seconds)
        return news[-1]

    return listen, wait


def test_wishes_of_others_are_heard_and_the_second_one_is_hard(journal):
    listen, wait = heard_within()
    book = journal.take("p", listen)
    journal.ask_to_stop("p", PlanState.PAUSED)
    assert wait() == StopRequest(PlanState.PAUSED)
    journal.ask_to_stop("p", PlanState.CANCELLED)
    assert wait() == StopRequest(PlanState.CANCELLED, hard=True)
    book.end(PlanState.CANCELLED, {"code": "x"})
    assert journal.job("p").wish is None
    assert journal.get("p").error == {"code": "x"}
    refused("CA6203", journal.ask_to_stop, "p", PlanState.PAUSED)


def test_loss_of_the_plan_is_heard(journal, store, clock):
    listen, wait = heard_within()
    old = SqliteRunJournal(store, clock=clock, owner=lambda: STRANGER, lease_s=10).take("p", quiet)
    old._heart.close()
    clock.advance(11)
    new = journal.take("p", quiet)
    seen = journal.job("p")
    heart = JobHeart(
        store,
        AsyncJob("p", str(STRANGER), seen.fence - 1, 0.0, 0.0),
        listen,
        lease_s=10,
        clock=clock,
    )
    lost = wait()
    assert isinstance(lost, Lost)
    assert lost.error.code == "CA6202"
    heart.close()
    new.close()


def test_heart_renews_the_lease_and_survives_a_store_in_trouble(tmp_path):
    """By a clock that always runs: each beat finds the last one long ago."""
    ticks = iter(range(0, 10**9, 5))
    path = tmp_path / "own.db"
    broken = threading.Event()
    beaten = threading.Semaphore(0)

    def fault(point):
        if point == "before-begin":
            beaten.release()
            if broken.is_set():
                raise StoreError("no room", code="CA6003")

    with Store(path, fault=fault) as store:
        journal = SqliteRunJournal(store, clock=lambda: float(next(ticks)), lease_s=0.02)
        journal.add("p", "{}")
        book = journal.take("p", quiet)
        first = journal.job("p").alive_until
        while journal.job("p").alive_until == first:
            assert beaten.acquire(timeout=10)
        broken.set()
        for _ in range(3):
            assert beaten.acquire(timeout=10)
        broken.clear()
        book.close()


def test_people_move_plans_only_along_the_rules(journal):
    refused("CA6203", journal.move, "p", PlanState.APPLIED)
    journal.move("p", PlanState.CANCELLED)
    book = journal.take("p", quiet)
    book.revise('{"b":1}')
    book.close()
    assert journal.get("p").state is PlanState.RUNNING
    journal.move("p", PlanState.CANCELLED)
    journal.take("p", quiet).end(PlanState.DONE, None)
    journal.move("p", PlanState.APPLIED)
    journal.move("p", PlanState.REVERTED)
    journal.take("p", quiet).close()
    assert journal.get("p").state is PlanState.REVERTED
    assert journal.get("p").source == '{"b":1}'


def test_folder_of_a_plan_is_kept_whatever_its_bytes(journal):
    journal.add("q", "{}", folder="plans/caf\udce9")
    assert journal.get("q").folder == "plans/caf\udce9"
    assert journal.get("p").folder is None


@pytest.mark.parametrize("again", [False, True], ids=["cancelled", "resumed"])
def test_what_a_dead_run_promised_is_charged_at_once_and_that_of_others_is_not(
    journal, store, again
):
    with DurableCostTracker(store) as tracker:
        journal.take("p", quiet).close()
        for plan_id in ("p", "q"):
            tracker.reserve(1, Scopes(plan=plan_id))
        if again:
            journal.take("p", quiet).close()
        else:
            journal.move("p", PlanState.CANCELLED)
        spent = [tracker.balance("plan", one).spent for one in ("p", "q")]
    assert spent == [Money.of(1), Money.of(0)]


def test_promises_are_not_touched_before_the_first_run_of_a_plan(journal, store):
    """A planner may have reserved money for it, and lives."""
    with DurableCostTracker(store) as tracker:
        tracker.reserve(1, Scopes(plan="p"))
        journal.take("p", quiet).close()
        assert tracker.balance("plan", "p").spent == Money.of(0)
