"""The breaker's rules, one at a time; time moves only when told."""

from __future__ import annotations

import threading
import time

import pytest

from cleveragents.application.services.circuit_breaker import (
    CircuitBreaker,
    CircuitState,
    StateChange,
)
from cleveragents.domain.errors import CircuitOpen, RequestError
from cleveragents.testing import FrozenClock, Gate, run_together

PAUSE_S = 30.0
LEASE_S = 60.0


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def changes():
    return []


@pytest.fixture
def breaker(clock, changes):
    return CircuitBreaker(3, pause_s=PAUSE_S, clock=clock, on_change=changes.append)


def trip(breaker, name="grep", failures=3):
    for _ in range(failures):
        breaker.record_failure(name)


def status_of(breaker, name="grep"):
    return next((state.status for state in breaker.snapshot() if state.name == name), "closed")


def failing():
    raise OSError("out of order")


class TestWithANameAlone:
    def test_the_threshold_th_failure_disables_the_name(self, breaker):
        trip(breaker, failures=2)
        assert not breaker.is_open("grep")
        breaker.record_failure("grep")
        assert breaker.is_open("grep")
        assert breaker._disabled == {"grep"}
        assert breaker._failures == {"grep": 3}

    def test_a_threshold_of_one_disables_at_the_first_failure(self, clock):
        breaker = CircuitBreaker(1, clock=clock)
        breaker.record_failure("grep")
        assert breaker.is_open("grep")

    def test_a_success_clears_the_count(self, breaker):
        trip(breaker, failures=2)
        breaker.record_success("grep")
        trip(breaker, failures=2)
        assert not breaker.is_open("grep")

    def test_a_success_re_enables_a_disabled_name(self, breaker):
        trip(breaker)
        breaker.record_success("grep")
        assert not breaker.is_open("grep")
        assert breaker._disabled == set()
        assert breaker._failures == {}

    def test_a_success_of_a_clean_name_changes_nothing(self, breaker, changes):
        permit = breaker.acquire("grep")
        breaker.record_success("grep")
        assert breaker.acquire("grep") == permit
        assert changes == []

    def test_a_success_that_comes_second_changes_nothing(self, breaker, clock):
        """Another thread clears the name after this one saw that there is something to clear."""

        def other_thread_first():
            breaker._clock = clock
            breaker.record_success("grep")
            return clock()

        breaker.record_failure("grep")
        breaker._clock = other_thread_first
        breaker.record_success("grep")
        assert breaker.acquire("grep") == 3, "one generation for the failure, one for the success"

    def test_names_do_not_share_their_failures(self, breaker):
        trip(breaker)
        assert not breaker.is_open("glob")

    def test_reset_closes_one_name_and_reset_all_closes_every_name(self, breaker):
        for name in ("grep", "glob", "tree"):
            trip(breaker, name)
        breaker.reset("grep")
        assert [breaker.is_open(name) for name in ("grep", "glob", "tree")] == [False, True, True]
        breaker.reset_all()
        assert breaker.snapshot() == ()

    def test_a_failure_while_open_counts_but_does_not_prolong_the_pause(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S - 1)
        breaker.record_failure("grep")
        assert breaker.retry_after_s("grep") == 1.0
        assert breaker._failures == {"grep": 4}

    def test_a_failure_after_the_pause_starts_a_new_round(self, breaker, clock, changes):
        """Its caller was admitted by `is_open`, so it was the probe in effect."""
        trip(breaker)
        clock.advance(PAUSE_S)
        breaker.record_failure("grep")
        assert breaker.retry_after_s("grep") == 2 * PAUSE_S
        assert (changes[-1].before, changes[-1].after) == ("open", "open")

    def test_a_failure_beside_a_live_probe_only_counts(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        probe = breaker.acquire("grep")
        breaker.record_failure("grep")
        assert breaker._failures == {"grep": 4}
        breaker.record_success("grep", probe)
        assert not breaker.is_open("grep")

    def test_a_failure_beside_a_lapsed_probe_starts_a_new_round(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        probe = breaker.acquire("grep")
        clock.advance(LEASE_S)
        breaker.record_failure("grep")
        breaker.record_success("grep", probe)
        assert breaker.retry_after_s("grep") == 2 * PAUSE_S


class TestPermits:
    def test_a_permit_is_true_as_a_condition(self, breaker):
        assert breaker.acquire("grep")

    def test_reports_with_current_permits_count_like_reports_without(self, breaker):
        permit = breaker.acquire("grep")
        breaker.record_failure("grep", permit)
        breaker.record_failure("grep", breaker.acquire("grep"))
        assert breaker._failures == {"grep": 2}
        breaker.record_success("grep", permit)
        assert breaker._failures == {}

    def test_a_failure_admitted_before_a_success_still_counts(self, breaker):
        """A success clears the count; it does not make calls in flight stale."""
        breaker.record_failure("grep")
        permit = breaker.acquire("grep")
        breaker.record_success("grep", breaker.acquire("grep"))
        breaker.record_failure("grep", permit)
        assert breaker._failures == {"grep": 1}

    def test_an_open_name_gives_no_permit_until_the_pause_is_over(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S - 0.001)
        assert breaker.acquire("grep") is None
        clock.advance(0.001)
        assert breaker.acquire("grep") is not None

    def test_asking_never_uses_up_the_probe(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        assert not breaker.is_open("grep")
        assert breaker.retry_after_s("grep") == 0.0
        assert breaker.acquire("grep") is not None

    def test_a_probe_frees_its_slot_at_once_when_it_is_released(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        probe = breaker.acquire("grep")
        breaker.release("grep", probe)
        assert not breaker.is_open("grep")
        following = breaker.acquire("grep")
        breaker.record_success("grep", probe)
        assert breaker.is_open("grep"), "the released permit has no say any more"
        breaker.record_success("grep", following)
        assert not breaker.is_open("grep")

    def test_releasing_anything_but_the_probe_changes_nothing(self, breaker, clock):
        early = breaker.acquire("grep")
        breaker.release("grep", early)
        trip(breaker)
        breaker.release("grep", early)
        clock.advance(PAUSE_S)
        breaker.acquire("grep")
        breaker.release("grep", early)
        assert breaker.is_open("grep")
        breaker.record_failure("glob")
        breaker.release("glob", early)
        assert breaker._failures["glob"] == 1

    @pytest.mark.parametrize("again", ["reset", "reset_all"])
    @pytest.mark.parametrize("report", ["record_success", "record_failure"])
    def test_a_reset_makes_reports_of_earlier_calls_stale(self, breaker, again, report):
        permit = breaker.acquire("grep")
        breaker.reset("grep") if again == "reset" else breaker.reset_all()
        breaker.record_failure("grep")
        getattr(breaker, report)("grep", permit)
        assert breaker._failures == {"grep": 1}

    def test_a_reset_makes_the_probe_stale(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        probe = breaker.acquire("grep")
        breaker.reset("grep")
        breaker.record_failure("grep", probe)
        assert breaker.snapshot() == ()

    def test_calls_admitted_after_a_reset_of_another_name_stay_current(self, breaker):
        permit = breaker.acquire("grep")
        breaker.reset("glob")
        trip(breaker, "glob")
        breaker.record_failure("grep", permit)
        assert breaker._failures["grep"] == 1


class TestRounds:
    def test_the_pause_doubles_with_each_failed_round_up_to_its_maximum(self, clock):
        breaker = CircuitBreaker(1, pause_s=10.0, pause_s_max=35.0, clock=clock)
        breaker.record_failure("grep")
        pauses = []
        for _ in range(4):
            pauses.append(breaker.retry_after_s("grep"))
            clock.advance(pauses[-1])
            breaker.record_failure("grep", breaker.acquire("grep"))
        assert pauses == [10.0, 20.0, 35.0, 35.0]
        assert breaker.snapshot()[0].rounds == 5

    def test_a_successful_probe_forgets_the_rounds(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        breaker.record_failure("grep", breaker.acquire("grep"))
        clock.advance(2 * PAUSE_S)
        breaker.record_success("grep", breaker.acquire("grep"))
        trip(breaker)
        assert breaker.retry_after_s("grep") == PAUSE_S


class TestProtocol:
    """Eight checks; of the Python breakers measured, each fails at least one."""

    def test_1_exactly_one_of_many_callers_becomes_the_probe(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        permits = run_together([lambda: breaker.acquire("grep")] * 32)
        assert sum(permit is not None for permit in permits) == 1

    def test_2_a_success_of_a_call_admitted_before_the_trip_does_not_close_it(self, breaker):
        early = breaker.acquire("grep")
        trip(breaker)
        breaker.record_success("grep", early)
        assert breaker.is_open("grep")

    def test_3_nor_does_it_while_a_probe_is_in_flight(self, breaker, clock):
        early = breaker.acquire("grep")
        trip(breaker)
        clock.advance(PAUSE_S)
        breaker.acquire("grep")
        breaker.record_success("grep", early)
        assert breaker.acquire("grep") is None

    @pytest.mark.parametrize("late", ["before the verdict", "after the verdict"])
    @pytest.mark.parametrize("verdict", ["record_success", "record_failure"])
    def test_4_a_late_failure_does_not_overrule_the_probe(self, breaker, clock, late, verdict):
        early = breaker.acquire("grep")
        trip(breaker)
        clock.advance(PAUSE_S)
        probe = breaker.acquire("grep")
        reports = [(verdict, probe), ("record_failure", early)]
        for report, permit in reversed(reports) if late == "before the verdict" else reports:
            getattr(breaker, report)("grep", permit)
        well = verdict == "record_success"
        assert breaker.retry_after_s("grep") == (0.0 if well else 2 * PAUSE_S)
        assert breaker._failures == ({} if well else {"grep": 4})

    @pytest.mark.parametrize("report", ["record_success", "record_failure", "release"])
    def test_5_a_probe_that_never_reports_is_replaced_after_its_lease(self, breaker, clock, report):
        trip(breaker)
        clock.advance(PAUSE_S)
        hung = breaker.acquire("grep")
        clock.advance(LEASE_S - 1)
        assert breaker.acquire("grep") is None
        clock.advance(1)
        assert breaker.acquire("grep") is not None
        getattr(breaker, report)("grep", hung)
        assert breaker.acquire("grep") is None
        assert breaker.retry_after_s("grep") == LEASE_S

    def test_5_a_lapsed_probe_is_heard_as_long_as_nobody_replaced_it(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        hung = breaker.acquire("grep")
        clock.advance(LEASE_S)
        breaker.record_success("grep", hung)
        assert status_of(breaker) == "closed"

    @pytest.mark.parametrize("death", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_6_a_probe_that_dies_is_no_success_and_frees_its_slot(self, breaker, clock, death):
        def dying():
            raise death

        trip(breaker)
        clock.advance(PAUSE_S)
        with pytest.raises(death):
            breaker.call("grep", dying)
        assert status_of(breaker) == "open"
        assert breaker._failures == {"grep": 3}
        assert breaker.acquire("grep") is not None

    def test_7_calls_run_at_the_same_time(self, breaker):
        """Every call waits for all the others: a lock held across one would block the rest."""
        gate = Gate()

        def conductor():
            gate.wait_for(8)
            assert breaker._lock.acquire(blocking=False)
            breaker._lock.release()
            gate.open()

        calls = [lambda: breaker.call("grep", gate.pass_through)] * 8
        run_together([*calls, conductor])

    def test_8_it_recovers(self, breaker, clock):
        for _ in range(3):
            with pytest.raises(OSError, match="out of order"):
                breaker.call("grep", failing)
        with pytest.raises(CircuitOpen):
            breaker.call("grep", failing)
        clock.advance(PAUSE_S)
        assert breaker.call("grep", lambda: "well") == "well"
        assert breaker.call("grep", lambda: "well") == "well"
        assert breaker.snapshot() == ()


class TestCall:
    def test_arguments_and_result_pass_through(self, breaker):
        """`name` and `function` stay free for the function's own keywords."""
        result = breaker.call("grep", lambda *args, **kwargs: (args, kwargs), 1, name="x")
        assert result == ((1,), {"name": "x"})

    def test_an_exception_counts_and_comes_through(self, breaker):
        with pytest.raises(OSError, match="out of order"):
            breaker.call("grep", failing)
        assert breaker._failures == {"grep": 1}

    def test_a_success_clears_the_count(self, breaker):
        trip(breaker, failures=2)
        breaker.call("grep", int)
        assert breaker.snapshot() == ()

    def test_a_success_clears_failures_that_came_during_the_call(self, breaker):
        breaker.call("grep", breaker.record_failure, "grep")
        assert breaker.snapshot() == ()

    def test_a_refusal_says_which_why_and_until_when(self, breaker, clock):
        trip(breaker)
        clock.advance(0.5)
        with pytest.raises(
            CircuitOpen, match=r"`grep` is paused after 3 failures in a row"
        ) as info:
            breaker.call("grep", failing)
        assert info.value.code == "CA3107"
        assert info.value.retry_after_s == 29.5
        assert info.value.facts == {
            "name": "grep",
            "status": "open",
            "failures": 3,
            "rounds": 1,
            "retry_after_s": 29.5,
        }
        assert info.value.hint == "Try again in 30 s, or `reset` it if the cause is gone"

    def test_a_refusal_counts_one_failure_in_the_singular(self, clock):
        breaker = CircuitBreaker(1, clock=clock)
        breaker.record_failure("grep")
        with pytest.raises(CircuitOpen, match=r"after 1 failure$"):
            breaker.call("grep", failing)


class TestWhatLeaves:
    def test_snapshot_shows_every_name_with_failures_in_order(self, breaker, clock):
        trip(breaker, "tree")
        clock.advance(PAUSE_S)
        breaker.acquire("tree")
        trip(breaker, "grep")
        breaker.record_failure("glob")
        breaker.acquire("clean")
        assert breaker.snapshot() == (
            CircuitState("glob", "closed", 1, 0, 0.0, probing=False),
            CircuitState("grep", "open", 3, 1, PAUSE_S, probing=False),
            CircuitState("tree", "half_open", 3, 1, LEASE_S, probing=True),
        )

    def test_snapshot_shows_a_lapsed_probe_as_not_probing(self, breaker, clock):
        trip(breaker)
        clock.advance(PAUSE_S)
        breaker.acquire("grep")
        clock.advance(LEASE_S)
        assert breaker.snapshot() == (CircuitState("grep", "half_open", 3, 1, 0.0, probing=False),)

    def test_changes_are_told_as_a_chain(self, breaker, clock, changes):
        start = clock()
        trip(breaker)
        clock.advance(PAUSE_S)
        breaker.record_failure("grep", breaker.acquire("grep"))
        clock.advance(2 * PAUSE_S)
        breaker.release("grep", breaker.acquire("grep"))
        breaker.acquire("grep")
        clock.advance(LEASE_S)
        breaker.record_success("grep", breaker.acquire("grep"))
        second = start + PAUSE_S
        third = second + 2 * PAUSE_S
        assert changes == [
            StateChange("grep", "closed", "open", 3, PAUSE_S, start),
            StateChange("grep", "open", "half_open", 3, LEASE_S, second),
            StateChange("grep", "half_open", "open", 4, 2 * PAUSE_S, second),
            StateChange("grep", "open", "half_open", 4, LEASE_S, third),
            StateChange("grep", "half_open", "open", 4, 0.0, third),
            StateChange("grep", "open", "half_open", 4, LEASE_S, third),
            StateChange("grep", "half_open", "closed", 0, 0.0, third + LEASE_S),
        ]

    def test_resets_tell_only_of_names_that_were_not_closed(self, breaker, clock, changes):
        trip(breaker, "tree")
        trip(breaker, "grep")
        breaker.record_failure("glob")
        changes.clear()
        breaker.reset("glob")
        breaker.reset_all()
        assert changes == [
            StateChange("grep", "open", "closed", 0, 0.0, clock()),
            StateChange("tree", "open", "closed", 0, 0.0, clock()),
        ]

    def test_a_listener_may_use_the_breaker_and_may_raise(self, clock, caplog):
        seen = []

        def listener(change):
            seen.append(breaker.snapshot())
            raise RuntimeError(change.name)

        breaker = CircuitBreaker(1, clock=clock, on_change=listener)
        breaker.record_failure("grep")
        assert seen == [(CircuitState("grep", "open", 1, 1, 30.0, probing=False),)]
        assert "A listener raised" in caplog.text


class TestConstruction:
    def test_the_defaults_are_three_failures_and_thirty_seconds(self, monkeypatch):
        breaker = CircuitBreaker()
        monkeypatch.setattr(time, "monotonic", lambda: 100.0)
        trip(breaker)
        assert breaker.retry_after_s("grep") == 30.0

    @pytest.mark.parametrize("threshold", [0, -1, 2.0, True, None])
    def test_the_threshold_must_be_a_whole_number_from_1(self, threshold):
        with pytest.raises(RequestError, match=r"must be a whole number from 1, got") as info:
            CircuitBreaker(threshold)
        assert info.value.code == "CA1005"
        assert info.value.hint

    @pytest.mark.parametrize("option", ["pause_s", "probe_lease_s"])
    @pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "30"])
    def test_times_must_be_above_zero(self, option, value):
        with pytest.raises(RequestError, match=rf"`{option}` must be finite and above 0 s, got"):
            CircuitBreaker(**{option: value})

    @pytest.mark.parametrize("value", [29.0, float("nan"), float("inf")])
    def test_the_longest_pause_must_not_be_below_the_first(self, value):
        with pytest.raises(RequestError, match=r"must be finite and at least `pause_s`, 30.0 s"):
            CircuitBreaker(pause_s_max=value)

    def test_the_lock_is_a_plain_lock(self, breaker):
        """Re-entry would hide that a lock was held while somebody else ran."""
        assert type(breaker._lock) is type(threading.Lock())
