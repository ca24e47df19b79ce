"""After a rate limit everybody waits at one gate, and one caller tries."""

from __future__ import annotations

import threading
from collections import deque
from typing import ClassVar

import pytest

from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.application.services.provider_gate import GateTerms, Pass, ProviderGate
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import CircuitOpen, ProviderError, RequestError, SetupError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.testing import FrozenClock

KEY = "openai:small"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def gate(clock: FrozenClock) -> ProviderGate:
    return ProviderGate(GateTerms(pause_s=1.0, pause_s_max=4.0, lease_s=30.0), clock=clock)


def refused(gate: ProviderGate, key: str = KEY, timeout_s: float = 0.0) -> float:
    with pytest.raises(ProviderError) as error:
        gate.enter(key, timeout_s=timeout_s)
    assert error.value.code == "CA3108"
    return float(error.value.facts["retry_after_s"])


def entered(gate: ProviderGate, key: str = KEY) -> Pass:
    return gate.enter(key, timeout_s=0)


def test_an_open_gate_admits_everybody(gate):
    passes = [entered(gate) for _ in range(50)]
    assert not any(one.probe for one in passes)
    for one in passes:
        one.ok()
    assert gate._states == {}


def test_a_limit_closes_the_gate_for_all_and_for_no_other_key(gate):
    entered(gate).limited(5.0)
    assert refused(gate) == 5.0
    assert gate.parked_for_s(KEY) == 5.0
    assert gate.parked_for_s("other") == 0.0
    assert not entered(gate, "other").probe


