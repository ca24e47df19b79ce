"""Proofs: calls, reports, holds and stops of the limiter are atomic towards each other."""

from __future__ import annotations

import threading

import pytest

from cleveragents.domain.errors import ProviderError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.providers.model_access import rate_limiter, rate_line
from cleveragents.providers.model_access.rate_bucket import SHARES
from cleveragents.providers.model_access.rate_limiter import RateLimiter, RateLimits, Ticket
from proofs.racekit import Arena, SleepyThreading, prove, refute, without_lock


class Bench:
    """A limiter of 10 tokens on a clock that stands still, and one ticket that is out."""

    def __init__(self, taken: int = 0) -> None:
        limits = RateLimits(None, 10)
        self.limiter = RateLimiter({"p": limits, "q": limits}, clock=lambda: 0.0)
        self.out = self.limiter.acquire("p", plan="a", tokens=taken, timeout_s=0)
        self.stop = StopSignal()
        #: Released by the other worker at its end.
        self.other_runs = threading.Semaphore(0)

    def take(self, tokens: int = 10, timeout_s: float = 0.0) -> Ticket | None:
        try:
            return self.limiter.acquire("p", plan="b", tokens=tokens, timeout_s=timeout_s)
        except ProviderError:
            return None

    def wait(self) -> Ticket | None:
        return self.take(10, 60.0)

    def wait_or_stop(self) -> str:
        try:
            self.limiter.acquire("p", plan="b", tokens=10, timeout_s=60.0, stop=self.stop)
        except Stopped:
            return "stopped"
        return "went"

    def level(self, provider: str = "p") -> int:
        return self.limiter._lines[provider]._tokens.bucket.level // SHARES

    def idle(self) -> bool:
        line = self.limiter._lines["p"]
        return line.waiting == 0 and len(line._plans) == 0 and line._waiters == {}


def racy(taken: int = 0) -> Bench:
    bench = Bench(taken)
    without_lock(bench.limiter, "_lock")
    return bench


def one_went(arena: Arena[Bench]) -> bool:
    went = [one for one in arena.returned.values() if one is not None]
    return len(went) == 1 and arena.subject.level() == 0 and arena.subject.idle()


def settled_once(arena: Arena[Bench]) -> bool:
    return arena.subject.level() in {4, 7}


def test_one_of_two_calls_gets_the_last_room():
    prove(Bench, [Bench.take, Bench.take], one_went)


def test_two_first_calls_that_fit_both_go_on_one_line_with_tickets_of_their_own():
    def first(bench: Bench) -> int:
        return bench.limiter.acquire("q", plan="a", tokens=5, timeout_s=0).number

    prove(
        Bench,
        [first, first],
        lambda arena: sorted(arena.returned.values()) == [1, 2] and arena.subject.level("q") == 0,
    )


def test_a_call_beside_a_refund_goes_or_is_refused_and_no_token_is_lost():
    prove(
        lambda: Bench(10),
        [Bench.take, lambda b: b.out.refund()],
        lambda arena: arena.subject.level() == (10 if arena.returned[0] is None else 0),
    )


@pytest.fixture
def full(monkeypatch):
    """Make benches without room, whose one waiting worker sleeps until the other ends."""

    def make() -> Bench:
        bench = Bench(10)
        monkeypatch.setattr(rate_limiter, "threading", SleepyThreading(bench.other_runs))
        return bench

    return make


def ending(work):
    def run(bench: Bench) -> None:
        work(bench)
        bench.other_runs.release()

    return run


def test_whoever_waits_hears_of_what_is_given_back_in_every_order(full):
    prove(
        full,
        [Bench.wait, ending(lambda b: b.out.settle(0))],
        lambda arena: (
            arena.returned[0] is not None and arena.subject.level() == 0 and arena.subject.idle()
        ),
    )


def test_whoever_waits_hears_of_its_stop_in_every_order(full):
    prove(
        full,
        [Bench.wait_or_stop, ending(lambda b: b.stop.stop())],
        lambda arena: (
            arena.returned[0] == "stopped" and arena.subject.level() == 0 and arena.subject.idle()
        ),
    )


def test_whoever_waits_hears_of_a_hold_that_makes_it_vain(full):
    prove(
        full,
        [Bench.wait, ending(lambda b: b.limiter.hold("p", 99.0))],
        lambda arena: arena.returned[0] is None and arena.subject.idle(),
    )


def test_the_racy_twin_that_tells_nobody_is_caught(full, monkeypatch):
    monkeypatch.setattr(rate_line.Line, "nudge_head", lambda _: None)
    refute(
        full,
        [Bench.wait, ending(lambda b: b.out.settle(0))],
        lambda arena: arena.returned[0] is not None,
    )


def test_a_call_beside_a_hold_goes_before_it_or_not_at_all():
    prove(
        Bench,
        [Bench.take, lambda b: b.limiter.hold("p", 99.0)],
        lambda arena: (
            arena.subject.level() == (10 if arena.returned[0] is None else 0)
            and arena.subject.take(0) is None
        ),
    )


def test_two_holds_keep_the_longer():
    prove(
        Bench,
        [lambda b: b.limiter.hold("p", 9.0), lambda b: b.limiter.hold("p", 5.0)],
        lambda arena: arena.subject.limiter._lines["p"].held_until_ns == 9 * 10**9,
    )


def test_two_reports_of_one_ticket_count_once():
    prove(lambda: Bench(10), [lambda b: b.out.settle(6), lambda b: b.out.settle(3)], settled_once)


def test_a_refund_and_a_settlement_of_one_ticket_count_once():
    prove(
        lambda: Bench(10),
        [lambda b: b.out.settle(6), lambda b: b.out.refund()],
        lambda arena: arena.subject.level() in {4, 10},
    )


@pytest.mark.parametrize(
    "other", [lambda b: b.limiter.waiting("p"), lambda b: b.limiter.wake()], ids=["count", "wake"]
)
def test_a_call_goes_beside_any_reader(other):
    prove(Bench, [Bench.take, other], lambda arena: arena.returned[0] is not None)


def test_the_racy_twin_of_taking_is_caught():
    refute(racy, [Bench.take, Bench.take], one_went)


def test_the_racy_twin_of_settling_is_caught():
    refute(lambda: racy(10), [lambda b: b.out.settle(6), lambda b: b.out.settle(3)], settled_once)


class LookThenTake:
    """The planted bug in a known blind spot: the truth of a container, then a pop."""

    def __init__(self) -> None:
        self.rooms = [1]
        self.went = 0

    def take(self) -> None:
        if self.rooms:
            self.rooms.pop()
            self.went += 1


def test_the_racy_twin_in_the_blind_spot_is_caught():
    refute(
        LookThenTake,
        [LookThenTake.take, LookThenTake.take],
        lambda arena: arena.subject.went == 1,
    )
