"""What the durable journal of errors adds to the contract: it survives, shares and tells."""

from __future__ import annotations

import json
import random
import sqlite3
from functools import partial

import pytest

from cleveragents.application.services.error_recovery_service import (
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.provider_gate import ProviderGate
from cleveragents.application.services.recovery_policy import Remedies
from cleveragents.application.services.retry_budget import RetryTerms
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import RequestError, StoreError
from cleveragents.infrastructure import sqlite_errors
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together

ALL = Remedies(other_model=True, shrink=True, replan=True, person=True)
FEW_TOKENS = RecoverySettings(retries=RetryTerms(tokens=20, cost=10))
TABLES = ("error_plans", "error_faults", "error_tries", "retry_tokens", "events", "chain")


class Overloaded(Exception):  # noqa: N818  # what an HTTP client might raise
    status_code = 503


class Fault:
    """Counts what the writer does, and raises at a named point while it is armed."""

    def __init__(self) -> None:
        self.point = ""
        self.times = 0
        self.commits = 0

    def arm(self, point, times=1_000):
        self.point, self.times = point, times

    def __call__(self, point):
        self.commits += point == "before-commit"
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
def store(path, fault):
    with Store(path, fault=fault) as store:
        yield store


@pytest.fixture
def service(store):
    return service_on(store)


def service_on(store, settings=None):
    clock = FrozenClock()
    return ErrorRecoveryService(
        settings,
        gate=ProviderGate(clock=clock),
        journal=None if store is None else SqliteErrorJournal(store),
        clock=clock,
        chance=lambda: 0.5,
    )


def rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def everything(path):
    return [rows(path, f"SELECT * FROM {table}") for table in TABLES]


class TestSurviving:
    def test_history_numbers_loops_and_rungs_go_on_after_a_restart(self, path):
        bad = partial(ValueError, "m")
        with Store(path) as store:
            before = service_on(store)
            for _ in range(3):
                before.handle("p", Overloaded(), ALL, node="n")
            for _ in range(2):
                before.record_error("p", bad(), category=ErrorCategory.BAD_OUTPUT)
            known = before.history("p")
        with Store(path) as store:
            after = service_on(store)
            assert after.history("p") == known
            looped = after.record_error("p", bad(), category=ErrorCategory.BAD_OUTPUT)
            assert (looped.seq, looped.category) == (6, ErrorCategory.LOOP)
            decision = after.handle("p", Overloaded(), ALL, node="n")
            assert (decision.seq, decision.record_seq) == (4, 7)
            assert decision.action is Action.FALL_BACK

    def test_a_restart_does_not_fill_the_retry_budget(self, path):
        with Store(path) as store:
            for node in "ab":
                service_on(store, FEW_TOKENS).handle("p", Overloaded(), node=node)
        with Store(path) as store:
            decision = service_on(store, FEW_TOKENS).handle("p", Overloaded(), node="c")
        assert "the retry budget of plan `p` is empty" in decision.reason

    @pytest.mark.parametrize("point", ["before-begin", "before-write", "before-commit"])
    def test_a_write_that_fails_leaves_nothing_in_the_store_or_in_memory(
        self, service, path, fault, point
    ):
        heard = []
        service._listener = heard.append
        record = service.record_error("p", Overloaded(), node="n")
        service.recover(record)
        before, known = everything(path), service.history("p")
        fault.arm(point)
        for ask in (
            partial(service.record_error, "p", Overloaded()),
            partial(service.record_error, "q", Overloaded()),
            partial(service.recover, record),
            partial(service.record_success, "p", node="n"),
        ):
            with pytest.raises(StoreError):
                ask()
        fault.arm("")
        assert everything(path) == before
        assert service.history("p") == known
        assert len(heard) == 2
        assert service.record_error("p", Overloaded()).seq == 2
        assert service.recover(record).action is Action.RETRY

    def test_a_write_that_is_done_twice_counts_and_costs_once(self, store, path, fault):
        service = service_on(store, FEW_TOKENS)
        for node in ("a", "b"):
            fault.arm("before-commit", times=1)
            record = service.record_error("p", Overloaded(), node=node)
            fault.arm("before-commit", times=1)
            assert service.recover(record).action is Action.RETRY
        fault.arm("before-commit", times=1)
        service.record_success("p", node="a")
        assert service.history("p").count == service.history("p").decision_count == 2
        assert rows(path, "SELECT * FROM retry_tokens") == [("plan `p`", 19)]
        assert rows(path, "SELECT node FROM error_tries") == [('"b"',)]

    def test_forgetting_a_plan_frees_memory_and_keeps_the_record(self, service):
        record = service.record_error("p", ValueError())
        service.forget("p")
        assert service.history("p").records == (record,)
        assert service.record_error("p", ValueError()).seq == 2


class TestSharing:
    def test_two_processes_number_one_plan_without_gap_or_duplicate(self, path, store):
        with Store(path) as second:
            services = (service_on(store), service_on(second))
            taken = [services[n % 2].record_error("p", ValueError(str(n))) for n in range(6)]
            assert [record.seq for record in taken] == [1, 2, 3, 4, 5, 6]
            jobs = [
                partial(services[n % 2].record_error, "p", ValueError(str(n))) for n in range(10)
            ]
            assert sorted(record.seq for record in run_together(jobs)) == list(range(7, 17))
            assert services[0].history("p") == services[1].history("p")
            assert [record.seq for record in services[0].history("p").records] == list(range(1, 17))

    def test_two_processes_never_share_a_retry_or_its_price(self, path, store):
        with Store(path) as second:
            services = [service_on(one, FEW_TOKENS) for one in (store, second)]
            actions = [
                services[n % 2].handle("p", Overloaded(), node=str(n)).action for n in range(4)
            ]
            assert actions == [Action.RETRY] * 2 + [Action.ABORT] * 2
            jobs = [partial(services[n % 2].handle, "q", Overloaded(), node="n") for n in range(8)]
            actions = sorted(decision.action for decision in run_together(jobs))
            assert actions == [Action.ABORT] * 6 + [Action.RETRY] * 2

    @pytest.mark.parametrize("seed", range(4))
    def test_it_decides_exactly_what_the_service_in_memory_decides(self, path, store, seed):
        chance = random.Random(seed)
        memory = service_on(None, FEW_TOKENS)
        faults = (Overloaded("m"), ValueError("m"), RequestError("m"), TimeoutError("m"))
        with Store(path) as second:
            turns = [service_on(one, FEW_TOKENS) for one in (store, second)]
            for _ in range(80):
                durable = chance.choice(turns)
                plan_id, node = chance.choice("pq"), chance.choice([None, "n"])
                if chance.random() < 0.2:
                    for service in (memory, durable):
                        service.record_success(plan_id, node=node, provider="openai")
                    continue
                error, remedies = chance.choice(faults), chance.choice([None, ALL])
                hints = {"node": node, "provider": chance.choice([None, "openai"])}
                if chance.random() < 0.5:
                    hints["category"] = chance.choice(list(ErrorCategory))
                assert durable.handle(plan_id, error, remedies, **hints) == memory.handle(
                    plan_id, error, remedies, **hints
                )
            for plan_id in "pq":
                assert facts_of(turns[0], plan_id) == facts_of(memory, plan_id)


def facts_of(service, plan_id):
    snapshot = service.history(plan_id)
    records = [{**record.to_dict(), "id": ""} for record in snapshot.records]
    return records, snapshot.decisions, snapshot.count, snapshot.by_category


class TestCosts:
    def test_a_success_where_nothing_failed_writes_nothing(self, service, fault):
        service.record_success("p", node="n", provider="openai")
        assert fault.commits == 0
        service.handle("p", Overloaded(), node="n", provider="openai")
        assert fault.commits == 2
        service.record_success("q", node="n", provider="other")
        assert fault.commits == 2
        service.record_success("q", node="n", provider="openai")
        assert fault.commits == 3

    def test_a_full_bucket_takes_no_room(self, service, path):
        service.handle("p", Overloaded(), node="n")
        for _ in range(10):
            service.record_success("p", node="n")
        assert rows(path, "SELECT * FROM retry_tokens") == []

    def test_memory_holds_no_history(self, service):
        service.handle("p", Overloaded())
        assert service._histories == {}

    @pytest.mark.parametrize(
        ("query", "index"),
        [
            (sqlite_errors._LAST_RECORDS, "error_records"),
            (sqlite_errors._LAST_DECISIONS, "error_decisions"),
        ],
    )
    def test_the_last_records_are_found_without_reading_the_others(self, store, query, index):
        with store.read() as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", ("p", 1)).fetchall()
        assert len(plan) == 1
        assert f"USING INDEX {index} (plan=?)" in plan[0][-1]


class TestTelling:
    def test_records_and_decisions_are_events_of_their_plan_and_actor(self, service, path):
        decision = service.handle("p", Overloaded("busy"), actor="writer")
        (record,) = service.history("p").records
        told = rows(path, "SELECT kind, plan, actor, at, body FROM events ORDER BY seq")
        assert [row[:4] for row in told] == [
            ("error.recorded", "p", "writer", record.at),
            ("error.decided", "p", "writer", decision.at),
        ]
        assert [json.loads(row[4]) for row in told] == [record.to_dict(), decision.to_dict()]

    def test_no_secret_reaches_the_file(self, service, store, path):
        key = "sk-" + "a1b2c3d4" * 4
        filler = "x" * 1_990
        messages = (f"api_key={key}", f"{filler} {key}", f"{filler} api_key={key}")
        records = [
            service.record_error("p", ValueError(message), node=key, actor=key, provider=key)
            for message in messages
        ]
        for record in records:
            service.recover(record)
        assert service.history("p").records == tuple(records)
        service.record_success("p", node=key, provider=key)
        store.close()
        files = list(path.parent.iterdir())
        assert not any(key.encode() in file.read_bytes() for file in files)

    def test_a_plan_whose_name_is_not_utf_8_is_refused(self, service):
        for ask in (
            partial(service.record_error, "caf\udce9", ValueError()),
            partial(service.record_success, "caf\udce9"),
            partial(service.history, "caf\udce9"),
        ):
            with pytest.raises(RequestError, match="must be a text that UTF-8 can hold"):
                ask()