def test_after_the_time_exactly_one_probe_goes(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(4.9)
    assert refused(gate) == pytest.approx(0.1)
    clock.advance(0.2)
    assert entered(gate).probe
    assert refused(gate) == 30.0


def test_a_probe_that_succeeds_opens_the_gate(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(5.0)
    entered(gate).ok()
    assert not entered(gate).probe
    assert not entered(gate).probe
    assert gate.parked_for_s(KEY) == 0.0


def test_a_probe_that_is_limited_parks_the_gate_again(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(5.0)
    entered(gate).limited(7.0)
    assert refused(gate) == 7.0


def test_without_a_named_time_the_pause_doubles_and_is_capped(gate, clock):
    entered(gate).limited()
    waits = []
    for _ in range(4):
        waits.append(refused(gate))
        clock.advance(waits[-1])
        entered(gate).limited()
    assert waits == [1.0, 2.0, 4.0, 4.0]
    clock.advance(4.0)
    entered(gate).ok()
    entered(gate).limited()
    assert refused(gate) == 1.0


def test_a_probe_that_never_reports_is_replaced_after_its_lease(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(5.0)
    hung = entered(gate)
    clock.advance(29.9)
    refused(gate)
    clock.advance(0.2)
    second = entered(gate)
    assert second.probe
    hung.ok()
    refused(gate)
    hung.limited(99.0)
    hung.release()
    assert refused(gate) == 30.0
    second.ok()
    assert not entered(gate).probe


def test_a_late_report_changes_nothing(gate, clock):
    early = [entered(gate) for _ in range(4)]
    early[0].limited(5.0)
    early[1].limited(60.0)
    early[2].ok()
    assert refused(gate) == 5.0
    clock.advance(5.0)
    probe = entered(gate)
    probe.ok()
    early[3].limited(60.0)
    probe.limited(60.0)
    assert not entered(gate).probe


def test_a_probe_given_back_lets_the_next_one_try(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(5.0)
    with entered(gate) as first:
        refused(gate)
    assert first.probe
    assert entered(gate).probe


def test_a_pass_that_reported_has_nothing_to_give_back(gate, clock):
    entered(gate).limited(5.0)
    clock.advance(5.0)
    with entered(gate) as probe:
        probe.limited(3.0)
    assert refused(gate) == 3.0
    with entered(gate, "other") as plain:
        plain.ok()


def probing(gate: ProviderGate, clock: FrozenClock) -> Pass:
    """Park the gate for 5 s, let them pass, and enter as the probe."""
    entered(gate).limited(5.0)
    clock.advance(5.0)
    return entered(gate)


class TestAfterTheBlock:
    """A pass handed over after its `with` block: the natural way to write a handler."""

    def test_a_limit_still_parks(self, gate, clock):
        with pytest.raises(ConnectionError), probing(gate, clock) as probe:
            raise ConnectionError
        probe.limited(7.0)
        assert refused(gate) == 7.0

    def test_a_limit_counts_once(self, gate, clock):
        with probing(gate, clock) as probe:
            pass
        probe.limited()
        assert refused(gate) == 2.0
        probe.limited()
        probe.limited(60.0)
        assert refused(gate) == 2.0

    def test_an_answer_still_opens(self, gate, clock):
        with probing(gate, clock) as probe:
            pass
        probe.ok()
        assert not entered(gate).probe

    def test_a_limit_parks_for_longer_but_leaves_the_next_probe_its_verdict(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        second = entered(gate)
        first.limited(50.0)
        first.limited(90.0)
        assert gate.parked_for_s(KEY) == 50.0
        assert refused(gate) == 50.0
        second.ok()
        entered(gate).limited(1.0)
        assert refused(gate) == 1.0

    def test_a_limit_is_obeyed_when_the_next_probe_gives_up_too(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        with entered(gate):
            first.limited(50.0)
        assert refused(gate) == 50.0

    def test_a_shorter_pause_of_the_next_probe_shortens_nothing(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        second = entered(gate)
        first.limited(50.0)
        second.limited(3.0)
        assert refused(gate) == 50.0

    def test_an_answer_leaves_the_next_probe_its_verdict(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        second = entered(gate)
        first.ok()
        assert refused(gate) == 30.0
        second.limited(8.0)
        assert refused(gate) == 8.0

    def test_a_limit_never_parks_a_gate_that_was_proven_open(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        entered(gate).ok()
        first.limited(60.0)
        assert not entered(gate).probe

    def test_of_two_that_were_limited_the_first_to_say_so_decides(self, gate, clock):
        with probing(gate, clock) as first:
            pass
        with entered(gate) as second:
            pass
        first.limited(5.0)
        second.limited(60.0)
        assert refused(gate) == 5.0

    def test_a_probe_that_outlived_its_lease_has_no_say(self, gate, clock):
        with probing(gate, clock) as hung:
            clock.advance(30.0)
            with entered(gate):
                pass
        hung.limited(60.0)
        assert entered(gate).probe


class Limited(Exception):  # noqa: N818  # as a provider would say it
    status_code = 429
    headers: ClassVar = {"retry-after": "20"}


class TestWithRecovery:
    @pytest.fixture
    def service(self, gate):
        return ErrorRecoveryService(gate=gate)

    def test_a_limited_probe_parks_the_gate_when_its_handler_stands_around_the_block(
        self, service, gate, clock
    ):
        entered(gate).limited(5.0)
        clock.advance(5.0)

        def call() -> None:
            raise Limited

        try:
            with gate.enter(KEY, timeout_s=0) as admitted:
                call()
        except Limited as error:
            record = service.record_error("p", error, provider="openai", model="small")
            service.recover(record, gate_pass=admitted)
        assert refused(gate) == 20.0

    def test_a_refusal_of_the_gate_never_parks_it_again(self, service, gate, clock):
        with probing(gate, clock):
            with pytest.raises(ProviderError) as refusal:
                entered(gate)
            record = service.record_error("p", refusal.value, provider="openai", model="small")
            decision = service.recover(record)
        assert decision.action is Action.RETRY
        assert gate.parked_for_s(KEY) == 0.0
        assert entered(gate).probe

    def test_a_refusal_that_is_handled_late_does_not_close_an_open_gate(self, service, gate, clock):
        entered(gate).limited(5.0)
        with pytest.raises(ProviderError) as refusal:
            entered(gate)
        clock.advance(5.0)
        entered(gate).ok()
        wrapped = RuntimeError("node failed")
        wrapped.__cause__ = refusal.value
        service.handle("p", wrapped, provider="openai", model="small")
        assert not entered(gate).probe

    def test_an_open_breaker_parks_no_gate(self, service, gate):
        refusal = CircuitOpen("paused", facts={"retry_after_s": 30.0})
        service.handle("p", refusal, provider="openai", model="small")
        assert not entered(gate).probe


def test_a_gate_parked_from_outside_is_only_ever_parked_longer(gate):
    gate.park(KEY, 5.0)
    gate.park(KEY, 2.0)
    assert gate.parked_for_s(KEY) == 5.0
    gate.park(KEY, 9.0)
    assert gate.parked_for_s(KEY) == 9.0
    gate.park("other")
    assert gate.parked_for_s("other") == 1.0
    gate.park("odd", float("nan"))
    assert gate.parked_for_s("odd") == 1.0


def test_a_probe_is_not_followed_before_a_longer_pause_is_over(gate, clock):
    gate.park(KEY, 5.0)
    clock.advance(5.0)
    assert entered(gate).probe
    gate.park(KEY, 60.0)
    clock.advance(40.0)
    assert refused(gate) == 20.0
    clock.advance(20.0)
    assert entered(gate).probe


def test_a_wait_that_cannot_suffice_is_refused_at_once(gate):
    entered(gate).limited(60.0)
    assert refused(gate, timeout_s=59.0) == 60.0


@pytest.mark.parametrize("timeout_s", [-1.0, float("inf"), None])
def test_a_wait_without_an_end_is_refused(gate, timeout_s):
    with pytest.raises(RequestError, match="`timeout_s` must be"):
        gate.enter(KEY, timeout_s=timeout_s)


@pytest.mark.parametrize("terms", [{"pause_s": 0}, {"lease_s": "1"}, {"pause_s_max": 0.5}])
def test_terms_that_break_a_rule_are_refused(terms):
    with pytest.raises(SetupError):
        GateTerms(**terms)


class Waiters:
    """Callers that wait in threads of their own; results come as they are let in."""

    def __init__(self, gate: ProviderGate, count: int, stop: StopSignal | None = None) -> None:
        self.results: deque[Pass | BaseException] = deque()
        self.news = threading.Semaphore(0)
        self.threads = [
            threading.Thread(target=self.wait, args=(gate, stop), name=f"ca-waiter-{n}")
            for n in range(count)
        ]
        for thread in self.threads:
            thread.start()
        while len(gate._changed._waiters) < count:  # each stands at the gate
            threading.Event().wait(0.001)

    def wait(self, gate: ProviderGate, stop: StopSignal | None) -> None:
        try:
            self.results.append(gate.enter(KEY, timeout_s=300.0, stop=stop))
        except BaseException as error:  # noqa: BLE001  # judged by the test
            self.results.append(error)
        self.news.release()

    def next(self) -> Pass | BaseException:
        assert self.news.acquire(timeout=10)
        return self.results.popleft()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(10)


def test_of_many_who_wait_one_probes_and_its_success_lets_all_go(gate, clock):
    entered(gate).limited(5.0)
    waiters = Waiters(gate, 8)
    clock.advance(5.0)
    gate.wake()
    probe = waiters.next()
    assert probe.probe
    assert not waiters.results
    probe.ok()
    rest = [waiters.next() for _ in range(7)]
    waiters.join()
    assert not any(one.probe for one in rest)


def test_those_who_wait_stay_while_probes_fail(gate, clock):
    entered(gate).limited(5.0)
    waiters = Waiters(gate, 3)
    for left in (2, 1, 0):
        clock.advance(5.0)
        gate.wake()
        probe = waiters.next()
        assert probe.probe
        assert len(waiters.results) == 0
        probe.limited(5.0)
        assert sum(thread.is_alive() for thread in waiters.threads) >= left
    waiters.join()


def test_a_stop_ends_the_wait_at_once(gate):
    entered(gate).limited(60.0)
    stop = StopSignal()
    waiters = Waiters(gate, 3, stop)
    stop.stop("enough")
    assert all(isinstance(waiters.next(), Stopped) for _ in range(3))
    waiters.join()


def test_a_stop_that_came_before_is_seen_too(gate):
    entered(gate).limited(60.0)
    stop = StopSignal()
    stop.stop("enough")
    with pytest.raises(Stopped):
        gate.enter(KEY, timeout_s=300, stop=stop)


def test_a_wait_behind_a_probe_ends_at_its_time_limit():
    """In real time, because only the caller's own limit can end this wait."""
    real = ProviderGate(GateTerms(lease_s=30.0))
    real.enter(KEY, timeout_s=0).limited(0.0)
    assert real.enter(KEY, timeout_s=1).probe
    assert 0 < refused(real, timeout_s=0.02) <= 30.0


def test_a_clock_that_moved_while_it_was_read_is_read_again(clock):
    reads = []

    def racing() -> float:
        now = clock()
        reads.append(now)
        if len(reads) == 4:  # limited, then deadline, then the first look: now it moves
            clock.advance(5.0)
            gate.wake()
        return now

    gate = ProviderGate(clock=racing)
    gate.enter(KEY, timeout_s=0).limited(5.0)
    gate.park("unrelated", 0.0)
    assert gate.enter(KEY, timeout_s=10).probe


def test_a_stop_while_the_clock_is_read_is_seen():
    """The stop comes after the look at it and before the sleep: the sleep must not happen."""
    stop = StopSignal()
    reads = []

    def racing() -> float:
        reads.append(None)
        if len(reads) == 3:  # limited, then the deadline, then the first look
            stop.stop("enough")
        return 0.0

    gate = ProviderGate(clock=racing)
    gate.enter(KEY, timeout_s=0).limited(5.0)
    with pytest.raises(Stopped):
        gate.enter(KEY, timeout_s=10, stop=stop)
    assert len(reads) == 3


def simulate(outage_s: float, actors: int) -> tuple[int, float]:
    """Fifty actors that call all the time, an outage in the middle: all in one thread, by steps."""
    clock = FrozenClock()
    gate = ProviderGate(clock=clock)
    start, step_s, call_s, think_s = clock(), 0.01, 0.02, 0.6
    begins, ends = start + 1.0, start + 1.0 + outage_s
    ready = [start + think_s * n / actors for n in range(actors)]
    calls: dict[int, tuple[float, Pass]] = {}
    through: dict[int, float] = {}
    hits = 0
    while len(through) < actors:
        clock.advance(step_s)
        now = clock()
        for actor in range(actors):
            if actor in calls and now >= calls[actor][0]:
                _, admitted = calls.pop(actor)
                if begins <= now - call_s < ends:
                    hits += 1
                    admitted.limited(1.0)
                    ready[actor] = now
                else:
                    admitted.ok()
                    ready[actor] = now + think_s
                    if now >= ends:
                        through.setdefault(actor, now)
            elif actor not in calls and now >= ready[actor]:
                try:
                    calls[actor] = (now + call_s, gate.enter(KEY, timeout_s=0))
                except ProviderError:
                    continue
    return hits, max(through.values()) - ends


def test_fifty_actors_send_about_ten_requests_into_an_outage_of_four_seconds():
    hits, last_s = simulate(outage_s=4.0, actors=50)
    assert hits <= 10
    assert last_s < 1.5
