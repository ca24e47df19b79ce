from __future__ import annotations

from pathlib import Path

import pytest

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.bootstrap import Container, Listeners, Parts
from cleveragents.domain.budget import Limit
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import BudgetExceeded, ProviderError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.store import Store
from cleveragents.settings import Settings


def test_container_wires_the_settings_into_the_services():
    settings = Settings(
        daily_budget_usd=1,
        monthly_budget_usd=2,
        breaker_failures_max=1,
        breaker_pause_s=600,
        error_records_kept_max=2,
        prices={"acme:own": {"input_mtok": 1, "output_mtok": 2}},
        rate_limits={"openai": {"requests_per_min": 1}},
    )
    with Container(settings) as services:
        assert services.prices.worst_case("acme:own", 10**6, 10**6) == Money.of(3)
        services.limiter.acquire("openai", plan="p", tokens=1, timeout_s=0)
        with pytest.raises(ProviderError):
            services.limiter.acquire("openai", plan="p", tokens=1, timeout_s=0)
        assert [limit.kind for limit in services.cost_tracker.limits] == ["day", "month"]
        with pytest.raises(BudgetExceeded):
            services.cost_tracker.reserve(1.5)
        services.breaker.record_failure("s")
        assert services.breaker.is_open("s")
        for _ in range(3):
            services.errors.record_error("p", ValueError("x"))
        assert len(services.errors.history("p").records) == 2


def test_listeners_hear_of_money_errors_and_breakers():
    heard = []
    listeners = Listeners(on_notice=heard.append, on_breaker=heard.append, on_error=heard.append)
    with Container(Settings(breaker_failures_max=1), listeners=listeners) as services:
        services.cost_tracker.reserve("0.1").settle("0.2")
        services.breaker.record_failure("s")
        services.errors.record_error("p", ValueError("x"))
    assert [type(one).__name__ for one in heard] == ["Notice", "StateChange", "ErrorRecord"]


def test_given_parts_are_used_even_when_they_are_empty():
    class EmptyStore(InMemoryChangesetStore):
        def __len__(self) -> int:
            return 0

    store = EmptyStore()
    with Container(Settings(), Parts(changesets=store)) as services:
        assert services.changesets is store


def test_settings_in_force_are_those_of_the_environment(monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_DAILY_BUDGET_USD", "5")
    monkeypatch.setenv("CLEVERAGENTS_CONTEXT_TOKENS_MAX", "123")
    with Container() as services:
        assert services.cost_tracker.limits == (Limit("day", 5),)
        assert services.request("x", Path()).tokens_max == 123


def test_money_errors_and_changes_survive_with_a_store(tmp_path):
    for expected in (1, 2):
        with (
            Store(tmp_path / "state.db") as store,
            Container(Settings(), Parts(store=store)) as one,
        ):
            one.cost_tracker.record_usage(1)
            one.errors.record_error("p", ValueError("x"))
            with one.plan_context("p").changeset():
                one.plan_context("p").record_change(ChangeEntry.create("a.txt", "a"))
            assert one.cost_tracker.get_daily_spend() == expected
            assert one.errors.history("p").count == expected
            assert len(one.changesets.of_plan("p")) == expected


def test_every_caller_of_one_plan_gets_one_context():
    with Container() as services:
        assert services.plan_context("p") is services.plan_context("p")
        assert services.plan_context("p") is not services.plan_context("q")
        services.plan_context("p").start_changeset()
        assert len(services.changesets.of_plan("p")) == 1


def test_executor_and_pipeline_share_one_breaker(tmp_path):
    class Sick:
        name = "sick"

        def find(self, *_):
            raise OSError

    with Container(Settings(breaker_failures_max=1), Parts(strategies=(Sick(),))) as services:
        services.pipeline.build(ContextRequest("x", tmp_path))
        assert services.breaker.is_open("sick")
    assert services.close() == ()
