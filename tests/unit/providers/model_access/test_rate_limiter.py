"""Calls go as fast as a provider allows, and plans share it fairly."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from cleveragents.domain.errors import ProviderError, RequestError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.providers.model_access.rate_limiter import RateLimiter, RateLimits, Ticket
from cleveragents.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG_S = 3600.0


class Desk:
    """A limiter of 60 requests and 600 tokens in a minute, and threads that wait at it."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.clock = FrozenClock()
        self.limiter = RateLimiter({"p": RateLimits(60, 600)}, clock=self.clock)
        self._pool = pool

    def take(self, tokens: int, **options) -> Ticket:
        return self.limiter.acquire(
            "p", **{"plan": "a", "tokens": tokens, "timeout_s": 0.0, **options}
        )

    def wait(self, tokens: int, **options) -> Future[Ticket]:
        """Take in another thread, and return once it waits."""
        before = self.limiter.waiting("p")
        waiting = self._pool.submit(self.take, tokens, **{"timeout_s": LONG_S, **options})
        until(lambda: self.limiter.waiting("p") > before)
        return waiting

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.limiter.wake()


def until(reached: Callable[[], bool]) -> None:
    never = threading.Event()
    for _ in range(5000):
        if reached():
            return
        never.wait(0.001)
    raise TimeoutError("Waited 5 s for the other threads")


@pytest.fixture
def desk() -> Iterator[Desk]:
    with ThreadPoolExecutor(16, thread_name_prefix="ca-desk") as pool:
        yield Desk(pool)


def refused(desk: Desk, tokens: int = 1, **options) -> float:
    with pytest.raises(ProviderError) as error:
        desk.take(tokens, **options)
    assert error.value.code == "CA3109"
    return float(error.value.facts["retry_after_s"])


def test_calls_go_at_once_while_there_is_room(desk):
    tickets = [desk.take(10) for _ in range(60)]
    assert [ticket.number for ticket in tickets] == list(range(1, 61))
    assert refused(desk) == 1.0


def test_tokens_are_limited_too(desk):
    desk.take(600)
    assert refused(desk, 10) == 1.0
    assert desk.take(0).tokens == 0
    desk.clock.advance(1.0)
    desk.take(10)


def test_a_refusal_says_the_limit_and_costs_nothing(desk):
    desk.take(600)
    with pytest.raises(ProviderError) as error:
        desk.take(100)
    assert error.value.facts["limit"] == "60 requests and 600 tokens in a minute"
    assert error.value.facts["provider"] == "p"
    desk.clock.advance(60.0)
    desk.take(600)


def test_a_provider_without_limits_lets_everybody_go(desk):
    for _ in range(1000):
        desk.limiter.acquire("free", plan="a", tokens=10**9, timeout_s=0).settle(10**9)
    assert desk.limiter.waiting("free") == desk.limiter.waiting("unheard of") == 0


def test_a_limit_of_one_provider_keeps_no_other_back():
    limiter = RateLimiter({"p": RateLimits(1), "q": RateLimits(1)}, clock=FrozenClock())
    limiter.acquire("p", plan="a", tokens=1, timeout_s=0)
    limiter.acquire("q", plan="a", tokens=1, timeout_s=0)


def test_settle_gives_back_what_was_estimated_too_much(desk):
    desk.take(600).settle(100)
    desk.take(500)
    refused(desk)


def test_settle_takes_what_was_used_beyond_the_estimate(desk):
    desk.take(100).settle(700)
    assert refused(desk, 10) == 11.0


def test_only_the_first_report_of_a_ticket_counts(desk):
    ticket = desk.take(600)
    ticket.settle(600)
    ticket.settle(0)
    ticket.refund()
    assert refused(desk, 600) == 60.0


def test_refund_gives_the_request_back_too(desk):
    tickets = [desk.take(0) for _ in range(60)]
    tickets[0].settle(0)
    refused(desk)
    tickets[1].refund()
    desk.take(0)


def test_whoever_waits_goes_when_time_has_brought_enough(desk):
    desk.take(600)
    waiting = desk.wait(50)
    desk.pass_time(4.9)
    assert not waiting.done()
    desk.pass_time(0.1)
    assert waiting.result(5).tokens == 50


def test_whoever_waits_goes_when_somebody_gives_back(desk):
    ticket = desk.take(600)
    waiting = desk.wait(300)
    ticket.settle(300)
    assert waiting.result(5).tokens == 300


def test_a_wait_of_real_time_ends_by_itself():
    """Nobody wakes it: the first in line sets its own alarm."""
    limiter = RateLimiter({"p": RateLimits(6000, None, 0.001)})
    limiter.acquire("p", plan="a", tokens=0, timeout_s=0)
    limiter.acquire("p", plan="a", tokens=0, timeout_s=5)


def test_a_wait_of_real_time_ends_at_its_limit():
    limiter = RateLimiter({"p": RateLimits(1)})
    limiter.acquire("p", plan="a", tokens=0, timeout_s=0)
    with pytest.raises(ProviderError):
        limiter.acquire("p", plan="a", tokens=0, timeout_s=0.01)


