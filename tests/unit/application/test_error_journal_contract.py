"""What recovery promises wherever it keeps errors; a new journal joins by a branch of `journal`."""

from __future__ import annotations

import pytest

from cleveragents.application.ports import ErrorJournal
from cleveragents.application.services.error_recovery_service import (
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.provider_gate import ProviderGate
from cleveragents.application.services.recovery_policy import RecoveryPolicy, Remedies
from cleveragents.application.services.retry_budget import RetryTerms
from cleveragents.domain.error_record import Action, ErrorCategory, ErrorRecord, HistorySnapshot
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.store import Store
from cleveragents.testing import FrozenClock, run_together

ALL = Remedies(other_model=True, shrink=True, replan=True, person=True)
BAD_OUTPUT = {"category": ErrorCategory.BAD_OUTPUT}


class Overloaded(Exception):  # noqa: N818  # what an HTTP client might raise
    status_code = 503


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path):
    """None is the memory of the service itself."""
    if request.param == "memory":
        yield None
    else:
        with Store(tmp_path / "state.db") as store:
            yield SqliteErrorJournal(store)


@pytest.fixture
def service_of(journal, clock):
    def make(listener=None, **settings):
        return ErrorRecoveryService(
            RecoverySettings(**settings),
            gate=ProviderGate(clock=clock),
            listener=listener,
            journal=journal,
            clock=clock,
            chance=lambda: 0.5,
        )

    return make


@pytest.fixture
def service(service_of):
    return service_of()


def test_journal_contract_offers_every_method_of_the_port():
    methods = {name for name in vars(ErrorJournal) if not name.startswith("_")}
    assert methods == {"add", "decide", "succeed", "history"}
    assert methods <= set(dir(SqliteErrorJournal))


def test_journal_contract_a_plan_without_errors_has_an_empty_history(service):
    assert service.history("p") == HistorySnapshot(plan_id="p")


def test_journal_contract_records_are_kept_as_they_were_returned_with_numbers_from_one(
    service, clock
):
    hints = {"node": "n", "actor": "a", "attempt": 2, "provider": "openai", "model": "small"}
    records = [service.record_error("p", Overloaded(str(n)), **hints) for n in range(3)]
    other = service.record_error("q", ValueError())
    assert [record.seq for record in records] == [1, 2, 3]
    assert service.history("p").records == tuple(records)
    assert service.history("q").records == (other,)
    assert records[0].at == clock()


def test_journal_contract_a_snapshot_does_not_change_later(service):
    service.record_error("p", ValueError())
    before = service.history("p")
    service.handle("p", ValueError())
    assert (before.count, len(before.records), before.decision_count) == (1, 1, 0)
    assert before.by_category == {ErrorCategory.UNKNOWN: 1}


def test_journal_contract_the_tail_is_shown_and_counts_stay_exact(service_of):
    service = service_of(kept_max=3)
    for n in range(10):
        category = ErrorCategory.QUOTA if n < 4 else ErrorCategory.UNKNOWN
        service.handle("p", ValueError(), category=category)
    snapshot = service.history("p")
    assert [record.seq for record in snapshot.records] == [8, 9, 10]
    assert [decision.seq for decision in snapshot.decisions] == [8, 9, 10]
    assert (snapshot.count, snapshot.decision_count) == (10, 10)
    assert snapshot.by_category == {ErrorCategory.QUOTA: 4, ErrorCategory.UNKNOWN: 6}


def test_journal_contract_the_third_time_is_a_loop_of_its_node_also_after_eviction(service_of):
    service = service_of(kept_max=1)
    categories = [
        service.record_error("p", ValueError(), node="n", **BAD_OUTPUT).category for _ in range(4)
    ]
    assert categories == [ErrorCategory.BAD_OUTPUT] * 2 + [ErrorCategory.LOOP] * 2
    (last,) = service.history("p").records
    assert last.underlying is ErrorCategory.BAD_OUTPUT
    for node in ("other", None):
        fresh = service.record_error("p", ValueError(), node=node, **BAD_OUTPUT)
        assert fresh.category is ErrorCategory.BAD_OUTPUT
    assert service.history("p").by_category == {
        ErrorCategory.BAD_OUTPUT: 4,
        ErrorCategory.LOOP: 2,
    }


