"""No error is lost, and every error gets a decision."""

from __future__ import annotations

import pytest

from cleveragents.application.services import error_recovery_service, recovery_policy
from cleveragents.application.services.error_recovery_service import (
    ErrorHistory,
    ErrorRecoveryService,
    RecoverySettings,
    decide,
)
from cleveragents.application.services.provider_gate import ProviderGate
from cleveragents.application.services.recovery_policy import RecoveryPolicy, Remedies
from cleveragents.application.services.retry_budget import RetryTerms
from cleveragents.domain.error_record import Action, ErrorCategory, ErrorRecord
from cleveragents.domain.errors import BudgetExceeded, ProviderError, RequestError, SetupError
from cleveragents.testing import FrozenClock

ALL = Remedies(other_model=True, shrink=True, replan=True, person=True)


class RateLimited(Exception):  # noqa: N818  # what an HTTP client might raise
    status_code = 429

    def __init__(self, retry_after_s: float | None = None) -> None:
        super().__init__("too many requests")
        self.headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}


class Overloaded(Exception):  # noqa: N818  # see RateLimited
    status_code = 503


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


def service_of(clock: FrozenClock | None = None, **settings: object) -> ErrorRecoveryService:
    clock = clock or FrozenClock()
    return ErrorRecoveryService(
        RecoverySettings(**settings),
        gate=ProviderGate(clock=clock),
        clock=clock,
        chance=lambda: 0.5,
    )


class TestHistory:
    def test_numbers_run_from_one_without_gaps(self):
        history = ErrorHistory(plan_id="p")
        added = [history.add(ErrorRecord(plan_id="p", message=str(n))) for n in range(5)]
        assert [record.seq for record in added] == [1, 2, 3, 4, 5]
        assert history.records == tuple(added)

    def test_the_tail_is_kept_and_counts_stay_exact(self):
        history = ErrorHistory(plan_id="p", kept_max=3)
        for n in range(10):
            category = ErrorCategory.QUOTA if n < 4 else ErrorCategory.UNKNOWN
            history.add(ErrorRecord(plan_id="p", category=category, fingerprint=str(n)))
        snapshot = history.snapshot()
        assert [record.seq for record in snapshot.records] == [8, 9, 10]
        assert (history.count, snapshot.count) == (10, 10)
        assert snapshot.by_category == {ErrorCategory.QUOTA: 4, ErrorCategory.UNKNOWN: 6}

    def test_a_snapshot_does_not_change_later(self):
        history = ErrorHistory(plan_id="p")
        before = history.snapshot()
        records = history.records
        history.add(ErrorRecord(plan_id="p"))
        assert (before.count, before.records, records) == (0, (), ())
        assert before.by_category == {}
        assert history.decisions == ()

    def test_the_third_time_is_a_loop_and_stays_one_after_eviction(self):
        history = ErrorHistory(plan_id="p", kept_max=1)
        same = ErrorRecord(
            plan_id="p", node="n", fingerprint="f", category=ErrorCategory.BAD_OUTPUT
        )
        categories = [history.add(same).category for _ in range(4)]
        assert categories == [ErrorCategory.BAD_OUTPUT] * 2 + [ErrorCategory.LOOP] * 2
        assert history.records[0].underlying is ErrorCategory.BAD_OUTPUT
        assert history.standing(same).times == 4

    def test_waiting_again_for_a_provider_is_no_loop(self):
        history = ErrorHistory(plan_id="p")
        same = ErrorRecord(plan_id="p", fingerprint="f", category=ErrorCategory.RATE_LIMIT)
        assert {history.add(same).category for _ in range(9)} == {ErrorCategory.RATE_LIMIT}

    def test_a_record_of_another_plan_is_refused(self):
        with pytest.raises(RequestError, match="cannot stand in the history of plan `p`"):
            ErrorHistory(plan_id="p").add(ErrorRecord(plan_id="q"))

    @pytest.mark.parametrize("kept_max", [0, -1, 1.5, True])
    def test_a_history_that_keeps_nothing_is_refused(self, kept_max):
        with pytest.raises(SetupError, match="`kept_max` must be"):
            ErrorHistory(plan_id="p", kept_max=kept_max)


