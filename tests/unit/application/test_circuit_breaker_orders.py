"""Every order in which callers and the clock can meet one breaker.

The proofs show that each method is atomic, so threads are nothing but orders of method calls.
Here all of those orders are walked, beside a reference that knows no permit numbers:
it keeps the set of callers that are still *heard*, and has one line for each rule.

Two orders that lead to the same situation (the whole breaker, the reference, every caller's
permit, the clock) go on alike from there: such a situation is walked once and its orders are
counted every time. A walk without this merging finds the same number.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cleveragents.application.services.circuit_breaker import CircuitBreaker, CircuitState

pytestmark = pytest.mark.long

NAME = "grep"
THRESHOLD, PAUSE_S, LEASE_S = 3, 10.0, 10.0
#: One tick ends the first pause or a lease; a doubled pause needs both ticks.
TICK_S = 10.0
WAITING, GONE = "waiting", "gone"
VERDICTS = ("success", "failure", "release")
NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Reference:
    """The rules, said in another way than the breaker says them."""

    failures: int = 0
    rounds: int = 0
    refused_until: float = 0.0
    heard: frozenset[int] = NOBODY

    def acquire(self, caller, now):
        if not self.rounds:
            return replace(self, heard=self.heard | {caller})
        if now < self.refused_until:
            return None
        return replace(self, heard=frozenset({caller}), refused_until=now + LEASE_S)

    def report(self, caller, verdict, now):
        if caller not in self.heard:
            return self
        heard = self.heard - {caller}
        if verdict == "release":
            return replace(self, heard=heard, refused_until=0.0)
        if verdict == "success":
            return Reference(heard=heard)
        failed = replace(self, failures=self.failures + 1, heard=heard)
        return failed.opened(now) if self.rounds or failed.failures == THRESHOLD else failed

    def report_without_permit(self, verdict, now):
        if verdict == "success":
            return Reference(heard=NOBODY if self.rounds else self.heard)
        failed = replace(self, failures=self.failures + 1)
        opens = now >= self.refused_until if self.rounds else failed.failures == THRESHOLD
        return failed.opened(now) if opens else failed

    def opened(self, now):
        pause_s = PAUSE_S * 2**self.rounds
        return Reference(self.failures, self.rounds + 1, now + pause_s)

    def seen(self, now):
        """Return what `snapshot` must show."""
        if not self.failures:
            return ()
        if not self.rounds:
            return (CircuitState(NAME, "closed", self.failures, 0, 0.0, probing=False),)
        left_s = max(0.0, self.refused_until - now)
        probe = bool(self.heard)
        status = "half_open" if probe else "open"
        probing = probe and left_s > 0
        return (CircuitState(NAME, status, self.failures, self.rounds, left_s, probing=probing),)


@dataclass(frozen=True)
class At:
    """A clock that stands still."""

    now: float

    def __call__(self):
        return self.now


@dataclass(frozen=True)
class Situation:
    """Where everybody stands; a caller is waiting, in flight with a permit number, or gone."""

    breaker: Any
    reference: Reference
    callers: tuple[str | int, ...]
    ticks: int = 2
    #: Single steps by others: a report without a permit, or a reset.
    others: tuple[str, ...] = ()
    now: float = 0.0

    def key(self):
        # All attributes, whatever they are: one that was left out could merge what differs.
        held = tuple(_frozen(value) for value in vars(self.breaker).values())
        return held, self.reference, self.callers, self.ticks, self.others, self.now

    def forked(self):
        """Return the same situation with a breaker of its own, ready for a step."""
        breaker = copy.copy(self.breaker)
        for attribute, value in vars(breaker).items():
            if isinstance(value, dict | set):
                setattr(breaker, attribute, value.copy())
        breaker._clock = At(self.now)
        return replace(self, breaker=breaker)


def _frozen(value):
    if isinstance(value, dict):
        return frozenset(value.items())
    return frozenset(value) if isinstance(value, set) else value


def following(here):
    """Yield every situation that one step leads to, checked against the reference."""
    for caller, stand in enumerate(here.callers):
        if stand == WAITING:
            yield acquired(here, caller)
        elif stand != GONE:
            yield from (reported(here, caller, verdict) for verdict in VERDICTS)
    for index, other in enumerate(here.others):
        yield done_by_other(here, other, here.others[:index] + here.others[index + 1 :])
    if here.ticks:
        yield replace(here, ticks=here.ticks - 1, now=here.now + TICK_S).forked()


def moved(here, caller, where):
    return (*here.callers[:caller], where, *here.callers[caller + 1 :])


def acquired(here, caller):
    there = here.forked()
    refused = there.breaker.is_open(NAME)
    permit = there.breaker.acquire(NAME)
    expected = here.reference.acquire(caller, here.now)
    assert (permit is None) == (expected is None), "admitted or refused against the rules"
    assert refused == (permit is None), "`is_open` does not say what `acquire` does"
    if permit is None:
        return replace(there, callers=moved(here, caller, GONE))
    return replace(there, callers=moved(here, caller, permit), reference=expected)


def reported(here, caller, verdict):
    there = replace(here.forked(), callers=moved(here, caller, GONE))
    before = there.breaker.snapshot()
    permit = here.callers[caller]
    if verdict == "release":
        there.breaker.release(NAME, permit)
    else:
        getattr(there.breaker, f"record_{verdict}")(NAME, permit)
    if caller not in here.reference.heard:
        assert there.breaker.snapshot() == before, "a stale report changed something"
    return replace(there, reference=here.reference.report(caller, verdict, here.now))


def done_by_other(here, other, others):
    there = replace(here.forked(), others=others)
    if other == "reset":
        there.breaker.reset(NAME)
        return replace(there, reference=Reference())
    getattr(there.breaker, f"record_{other}")(NAME)
    return replace(there, reference=here.reference.report_without_permit(other, here.now))


def check(here):
    breaker, reference = here.breaker, here.reference
    assert not reference.rounds or len(reference.heard) <= 1, "two live probes"
    assert breaker.snapshot() == reference.seen(here.now), "state differs from the reference"
    assert breaker._disabled == set(breaker._rounds), "disabled names without a round"
    assert breaker._view[0] == set(breaker._failures), "the view shows other names"


def check_that_it_recovers(end):
    """Whatever happened, and whoever never reported: after a long time one success closes it."""
    later = replace(end, now=end.now + 1000.0).forked().breaker
    permit = later.acquire(NAME)
    assert permit is not None, "refused for ever"
    later.record_success(NAME, permit)
    assert later.snapshot() == (), "a successful probe did not close it"


def walk(here, known=None):
    """Check every order from here on and return how many there are."""
    key = None if known is None else here.key()
    if known is not None and key in known:
        return known[key]
    check(here)
    orders = 0
    for there in following(here):
        orders += walk(there, known)
    if not orders:
        check_that_it_recovers(here)
        orders = 1
    if known is not None:
        known[key] = orders
    return orders


def start(kind=CircuitBreaker, *, failures, late=0, fresh=4, others=()):
    """Return a breaker after some failures; `late` callers were admitted before them."""
    breaker = kind(
        THRESHOLD, pause_s=PAUSE_S, pause_s_max=1e6, probe_lease_s=LEASE_S, clock=At(0.0)
    )
    callers = tuple(breaker.acquire(NAME) for _ in range(late)) + (WAITING,) * fresh
    for _ in range(failures):
        breaker.record_failure(NAME)
    reference = Reference(failures, heard=frozenset(range(late)))
    reference = reference.opened(0.0) if failures == THRESHOLD else reference
    return Situation(breaker, reference, callers, others=others)


OTHERS = ("success", "failure", "failure", "reset")
#: How it starts, and the exact number of orders from there.
STARTS = {
    "tripped": ({"failures": 3}, 142_896),
    "tripped, two late callers": ({"failures": 3, "late": 2, "fresh": 2}, 65_556),
    "one failure short": ({"failures": 2}, 7_032_096),
    "tripped, others interfere": ({"failures": 3, "fresh": 2, "others": OTHERS}, 1_730_488),
    "one failure short, others interfere": (
        {"failures": 2, "fresh": 2, "others": OTHERS},
        3_223_552,
    ),
}


@pytest.mark.parametrize(("given", "orders"), STARTS.values(), ids=STARTS)
def test_the_rules_hold_in_every_order_of_callers_and_two_ticks(given, orders):
    """Each admitted caller succeeds, fails or is released: those choices are walked too."""
    situations = {}
    walked = walk(start(**given), situations)
    print(f"{walked:,} orders, {len(situations):,} situations")  # noqa: T201  # part of the proof
    assert walked == orders


def test_a_walk_without_merging_finds_the_same_number_of_orders():
    for given in ({"failures": 3, "fresh": 3}, {"failures": 2, "fresh": 2}):
        assert walk(start(**given)) == walk(start(**given), {})


class HearsEverybody(CircuitBreaker):
    """No generation check."""

    def _current_locked(self, *_):
        return True


class HearsTheOldOnceClosed(CircuitBreaker):
    """Checks the probe, but forgets when the closed state began."""

    def _current_locked(self, name, permit):
        return name not in self._rounds or super()._current_locked(name, permit)


class AdmitsTwoProbes(CircuitBreaker):
    def _enter(self, name):
        current = self._rounds.get(name)
        if current is not None and current.probe == self._view[1]:
            self._rounds[name] = replace(current, refused_until=self._clock())
        return super()._enter(name)


class IgnoresTheLease(CircuitBreaker):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._probe_lease_s = 1e9


class LetsALateFailureOverrule(CircuitBreaker):
    def record_failure(self, name, permit=None):
        current = self._rounds.get(name)
        super().record_failure(name, permit if current is None else current.probe)


class LetsALateSuccessClose(CircuitBreaker):
    def record_success(self, name, *_):
        super().record_success(name)


class KeepsTheSlotOfAReleasedProbe(CircuitBreaker):
    def release(self, name, permit):
        pass


class ProlongsThePauseByAsking(CircuitBreaker):
    def _enter(self, name):
        current = self._rounds.get(name)
        if current is not None and current.refused_until > self._clock():
            self._rounds[name] = replace(current, refused_until=current.refused_until + 1)
        return super()._enter(name)


class UsesUpTheProbeByAsking(CircuitBreaker):
    def is_open(self, name):
        return self.acquire(name) is None


class CountsOnAfterASuccess(CircuitBreaker):
    def _clear_locked(self, name, now):
        failures = self._failures.get(name, 0)
        change = super()._clear_locked(name, now)
        if change is None and failures:
            self._failures[name] = failures
        return change


MUTANTS = [
    HearsEverybody,
    HearsTheOldOnceClosed,
    AdmitsTwoProbes,
    IgnoresTheLease,
    LetsALateFailureOverrule,
    LetsALateSuccessClose,
    KeepsTheSlotOfAReleasedProbe,
    ProlongsThePauseByAsking,
    UsesUpTheProbeByAsking,
    CountsOnAfterASuccess,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_walk_catches_a_breaker_with_one_rule_broken(mutant):
    """A walk that cannot fail proves nothing."""
    with pytest.raises(AssertionError):  # noqa: PT012  # whichever start shows the fault
        for given, _ in STARTS.values():
            walk(start(mutant, **given), {})