def test_journal_contract_waiting_again_for_a_provider_is_no_loop(service):
    categories = {service.record_error("p", Overloaded()).category for _ in range(5)}
    assert categories == {ErrorCategory.OVERLOADED}


def test_journal_contract_decisions_are_kept_in_order_with_their_reason(service, clock):
    first = service.handle("p", Overloaded(), node="n")
    clock.advance(1)
    second = service.handle("p", Overloaded(), ALL, node="n", provider="openai")
    snapshot = service.history("p")
    assert snapshot.decisions == (first, second)
    assert [(d.seq, d.record_seq, d.at) for d in snapshot.decisions] == [
        (1, 1, clock() - 1),
        (2, 2, clock()),
    ]
    assert first.reason == "llm.overloaded: retry"


def test_journal_contract_a_fault_that_stays_climbs_its_ladder_also_after_eviction(service_of):
    service = service_of(kept_max=1)
    actions = [service.handle("p", Overloaded(), ALL, node="n").action for _ in range(5)]
    for n in range(3):
        service.handle("p", ValueError(), ALL, node=f"other {n}")
    actions.append(service.handle("p", Overloaded(), ALL, node="n").action)
    assert actions == [Action.RETRY] * 2 + [Action.FALL_BACK] * 3 + [Action.ASK]


def test_journal_contract_a_success_starts_the_tries_of_its_node_anew_but_not_the_ladder(service):
    for _ in range(2):
        assert service.handle("p", Overloaded(), node="n").action is Action.RETRY
    service.record_success("p", node="other")
    service.record_success("p")
    assert service.handle("p", Overloaded(), node="n").action is Action.ABORT
    service.record_success("q", node="n")
    for _ in range(2):
        assert service.handle("q", Overloaded(), node="n").action is Action.RETRY
        service.record_success("q", node="n")
        assert service.handle("q", Overloaded(), node="n").action is Action.RETRY
        service.record_success("q", node="n")
    for _ in range(3):
        last = service.handle("q", Overloaded(), ALL, node="n")
    assert last.action is Action.FALL_BACK
    service.record_success("q", node="n")
    assert service.handle("q", Overloaded(), ALL, node="n").action is Action.FALL_BACK


def test_journal_contract_replans_are_counted_for_the_whole_plan(service_of):
    service = service_of(policy=RecoveryPolicy(replans_max=1))
    assert service.handle("p", RequestError("m"), ALL, node="a").action is Action.REPLAN
    assert service.handle("p", RequestError("m"), ALL, node="b").action is Action.ASK
    assert service.handle("q", RequestError("m"), ALL, node="a").action is Action.REPLAN


def test_journal_contract_a_record_from_elsewhere_gets_a_decision_too(service):
    record = ErrorRecord(plan_id="p", category=ErrorCategory.UNKNOWN, seq=7)
    decision = service.recover(record)
    assert (decision.record_seq, decision.seq) == (7, 1)
    snapshot = service.history("p")
    assert (snapshot.count, snapshot.decisions) == (0, (decision,))


def test_journal_contract_plans_share_the_retry_budget_of_their_provider(service_of):
    service = service_of(retries=RetryTerms(tokens=20, cost=10))
    hints = {"provider": "openai", "model": "small"}
    for plan_id in ("a", "b"):
        assert service.handle(plan_id, Overloaded(), **hints).action is Action.RETRY
    broke = service.handle("c", Overloaded(), ALL, **hints)
    assert broke.action is Action.FALL_BACK
    assert "the retry budget of provider `openai:small` is empty" in broke.reason
    for _ in range(10):
        service.record_success("a", **hints)
    assert service.handle("d", Overloaded(), **hints).action is Action.RETRY
    assert service.handle("e", Overloaded(), ALL, **hints).action is Action.FALL_BACK


