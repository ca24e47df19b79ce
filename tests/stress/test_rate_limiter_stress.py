"""The limiter under real threads that switch as often as Python lets them."""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial

import pytest

from cleveragents.domain.errors import ProviderError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.providers.model_access.rate_bucket import SHARES
from cleveragents.providers.model_access.rate_limiter import RateLimiter, RateLimits
from cleveragents.testing import FrozenClock, run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]


def test_exactly_as_many_of_200_calls_go_as_there_is_room_for():
    for _ in range(5):
        limiter = RateLimiter({"p": RateLimits(77)}, clock=FrozenClock())

        def go(limiter=limiter):
            try:
                return limiter.acquire("p", plan="a", tokens=1, timeout_s=0)
            except ProviderError:
                return None

        tickets = run_together([go] * 200)
        assert len([ticket for ticket in tickets if ticket is not None]) == 77


def test_no_token_is_lost_or_made_whatever_goes_on_at_once():
    """Time stands still, so what is left is the bucket less what was used, exactly."""
    limiter = RateLimiter({"p": RateLimits(None, 1000)}, clock=FrozenClock())

    def work(seed: int) -> int:
        used = 0
        for step in range(60):
            tokens = (seed * 7 + step * 13) % 400
            try:
                ticket = limiter.acquire("p", plan=f"plan {seed % 3}", tokens=tokens, timeout_s=0)
            except ProviderError:
                continue
            if step % 3 == 0:
                ticket.refund()
            else:
                used += step % 2
                ticket.settle(step % 2)
            ticket.settle(0)
        return used

    used = sum(run_together([partial(work, seed) for seed in range(16)]))
    line = limiter._lines["p"]
    assert used < 1000
    assert line._tokens.bucket.level == (1000 - used) * SHARES
    assert line._tokens.bucket.lent == 0
    assert (line.waiting, len(line._plans), line._waiters) == (0, 0, {})


def test_no_wake_is_lost_between_those_who_wait_and_those_who_give_back():
    """Room for one at a time and no time passes: each goes only because another woke it."""
    limiter = RateLimiter({"p": RateLimits(None, 10)}, clock=FrozenClock())

    def work(seed: int) -> None:
        for _ in range(25):
            limiter.acquire("p", plan=f"plan {seed % 4}", tokens=10, timeout_s=60).settle(0)

    run_together([partial(work, seed) for seed in range(24)], timeout_s=30)
    assert limiter.waiting("p") == 0


def test_stops_at_any_moment_cost_nothing_and_leave_nobody_behind():
    limiter = RateLimiter({"p": RateLimits(None, 10)}, clock=FrozenClock())
    signals = [StopSignal() for _ in range(30)]

    def work(stop: StopSignal) -> None:
        with contextlib.suppress(Stopped):
            while True:
                limiter.acquire("p", plan="a", tokens=10, timeout_s=60, stop=stop).settle(0)

    def stop_all() -> None:
        for stop in signals:
            stop.stop()

    run_together([*(partial(work, stop) for stop in signals), stop_all], timeout_s=30)
    assert limiter.waiting("p") == 0
    limiter.acquire("p", plan="a", tokens=10, timeout_s=0)


def test_a_plan_with_one_call_waits_for_one_of_a_plan_with_a_thousand():
    clock = FrozenClock()
    limiter = RateLimiter({"p": RateLimits(None, 60)}, clock=clock)
    limiter.acquire("p", plan="many", tokens=60, timeout_s=0)
    order: list[str] = []
    order_lock = threading.Lock()
    stop = StopSignal()

    def call(plan: str) -> None:
        try:
            limiter.acquire("p", plan=plan, tokens=30, timeout_s=600, stop=stop)
        except Stopped:
            return
        with order_lock:
            order.append(plan)

    def crowd(count: int, plan: str) -> list[threading.Thread]:
        before = limiter.waiting("p")
        threads = [threading.Thread(target=call, args=(plan,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        wait_for(lambda: limiter.waiting("p") == before + count)
        return threads

    threads = [*crowd(1000, "many"), *crowd(1, "one")]
    clock.advance(60.0)
    limiter.wake()
    wait_for(lambda: len(order) == 2)
    stop.stop()
    for thread in threads:
        thread.join(30)
    assert sorted(order) == ["many", "one"]


def test_a_real_clock_lets_through_what_the_rate_allows_and_no_more():
    limiter = RateLimiter({"p": RateLimits(60_000, None, 0.05)})

    def work(seed: int) -> None:
        for _ in range(25):
            limiter.acquire("p", plan=f"plan {seed}", tokens=1, timeout_s=30)

    started_s = time.monotonic()
    run_together([partial(work, seed) for seed in range(16)])
    elapsed_s = time.monotonic() - started_s
    # 1,000 in a second, and 50 at once.
    assert elapsed_s >= (16 * 25 - 50) / 1000


def wait_for(reached) -> None:
    never = threading.Event()
    for _ in range(30_000):
        if reached():
            return
        never.wait(0.001)
    raise TimeoutError("Waited 30 s for the other threads")