def test_nobody_passes_the_first_in_line(desk):
    """Else small calls would keep a large one back for ever."""
    desk.take(500)
    large = desk.wait(300)
    refused(desk, 1)
    desk.pass_time(20.0)
    assert large.result(5).tokens == 300
    desk.pass_time(1.0)
    desk.take(1)


def test_plans_are_served_in_turn(desk):
    desk.take(600)
    many = [desk.wait(100, plan="many") for _ in range(5)]
    one = desk.wait(100, plan="one")
    desk.pass_time(20.0)
    one.result(5)
    assert [call.done() for call in many] == [True, False, False, False, False]
    desk.pass_time(40.0)
    for call in many:
        call.result(5)


def test_a_call_larger_than_the_bucket_goes_when_it_is_full(desk):
    desk.take(1)
    large = desk.wait(1000)
    desk.pass_time(1.0)
    large.result(5)
    assert refused(desk, 10) == 41.0


def test_a_wait_that_times_out_costs_nothing_and_frees_the_next(desk):
    desk.take(600)
    impatient = desk.wait(600, timeout_s=10.0)
    patient = desk.wait(100, plan="b")
    desk.pass_time(10.0)
    with pytest.raises(ProviderError):
        impatient.result(5)
    assert patient.result(5).tokens == 100
    assert desk.limiter.waiting("p") == 0


def test_a_stop_ends_the_wait_and_frees_the_next(desk):
    desk.take(550)
    stop = StopSignal()
    stopped = desk.wait(600, stop=stop)
    small = desk.wait(50, plan="b")
    stop.stop("enough")
    with pytest.raises(Stopped, match="enough"):
        stopped.result(5)
    assert small.result(5).tokens == 50
    assert stop._listeners == {}


def test_a_stop_of_one_far_behind_keeps_the_order_of_the_others(desk):
    desk.take(600)
    stop = StopSignal()
    first = desk.wait(10)
    behind = desk.wait(10, stop=stop)
    last = desk.wait(10)
    stop.stop()
    with pytest.raises(Stopped):
        behind.result(5)
    desk.pass_time(1.0)
    first.result(5)
    assert not last.done()
    desk.pass_time(1.0)
    last.result(5)


def test_what_is_stopped_already_takes_nothing(desk):
    stop = StopSignal()
    stop.stop()
    with pytest.raises(Stopped):
        desk.take(600, stop=stop)
    desk.take(600)


def test_a_stop_between_the_look_and_the_wait_is_not_missed(desk):
    """The clock is read between the two: here it stops the caller."""
    desk.take(600)
    stop = StopSignal()
    readings = iter([0.0])
    limiter = desk.limiter

    def clock() -> float:
        if next(readings, None) is None:
            stop.stop()
        return desk.clock()

    limiter._clock = clock
    with pytest.raises(Stopped):
        desk.take(600, timeout_s=LONG_S, stop=stop)


def test_a_hold_keeps_everybody_back_until_its_moment(desk):
    desk.limiter.hold("p", desk.clock() + 30.0)
    desk.limiter.hold("p", desk.clock() + 5.0)
    assert refused(desk) == 30.0
    waiting = desk.wait(1)
    desk.pass_time(29.0)
    assert not waiting.done()
    desk.pass_time(1.0)
    waiting.result(5)
    desk.take(1)


def test_a_hold_beyond_the_time_of_a_wait_refuses_at_once(desk):
    desk.limiter.hold("p", desk.clock() + 30.0)
    assert refused(desk, timeout_s=29.0) == 30.0


def test_a_hold_that_comes_later_ends_waits_that_became_vain(desk):
    desk.take(600)
    vain = desk.wait(10, timeout_s=20.0)
    patient = desk.wait(10)
    desk.limiter.hold("p", desk.clock() + 30.0)
    with pytest.raises(ProviderError):
        vain.result(5)
    assert desk.limiter.waiting("p") == 1
    desk.pass_time(30.0)
    patient.result(5)


def test_a_hold_works_without_limits(desk):
    desk.limiter.hold("free", desk.clock() + 1.0)
    with pytest.raises(ProviderError) as error:
        desk.limiter.acquire("free", plan="a", tokens=1, timeout_s=0)
    assert error.value.facts["limit"] == "no limit"


@pytest.mark.parametrize("value", [-1, 1.0, True, None])
def test_tokens_must_be_a_whole_number(desk, value):
    with pytest.raises(RequestError, match="`tokens`"):
        desk.take(value)
    with pytest.raises(RequestError, match="`tokens_used`"):
        desk.take(1).settle(value)


@pytest.mark.parametrize("value", [-1.0, float("inf"), None])
def test_times_must_be_seconds(desk, value):
    with pytest.raises(RequestError, match="`timeout_s`"):
        desk.take(1, timeout_s=value)
    with pytest.raises(RequestError, match="`until_s`"):
        desk.limiter.hold("p", value)


def test_provider_is_held_for_as_long_as_it_asks(desk):
    desk.limiter.hold_for("p", 5)
    assert refused(desk) == 5.0
    desk.pass_time(5)
    desk.take(1)


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
def test_hold_of_no_length_of_time_is_refused(desk, seconds):
    with pytest.raises(RequestError, match="number of seconds"):
        desk.limiter.hold_for("p", seconds)