def test_journal_contract_a_decision_that_is_no_retry_costs_nothing(service_of):
    service = service_of(retries=RetryTerms(tokens=10, cost=10))
    for _ in range(3):
        assert service.handle("p", RequestError("m"), ALL).action is Action.REPLAN
    assert service.handle("p", Overloaded()).action is Action.RETRY
    assert "the retry budget of plan `p` is empty" in service.handle("p", Overloaded()).reason


def test_journal_contract_records_of_one_moment_have_numbers_without_gaps(service):
    records = run_together([lambda: service.record_error("p", ValueError("a"))] * 12)
    assert sorted(record.seq for record in records) == list(range(1, 13))
    kept = service.history("p").records
    assert [record.seq for record in kept] == list(range(1, 13))
    assert {record.id for record in kept} == {record.id for record in records}


def test_journal_contract_callers_of_one_moment_never_share_a_retry(service):
    decisions = run_together([lambda: service.handle("p", Overloaded(), node="n")] * 8)
    actions = sorted(decision.action for decision in decisions)
    assert actions == [Action.ABORT] * 6 + [Action.RETRY] * 2


def test_journal_contract_the_listener_hears_what_is_kept(service_of):
    heard = []
    service = service_of(listener=heard.append)
    decision = service.handle("p", ValueError("a"))
    assert heard == [*service.history("p").records, decision]


def test_journal_contract_no_secret_is_kept(service):
    key = "sk-" + "a1b2c3d4" * 4
    service.handle("p", ValueError(f"api_key={key}"), node=key, actor=key)
    assert key not in str(service.history("p"))


def test_journal_contract_texts_that_are_not_utf_8_lose_no_record(service):
    odd = "caf\udce9"
    record = service.record_error("p", OSError(odd), node=odd, actor=odd, provider=odd)
    assert service.recover(record).action is Action.RETRY
    assert service.recover(record).action is Action.ABORT
    service.record_success("p", node=odd, provider=odd)
    assert service.recover(record).seq == 3
    assert service.history("p").records == (record,)


def test_journal_contract_what_others_are_to_decide_leaves_no_trace(service_of):
    told = []
    service = service_of(told.append, retries=RetryTerms(tokens=10, cost=10))
    here = {Action.RETRY}
    record = service.record_error("p", ConnectionRefusedError("x"), node="n", provider="o")
    assert service.recover_by(here, record).action is Action.RETRY
    again = service.record_error("p", ConnectionRefusedError("x"), node="n", provider="o")
    assert service.recover_by(here, again) is None  # the retry budget is empty
    lost = service.record_error("p", ValueError("401"), category=ErrorCategory.AUTH)
    assert service.recover_by(here, lost) is None
    history = service.history("p")
    assert history.undecided == (again, lost)
    assert len(told) == 4
    assert service.recover(lost, Remedies(person=True)).action is Action.ASK
    assert service.history("p").undecided == (again,)


@pytest.mark.parametrize("plan_id", ["", " ", None])
def test_journal_contract_an_error_without_a_plan_is_refused(service, plan_id):
    for ask in (
        lambda: service.record_error(plan_id, ValueError()),
        lambda: service.record_success(plan_id),
        lambda: service.history(plan_id),
    ):
        with pytest.raises(RequestError, match="A plan id must be"):
            ask()


@pytest.mark.parametrize("kept_max", [0, -1, 1.5, True])
def test_journal_contract_settings_that_keep_nothing_are_refused(kept_max):
    with pytest.raises(SetupError, match="`kept_max` must be"):
        RecoverySettings(kept_max=kept_max)
