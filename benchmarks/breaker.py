"""What a breaker costs while all is well, and how many it lets through when a pause ends.

The cost of a guarded call, net of the call itself, against a bare locked increment of a dict
(a function call too), beside four other breakers, each used as its documentation shows.
Then 200 threads that come at the moment a pause is over, when one of them may try.
"""

from __future__ import annotations

import importlib
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from _yardstick import Goals, best_seconds, in_threads
from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.testing import run_together

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS: Final = 32_000
CALLERS: Final = 200
PAUSE_S: Final = 1.0
PROBE_S: Final = 0.02
FAILURES: Final = 10

Work: TypeAlias = "Callable[[], object]"


def ours(work: Work) -> Work:
    """Guard by `call`."""
    breaker = CircuitBreaker(FAILURES, pause_s=PAUSE_S)
    return partial(breaker.call, "grep", work)


def ours_by_permit(work: Work) -> Work:
    """Guard by a permit, as the executor of strategies does."""
    breaker = CircuitBreaker(FAILURES, pause_s=PAUSE_S)

    def guarded() -> None:
        permit = breaker.acquire("grep")
        work()
        breaker.record_success("grep", permit)

    return guarded


def pybreaker(work: Work) -> Work:
    """Guard by `CircuitBreaker.call`."""
    peer: Any = importlib.import_module("pybreaker")
    return partial(peer.CircuitBreaker(fail_max=FAILURES, reset_timeout=PAUSE_S).call, work)


def circuitbreaker(work: Work) -> Work:
    """Guard by the decorator."""
    peer: Any = importlib.import_module("circuitbreaker")
    guarded: Work = peer.circuit(failure_threshold=FAILURES, recovery_timeout=PAUSE_S)(work)
    return guarded


def purgatory(work: Work) -> Work:
    """Guard by the decorator."""
    peer: Any = importlib.import_module("purgatory")
    factory = peer.SyncCircuitBreakerFactory(default_threshold=FAILURES, default_ttl=PAUSE_S)
    guarded: Work = factory("grep")(work)
    return guarded


def interlock(work: Work) -> Work:
    """Guard by `CircuitBreaker.call`; it keeps a window and watches slow calls besides."""
    peer: Any = importlib.import_module("interlock")
    config = peer.Config(
        minimum_number_of_calls=FAILURES,
        window_size=FAILURES,
        wait_duration_in_open=PAUSE_S,
        permitted_calls_in_half_open=1,
    )
    return partial(peer.CircuitBreaker(name="grep", config=config).call, work)


PEERS: Final = {
    "pybreaker": pybreaker,
    "circuitbreaker": circuitbreaker,
    "purgatory": purgatory,
    "interlock-cb": interlock,
}


def locked_increment() -> Work:
    """Return the yardstick: the least that a counter shared by threads does."""
    lock = threading.Lock()
    counts = {"grep": 0}

    def increment() -> None:
        with lock:
            counts["grep"] += 1

    return increment


def nothing() -> None:
    """Do the guarded work: none, so that only the guard is left to measure."""


def repeated(call: Work, count: int) -> Work:
    """Return a loop over one call."""

    def loop() -> None:
        for _ in range(count):
            call()

    return loop


def empty_loop(count: int) -> Work:
    """Return the loop alone."""

    def loop() -> None:
        for _ in range(count):
            pass

    return loop


def overheads(threads: int) -> dict[str, float]:
    """Return what each guard adds to a call, as a ratio to the yardstick."""
    count = CALLS // threads
    guards = {"ours": ours, "ours, by permit": ours_by_permit, **PEERS}
    contestants = {
        "loop": empty_loop(count),
        "yardstick": repeated(locked_increment(), count),
        "call": repeated(nothing, count),
        "call of a call": repeated(lambda: nothing(), count),  # noqa: PLW0108  # two calls
        **{name: repeated(guard(nothing), count) for name, guard in guards.items()},
    }
    seconds = best_seconds({n: in_threads(threads, work) for n, work in contestants.items()})
    yardstick_s = seconds["yardstick"] - seconds["loop"]
    return {
        # The permits stand in a function of their own here, which is not the breaker's cost.
        name: (seconds[name] - seconds["call of a call" if name == "ours, by permit" else "call"])
        / yardstick_s
        for name in guards
    }


def measure_overhead(goals: Goals) -> None:
    """Compare the guards while nothing fails."""
    print(
        "\nguarded call, net of the call, ratio to `with lock: counts[name] += 1` (less is better)"
    )
    for threads in (1, 4, 16):
        ratios = overheads(threads)
        print(f"  {threads} {'thread' if threads == 1 else 'threads'}")
        goals.at_most("CircuitBreaker.call", ratios["ours"], 1.0)
        goals.at_most("acquire, record_success", ratios["ours, by permit"], 1.0)
        for peer in PEERS:
            print(f"         {peer:<58} {ratios[peer]:>9.2f}")
        fastest = min(PEERS, key=ratios.__getitem__)
        share = ratios["ours"] / ratios[fastest]
        goals.at_most(f"CircuitBreaker.call, ratio to {fastest}, the fastest peer", share, 1.0)


def admitted_at_the_lapse(guard: Callable[[Work], Work]) -> int:
    """Trip a breaker, wait for the end of its pause, send all callers at once, count who got in."""
    lock = threading.Lock()
    admitted = 0
    probing = False

    def fail() -> None:
        nonlocal admitted
        if probing:
            with lock:
                admitted += 1
            time.sleep(PROBE_S)
        raise OSError("out of order")

    guarded = guard(fail)

    def attempt() -> None:
        # A refusal, the failure itself, or what a peer raises under a race: all end the attempt.
        with suppress(Exception):
            guarded()

    for _ in range(FAILURES):
        attempt()
    time.sleep(PAUSE_S * 1.1)
    probing = True
    run_together([attempt] * CALLERS)
    return admitted


def measure_stampede(goals: Goals) -> None:
    """Count the callers that reach what is out of order when its pause ends."""
    print(
        f"\n{CALLERS} threads at the end of a pause, a probe of {PROBE_S * 1000:.0f} ms: admitted"
    )
    goals.exactly("CircuitBreaker.call", admitted_at_the_lapse(ours), 1)
    for peer, guard in PEERS.items():
        print(f"         {peer:<58} {admitted_at_the_lapse(guard):>9}")


def main() -> None:
    """Measure, print and judge."""
    goals = Goals()
    measure_overhead(goals)
    measure_stampede(goals)
    goals.finish()


if __name__ == "__main__":
    main()
