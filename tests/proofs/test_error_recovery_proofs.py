"""Proofs: every pair of methods of the service and of the gate is atomic towards each other."""

from __future__ import annotations

import pytest

from cleveragents.application.services import error_recovery_service
from cleveragents.application.services.error_recovery_service import (
    ErrorHistory,
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.provider_gate import GateTerms, Pass, ProviderGate
from cleveragents.application.services.recovery_policy import RecoveryPolicy, Remedies
from cleveragents.application.services.retry_budget import RetryTerms
from cleveragents.domain.error_record import Action, Decision, ErrorCategory, ErrorRecord
from cleveragents.domain.errors import ProviderError
from proofs.racekit import Arena, prove, refute, without_lock

FAULT = ErrorRecord(plan_id="p", node="n", fingerprint="f", category=ErrorCategory.OVERLOADED)
FAILURE = ValueError("a")
ONE_RETRY = RecoverySettings(
    policy=RecoveryPolicy(overloaded_retries_max=1), retries=RetryTerms(tokens=10, cost=10)
)
MODELS = Remedies(other_model=True)


@pytest.fixture(autouse=True)
def _small_rules(monkeypatch):
    """Classifying and deciding are pure and tested apart; traced here, they only cost time."""

    def decide(record, standing, policy, *, chance, remedies):  # noqa: ARG001  # the same door
        retry = standing.tries.get(Action.RETRY) is None and remedies.no_retry is None
        return Decision(action=Action.RETRY if retry else Action.FALL_BACK, reason="")

    monkeypatch.setattr(error_recovery_service, "decide", decide)
    monkeypatch.setattr(error_recovery_service, "describe", lambda *_, **__: FAULT)


class Bench:
    """A service and the calls that plans make."""

    def __init__(self, service: ErrorRecoveryService) -> None:
        self.service = service

    def add(self) -> int:
        return self.service.record_error("p", FAILURE, node="n").seq

    def recover(self) -> Action:
        return self.service.recover(FAULT, MODELS).action

    def recover_here(self) -> Action | None:
        decision = self.service.recover_by({Action.RETRY}, FAULT, MODELS)
        return None if decision is None else decision.action

    def succeed(self) -> None:
        self.service.record_success("p", node="n")

    def count(self) -> int:
        return self.service.history("p").count

    def forget(self) -> None:
        self.service.forget("p")

    def get(self) -> ErrorHistory:
        return self.service._get_or_create_history("p")


def bench() -> Bench:
    service = ErrorRecoveryService(ONE_RETRY, clock=lambda: 0.0, chance=lambda: 0.5)
    return Bench(service)


def racy() -> Bench:
    racy_bench = bench()
    without_lock(racy_bench.service, "_lock")
    return racy_bench


def both_kept(arena: Arena[Bench]) -> bool:
    snapshot = arena.subject.service.history("p")
    return (
        sorted(arena.returned.values()) == [1, 2]
        and snapshot.count == 2
        and [record.seq for record in snapshot.records] == [1, 2]
    )


def one_retry(arena: Arena[Bench]) -> bool:
    decisions = arena.subject.service.history("p").decisions
    return sorted(arena.returned.values()) == [Action.FALL_BACK, Action.RETRY] and [
        decision.seq for decision in decisions
    ] == [1, 2]


def test_two_first_errors_of_a_plan_are_both_kept():
    prove(bench, [Bench.add, Bench.add], both_kept)


def test_a_history_is_created_once():
    prove(
        bench,
        [Bench.get, Bench.get],
        lambda arena: (
            arena.returned[0] is arena.returned[1] is arena.subject.service._histories["p"]
        ),
    )


def test_an_error_and_the_creation_of_its_history_lose_nothing():
    prove(
        bench,
        [Bench.add, lambda b: b.get().add(FAULT).seq],
        both_kept,
    )


def test_two_callers_never_share_the_last_retry():
    prove(bench, [Bench.recover, Bench.recover], one_retry)


def test_of_two_callers_who_can_only_retry_one_does_and_the_other_leaves_no_trace():
    def holds(arena: Arena[Bench]) -> bool:
        decisions = arena.subject.service.history("p").decisions
        return {*arena.returned.values()} == {Action.RETRY, None} and len(decisions) == 1

    prove(bench, [Bench.recover_here, Bench.recover_here], holds)


@pytest.mark.parametrize(
    "other", [Bench.succeed, Bench.count, Bench.recover, Bench.forget], ids=lambda f: f.__name__
)
def test_an_error_is_kept_beside_any_other_call(other):
    def holds(arena: Arena[Bench]) -> bool:
        snapshot = arena.subject.service.history("p")
        forgotten = other is Bench.forget and snapshot.count == 0
        return arena.returned[0] == 1 and (snapshot.count == 1 or forgotten)

    prove(bench, [Bench.add, other], holds)


def test_a_success_gives_back_exactly_one_refund():
    def tried() -> Bench:
        subject = bench()
        subject.recover()
        return subject

    prove(
        tried,
        [Bench.succeed, Bench.succeed],
        lambda arena: arena.subject.service._budget.left("plan `p`") == 2,
    )


def test_a_retry_and_a_success_keep_the_tokens_exact():
    def holds(arena: Arena[Bench]) -> bool:
        left = arena.subject.service._budget.left("plan `p`")
        return arena.returned[0] is Action.RETRY and left in {0, 1}

    prove(bench, [Bench.recover, Bench.succeed], holds)


def test_the_racy_twin_of_recording_is_caught():
    refute(racy, [Bench.add, Bench.add], both_kept)


def test_the_racy_twin_of_deciding_is_caught():
    refute(racy, [Bench.recover, Bench.recover], one_retry)


class SetdefaultThenAppend:
    """The planted bug in a known blind spot: `in`, then two atomic things that are not one."""

    def __init__(self) -> None:
        self.histories: dict[str, list[int]] = {}

    def add(self) -> None:
        if "p" not in self.histories:
            self.histories["p"] = []
        self.histories["p"].append(1)


def test_the_racy_twin_in_the_blind_spot_is_caught():
    refute(
        SetdefaultThenAppend,
        [SetdefaultThenAppend.add, SetdefaultThenAppend.add],
        lambda arena: len(arena.subject.histories["p"]) == 2,
    )


class GateBench:
    """A gate whose pause is over: the next caller is the probe."""

    def __init__(self) -> None:
        self.now = 0.0
        self.gate = ProviderGate(GateTerms(), clock=lambda: self.now)
        self.early = [self.gate.enter("k", timeout_s=0) for _ in range(2)]

    def lapse(self) -> GateBench:
        self.early[0].limited(5.0)
        self.now = 5.0
        return self

    def probe(self) -> GateBench:
        self.lapse()
        self.out = self.gate.enter("k", timeout_s=0)
        return self

    def enter(self) -> Pass | None:
        try:
            return self.gate.enter("k", timeout_s=0)
        except ProviderError:
            return None


def one_probe(arena: Arena[GateBench]) -> bool:
    return sorted(one is not None and one.probe for one in arena.returned.values()) == [False, True]


def test_one_of_two_callers_becomes_the_probe():
    prove(lambda: GateBench().lapse(), [GateBench.enter, GateBench.enter], one_probe)


def test_a_probes_success_lets_the_other_in_or_leaves_it_waiting_but_never_as_a_probe():
    prove(
        lambda: GateBench().probe(),
        [GateBench.enter, lambda b: b.out.ok()],
        lambda arena: (
            (arena.returned[0] is None or not arena.returned[0].probe)
            and arena.subject.gate.parked_for_s("k") == 0.0
            and not arena.subject.enter().probe
        ),
    )


@pytest.mark.parametrize(
    "late",
    [lambda b: b.early[1].limited(60.0), lambda b: b.early[1].ok(), lambda b: b.early[1].release()],
    ids=["limited", "ok", "released"],
)
def test_a_late_report_never_touches_the_probe(late):
    prove(
        lambda: GateBench().lapse(),
        [GateBench.enter, late],
        lambda arena: arena.returned[0].probe and arena.subject.enter() is None,
    )


def test_two_limits_of_one_moment_park_once():
    prove(
        GateBench,
        [lambda b: b.early[0].limited(5.0), lambda b: b.early[1].limited(5.0)],
        lambda arena: arena.subject.gate._states["k"].generation == 1,
    )


def test_parking_and_a_limit_keep_the_longer_or_the_first_pause():
    prove(
        GateBench,
        [lambda b: b.early[0].limited(5.0), lambda b: b.gate.park("k", 9.0)],
        lambda arena: arena.subject.gate.parked_for_s("k") == 9.0,
    )


def given_back() -> GateBench:
    subject = GateBench().probe()
    subject.out.release()
    return subject


def test_a_limit_after_the_block_is_kept_whether_or_not_the_next_probe_is_under_way():
    prove(
        given_back,
        [GateBench.enter, lambda b: b.out.limited(70.0)],
        lambda arena: (
            (arena.returned[0] is None or arena.returned[0].probe)
            and arena.subject.gate.parked_for_s("k") == 70.0
        ),
    )


def test_a_limit_after_the_block_never_parks_what_the_next_probe_opened():
    def followed() -> GateBench:
        subject = given_back()
        subject.next = subject.enter()
        return subject

    prove(
        followed,
        [lambda b: b.next.ok(), lambda b: b.out.limited(70.0)],
        lambda arena: not arena.subject.enter().probe,
    )


def test_the_next_probes_limit_and_the_one_before_it_keep_the_longer_or_the_first_pause():
    def followed() -> GateBench:
        subject = given_back()
        subject.next = subject.enter()
        return subject

    prove(
        followed,
        [lambda b: b.next.limited(9.0), lambda b: b.out.limited(70.0)],
        lambda arena: (
            (arena.subject.gate.parked_for_s("k"), arena.subject.gate._states["k"].failed_probes)
            in {(9.0, 1), (70.0, 2)}
        ),
    )


def test_the_racy_twin_of_the_gate_is_caught():
    def racy_gate() -> GateBench:
        subject = GateBench().lapse()
        without_lock(subject.gate, "_lock")
        return subject

    refute(racy_gate, [GateBench.enter, GateBench.enter], one_probe)