class TestRecording:
    def test_an_error_is_kept_in_the_history_of_its_plan(self, clock):
        service = service_of(clock)
        record = service.record_error("p-1", Overloaded("busy"), node="build", provider="openai")
        assert service._histories["p-1"].records == (record,)
        assert service.history("p-1").records == (record,)
        assert (record.seq, record.node, record.at) == (1, "build", clock())
        assert record.category is ErrorCategory.OVERLOADED
        assert len(record.id) == 32

    def test_a_plan_has_one_history(self):
        service = service_of()
        assert service._get_or_create_history("p") is service._get_or_create_history("p")

    def test_a_plan_without_errors_has_an_empty_history(self):
        service = service_of()
        assert service.history("p").count == 0
        assert service._histories == {}

    @pytest.mark.parametrize("plan_id", ["", " ", None])
    def test_an_error_without_a_plan_is_refused(self, plan_id):
        service = service_of()
        for ask in (
            lambda: service.record_error(plan_id, ValueError()),
            lambda: service._get_or_create_history(plan_id),
            lambda: service.record_success(plan_id),
            lambda: service.history(plan_id),
        ):
            with pytest.raises(RequestError, match="A plan id must be"):
                ask()
        assert service._histories == {}

    def test_what_is_no_exception_is_refused(self):
        with pytest.raises(RequestError, match="`error` must be an exception, got str"):
            service_of().record_error("p", "it broke")

    def test_an_unknown_hint_is_refused(self):
        with pytest.raises(TypeError, match="unexpected hints: nod"):
            service_of().record_error("p", ValueError(), nod="n")

    def test_a_forgotten_plan_starts_anew(self):
        service = service_of()
        service.record_error("p", ValueError())
        service.forget("p")
        service.forget("p")
        assert service.record_error("p", ValueError()).seq == 1

    def test_the_listener_hears_records_and_decisions_and_cannot_hurt(self, caplog):
        heard = []

        def listener(event):
            heard.append(event)
            raise ValueError("listener")

        service = ErrorRecoveryService(listener=listener)
        decision = service.handle("p", ValueError("a"))
        assert heard == [*service.history("p").records, decision]
        assert "A listener raised" in caplog.text


class TestRecovering:
    def test_a_decision_is_kept_with_its_reason_in_order(self, clock):
        service = service_of(clock)
        first = service.handle("p", Overloaded(), node="n")
        second = service.handle("p", Overloaded(), ALL, node="n", provider="openai")
        snapshot = service.history("p")
        assert snapshot.decisions == (first, second)
        assert [(d.seq, d.record_seq, d.at) for d in snapshot.decisions] == [
            (1, 1, clock()),
            (2, 2, clock()),
        ]
        assert snapshot.decision_count == 2
        assert first.reason == "llm.overloaded: retry"

    def test_a_fault_that_stays_climbs_its_ladder(self):
        service = service_of()
        actions = [service.handle("p", Overloaded(), ALL, node="n").action for _ in range(6)]
        assert actions == [Action.RETRY] * 2 + [Action.FALL_BACK] * 3 + [Action.ASK]

    def test_eviction_never_lowers_the_ladder(self):
        service = service_of(kept_max=1)
        for _ in range(3):
            service.handle("p", Overloaded(), ALL, node="n")
        for n in range(5):
            service.handle("p", ValueError(), ALL, node=f"other {n}")
        assert service.handle("p", Overloaded(), ALL, node="n").action is Action.FALL_BACK

    def test_a_success_starts_the_count_anew_but_not_the_ladder(self):
        service = service_of()
        for _ in range(2):
            assert service.handle("p", Overloaded(), node="n").action is Action.RETRY
        service.record_success("p", node="other")
        service.record_success("p", node="n")
        assert service.handle("p", Overloaded(), node="n").action is Action.RETRY
        for _ in range(2):
            last = service.handle("p", Overloaded(), ALL, node="n")
        assert last.action is Action.FALL_BACK
        service.record_success("p", node="n")
        assert service.handle("p", Overloaded(), ALL, node="n").action is Action.FALL_BACK

    def test_a_success_of_a_plan_without_errors_leaves_no_trace(self):
        service = service_of()
        service.record_success("p", node="n", provider="openai")
        assert service._histories == {}

    def test_replans_are_counted_for_the_whole_plan(self):
        service = service_of(policy=RecoveryPolicy(replans_max=1))
        refused = RequestError("m")
        assert service.handle("p", refused, ALL, node="a").action is Action.REPLAN
        assert service.handle("p", refused, ALL, node="b").action is Action.ASK

    def test_a_budget_is_never_retried(self):
        assert service_of().handle("p", BudgetExceeded("m"), ALL).action is Action.ASK
        assert service_of().handle("p", BudgetExceeded("m")).action is Action.ABORT

    def test_a_record_from_elsewhere_gets_a_decision_too(self):
        record = ErrorRecord(plan_id="p", category=ErrorCategory.UNKNOWN, seq=7)
        assert service_of().recover(record).record_seq == 7


