"""Real threads: no record is lost, no retry is shared, one probe goes."""

from __future__ import annotations

from collections import Counter

import pytest

from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.application.services.provider_gate import ProviderGate
from cleveragents.application.services.recovery_policy import Remedies
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import ProviderError
from cleveragents.testing import FrozenClock, run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]


class Overloaded(Exception):  # noqa: N818  # what an HTTP client might raise
    status_code = 503


def test_first_errors_of_one_plan_at_the_same_moment_are_all_kept():
    for round_ in range(40):
        service = ErrorRecoveryService()
        records = run_together(
            [lambda s=service: s.record_error("p", ValueError("a")) for _ in range(16)]
        )
        assert sorted(record.seq for record in records) == list(range(1, 17)), round_
        assert service.history("p").count == 16
        assert {record.id for record in service.history("p").records} == {r.id for r in records}


def test_two_hundred_threads_lose_no_record_of_any_plan():
    service = ErrorRecoveryService()

    def work(n: int) -> None:
        for turn in range(4):
            service.record_error(f"p-{(n + turn) % 4}", ValueError("a"), node=str(n))

    run_together([lambda n=n: work(n) for n in range(200)])
    for plan in range(4):
        snapshot = service.history(f"p-{plan}")
        assert snapshot.count == 200
        assert [record.seq for record in snapshot.records] == list(range(1, 201))


def test_callers_of_one_node_never_share_a_retry():
    for _ in range(20):
        service = ErrorRecoveryService()
        decisions = run_together(
            [
                lambda s=service: s.handle(
                    "p", Overloaded("a"), Remedies(other_model=True), node="n"
                )
                for _ in range(16)
            ]
        )
        actions = Counter(decision.action for decision in decisions)
        assert actions == {Action.RETRY: 2, Action.FALL_BACK: 3, Action.ABORT: 11}
        assert sorted(d.seq for d in decisions) == list(range(1, 17))


def test_exactly_one_of_64_callers_becomes_the_probe():
    for _ in range(10):
        clock = FrozenClock()
        gate = ProviderGate(clock=clock)
        gate.park("openai", 5.0)
        clock.advance(5.0)

        def probes(gate: ProviderGate = gate) -> bool:
            try:
                return gate.enter("openai", timeout_s=0).probe
            except ProviderError:
                return False

        assert sum(run_together([probes] * 64)) == 1