class TestRetryBudgets:
    def test_an_empty_budget_of_the_plan_moves_on_and_says_so(self):
        service = service_of(retries=RetryTerms(tokens=20, cost=10))
        for n in range(2):
            assert service.handle("p", Overloaded(), node=str(n)).action is Action.RETRY
        decision = service.handle("p", Overloaded(), ALL, node="2")
        assert decision.action is Action.FALL_BACK
        assert "the retry budget of plan `p` is empty" in decision.reason

    def test_plans_share_the_budget_of_their_provider(self):
        service = service_of(retries=RetryTerms(tokens=10, cost=10))
        hints = {"provider": "openai", "model": "small"}
        assert service.handle("a", Overloaded(), **hints).action is Action.RETRY
        decision = service.handle("b", Overloaded(), **hints)
        assert "the retry budget of provider `openai:small` is empty" in decision.reason
        for _ in range(10):
            service.record_success("a", **hints)
        assert service.handle("b", Overloaded(), node="n", **hints).action is Action.RETRY

    def test_waiting_behind_the_gate_costs_what_one_success_gives_back(self):
        service = service_of(retries=RetryTerms(tokens=10, cost=10))
        for n in range(30):
            hints = {"node": str(n), "provider": "openai"}
            assert service.handle("p", RateLimited(1), **hints).action is Action.RETRY
            service.record_success("p", node=str(n), provider="openai")


class TestGate:
    def test_a_rate_limit_parks_everybody_for_the_named_time(self, clock):
        service = service_of(clock)
        service.handle("p", RateLimited(5), provider="openai", model="small")
        assert service.gate.parked_for_s("openai:small") == 5.0
        with pytest.raises(ProviderError):
            service.gate.enter("openai:small", timeout_s=1)

    def test_a_rate_limit_without_a_time_parks_as_long_as_we_wait(self):
        service = service_of()
        decision = service.handle("p", RateLimited(), provider="openai")
        assert service.gate.parked_for_s("openai") == decision.delay_s == 1.5

    def test_an_overloaded_provider_parks_only_when_it_names_a_time(self):
        service = service_of()
        service.handle("p", Overloaded(), provider="openai")
        assert service.gate.parked_for_s("openai") == 0.0
        busy = Overloaded()
        busy.headers = {"retry-after": "3"}
        service.handle("p", busy, provider="openai")
        assert service.gate.parked_for_s("openai") == 3.0

    def test_a_limit_without_a_provider_parks_nobody(self):
        service = service_of()
        service.handle("p", RateLimited(5))
        assert service.gate._states == {}

    def test_a_late_limit_with_its_pass_does_not_close_an_open_gate(self, clock):
        service = service_of(clock)
        late, early = (service.gate.enter("openai", timeout_s=0) for _ in range(2))
        record = service.record_error("p", RateLimited(5), provider="openai")
        service.recover(record, gate_pass=early)
        clock.advance(5)
        service.gate.enter("openai", timeout_s=0).ok()
        service.recover(record, gate_pass=late)
        assert service.gate.parked_for_s("openai") == 0.0


def test_decide_is_found_where_the_service_is():
    assert error_recovery_service.decide is recovery_policy.decide


def test_a_service_works_without_any_setting():
    service = ErrorRecoveryService()
    assert service.handle("p", ValueError()).action is Action.RETRY


def test_decide_takes_a_whole_history_as_well_as_what_it_says_about_one_fault():
    history = ErrorHistory(plan_id="p")
    record = history.add(ErrorRecord(plan_id="p", category=ErrorCategory.OVERLOADED))
    policy = RecoveryPolicy()
    assert decide(record, history, policy) == decide(record, history.standing(record), policy)


def test_refusal_of_our_own_gate_never_makes_its_pause_longer():
    """Also when it is handed over together with a pass."""
    clock = FrozenClock()
    gate = ProviderGate(clock=clock)
    service = ErrorRecoveryService(gate=gate, clock=clock)
    admitted = gate.enter("openai:small", timeout_s=0)
    gate.park("openai:small", 5)
    with pytest.raises(ProviderError) as caught:
        gate.enter("openai:small", timeout_s=1)
    record = service.record_error("p", caught.value, provider="openai", model="small")
    clock.advance(4)
    service.recover(record, gate_pass=admitted)
    assert gate.parked_for_s("openai:small") == pytest.approx(1)


def test_decision_of_a_person_is_kept_like_any_other_and_costs_no_retry():
    service = service_of(retries=RetryTerms(tokens=1, cost=1))
    record = service.record_error("p", RuntimeError("lost with its process"), node="n")
    kept = service.keep_decision(record, Action.RETRY, "the plan was resumed")
    assert (kept.action, kept.reason, kept.record_seq) == (
        Action.RETRY,
        "the plan was resumed",
        record.seq,
    )
    assert service.history("p").decisions == (kept,)
    again = service.handle("p", Overloaded("busy"), node="m")
    assert again.action is Action.RETRY, "the budget of retries is untouched"
