from __future__ import annotations

import contextvars
import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.application.services.strategy_executor import (
    ExecutionLimits,
    ParallelStrategyExecutor,
)
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import Fragment
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.domain.strategy import StrategyStatus
from cleveragents.testing import FrozenClock, Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REQUEST = ContextRequest("Do it", Path())
#: As short as a real wait can be; only where a wait itself is the subject.
A_MOMENT_S = 0.02


@dataclass
class Scripted:
    """A strategy that does what the test says."""

    name: str
    script: Callable[[ContextRequest, StopSignal], object]
    timeout_s: float | None = None

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterable[Fragment]:
        return self.script(request, stop)


def fragment(source: str = "a", line: int = 1) -> Fragment:
    return Fragment("src/app.py", line, line, "text", 1.0, source, "because")


def finds(name: str, *fragments: Fragment) -> Scripted:
    return Scripted(name, lambda *_: fragments or [fragment(name)])


def hangs(name: str, gate: Gate, **options) -> Scripted:
    """Ignores its stop signal, as a bad strategy does; the test opens the gate at the end."""
    return Scripted(name, lambda *_: gate.pass_through() or [], **options)


def raises(name: str, error: BaseException) -> Scripted:
    def script(*_):
        raise error

    return Scripted(name, script)


@dataclass
class RecordingBreaker(CircuitBreaker):
    """A real breaker that remembers how each permit came back."""

    verdicts: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(failure_threshold=1)

    def record_success(self, name, permit=None):
        self.verdicts.append(("success", name))
        super().record_success(name, permit)

    def record_failure(self, name, permit=None):
        self.verdicts.append(("failure", name))
        super().record_failure(name, permit)

    def release(self, name, permit):
        self.verdicts.append(("release", name))
        super().release(name, permit)


@pytest.fixture
def breaker():
    return RecordingBreaker()


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def make(breaker, clock, gate):
    """Make executors that are closed after the test, when every gate is open."""
    made = []

    def build(max_workers=4, **options):
        options = {"breaker": breaker, "clock": clock, **options}
        made.append(ParallelStrategyExecutor(max_workers, **options))
        return made[-1]

    yield build
    gate.open()
    assert [executor.close() for executor in made] == [()] * len(made)


def statuses(reports):
    return {report.name: report.status for report in reports}


class TestAnswers:
    def test_reports_come_in_declared_order_whatever_finishes_first(self, make, gate):
        def last(*_):
            gate.pass_through()
            return [fragment("slow")]

        def first(*_):
            gate.wait_for(1)
            gate.open()
            return [fragment("quick")]

        slow, quick = make().run([Scripted("slow", last), Scripted("quick", first)], REQUEST)

        assert (slow.name, slow.fragments) == ("slow", (fragment("slow"),))
        assert (quick.name, quick.fragments) == ("quick", (fragment("quick"),))
        assert slow.status is quick.status is StrategyStatus.OK

    def test_a_good_answer_is_told_to_the_breaker_and_to_people(self, make, breaker):
        one, two = make().run([finds("one"), finds("two", fragment(), fragment(line=2))], REQUEST)

        assert one.reason == "`one` found 1 fragment"
        assert two.reason == "`two` found 2 fragments"
        assert sorted(breaker.verdicts) == [("success", "one"), ("success", "two")]

    def test_a_generator_is_consumed_in_the_worker(self, make):
        threads = []

        def generate(*_):
            threads.append(threading.current_thread().name)
            yield fragment()

        (report,) = make().run([Scripted("lazy", generate)], REQUEST)

        assert report.fragments == (fragment(),)
        assert threads[0].startswith("ca-strategy-")

    def test_context_variables_of_the_caller_reach_the_strategy(self, make):
        plan = contextvars.ContextVar("plan", default="none")
        plan.set("p-1")
        seen = []

        make().run([Scripted("reads", lambda *_: seen.append(plan.get()) or [])], REQUEST)

        assert seen == ["p-1"]

    def test_elapsed_time_runs_from_start_to_end(self, make, clock):
        def work(*_):
            clock.advance(3)
            return []

        (report,) = make().run([Scripted("steady", work)], REQUEST)

        assert report.elapsed_s == 3.0

    def test_no_strategies_give_no_reports(self, make):
        assert make().run([], REQUEST) == ()

    def test_works_without_any_set_up(self):
        with ParallelStrategyExecutor() as executor:
            (report,) = executor.run([finds("one")], REQUEST)
            assert executor.breaker.snapshot() == ()
        assert report.status is StrategyStatus.OK


class BrokenTextError(Exception):
    def __str__(self) -> str:
        raise SystemExit


KEY_REFUSED = "OSError: api_key=[redacted] refused"


class TestBadStrategies:
    @pytest.mark.parametrize(
        ("error", "described"),
        [
            (KeyError("x"), "KeyError: 'x'"),
            (ValueError("two\n lines"), "ValueError: two lines"),
            (SystemExit(3), "SystemExit: 3"),
            (Stopped("by itself"), "Stopped: by itself"),
            (RuntimeError(), "RuntimeError"),
            (BrokenTextError(), "BrokenTextError"),
            (OSError("api_key=sk-proj-0123456789abcdef0123 refused"), KEY_REFUSED),
            (OSError("x" * 10_000), f"OSError: {'x' * 190}…"),
            (type("E" * 10_000, (Exception,), {})(), f"{'E' * 199}…"),
        ],
        ids=[
            *("exception", "lines", "exit", "stopped", "wordless", "broken-text"),
            *("secret", "long", "long-kind"),
        ],
    )
    def test_what_it_raises_costs_only_its_own_fragments(self, make, breaker, error, described):
        bad, good = make().run([raises("bad", error), finds("good")], REQUEST)

        assert (bad.status, bad.fragments) == (StrategyStatus.FAILED, ())
        assert bad.reason == f"`bad` raised {described}"
        assert good.status is StrategyStatus.OK
        assert ("failure", "bad") in breaker.verdicts

    def test_an_error_half_way_costs_all_of_its_fragments(self, make):
        def half(*_):
            yield fragment()
            raise OSError("gone")

        (report,) = make().run([Scripted("half", half)], REQUEST)

        assert (report.status, report.fragments) == (StrategyStatus.FAILED, ())

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            (None, "gave NoneType, which is no collection of fragments"),
            (["text"], "gave str where a fragment was due"),
            ([type("T" * 10_000, (), {})()], f"gave {'T' * 199}… where a fragment was due"),
            (itertools.repeat(fragment()), "gave more than 5 fragments"),
            ([Fragment("a", 1, 1, "x" * 101, 0, "a", "r")], "gave more than 100 characters"),
        ],
        ids=["nothing", "strangers", "long-strangers", "endless", "huge"],
    )
    def test_rubbish_is_named_and_counted(self, make, breaker, found, said):
        limits = ExecutionLimits(fragments_max=5, characters_max=100)

        (report,) = make(limits=limits).run([Scripted("odd", lambda *_: found)], REQUEST)

        assert (report.status, report.fragments) == (StrategyStatus.RUBBISH, ())
        assert report.reason == f"`odd` {said}"
        assert breaker.verdicts == [("failure", "odd")]

    def test_the_largest_allowed_answer_is_no_rubbish(self, make):
        limits = ExecutionLimits(fragments_max=2, characters_max=8)
        executor = make(limits=limits)

        (report,) = executor.run([finds("full", fragment(), fragment(line=2))], REQUEST)

        assert report.status is StrategyStatus.OK

    def test_a_paused_strategy_is_skipped_and_said_to_be(self, make):
        calls = []

        def fail(*_):
            calls.append(1)
            raise OSError

        executor = make()
        executor.run([Scripted("sick", fail)], REQUEST)
        (report,) = executor.run([Scripted("sick", fail)], REQUEST)

        assert (report.status, len(calls)) == (StrategyStatus.SKIPPED, 1)
        assert report.retry_after_s == pytest.approx(30.0, abs=1.0)
        assert report.reason.startswith("`sick` is paused after failures, for ")


class TestTime:
    def test_a_hung_strategy_is_left_behind_after_its_timeout(self, make, breaker, clock, gate):
        def wake(*_):
            gate.wait_for(1)
            clock.advance(11)
            return []

        executor = make()
        hung, other = executor.run(
            [hangs("hung", gate), Scripted("other", wake, timeout_s=60)], REQUEST
        )

        assert (hung.status, hung.elapsed_s) == (StrategyStatus.TIMED_OUT, 11.0)
        assert hung.reason == "`hung` ran longer than its 10 s"
        assert other.status is StrategyStatus.OK
        assert ("failure", "hung") in breaker.verdicts
        assert executor.stuck_workers == 1

    def test_an_answer_after_the_timeout_is_too_late_even_if_it_came(self, make, breaker, clock):
        (report,) = make().run(
            [Scripted("slow", lambda *_: clock.advance(2) or [fragment()])], REQUEST, timeout_s=1
        )

        assert (report.status, report.fragments) == (StrategyStatus.TIMED_OUT, ())
        assert breaker.verdicts == [("failure", "slow")]

    def test_the_timeout_wakes_the_caller_without_any_message(self, breaker, gate):
        with ParallelStrategyExecutor(breaker=breaker) as executor:
            (report,) = executor.run([hangs("hung", gate)], REQUEST, timeout_s=A_MOMENT_S)
            gate.open()

        assert report.status is StrategyStatus.TIMED_OUT

    def test_waiting_for_a_worker_does_not_count_as_running(self, make, clock):
        """Two strategies of 6 s each, one worker, a timeout of 10 s: both are in time."""
        work = [Scripted(name, lambda *_: clock.advance(6) or [fragment()]) for name in ("a", "b")]

        reports = make(max_workers=1).run(work, REQUEST, timeout_s=10)

        assert [report.status for report in reports] == [StrategyStatus.OK] * 2

    def test_a_strategy_may_declare_its_own_timeout(self, make, clock):
        patient = Scripted("patient", lambda *_: clock.advance(20) or [], timeout_s=25)

        (report,) = make().run([patient], REQUEST, timeout_s=1)

        assert report.status is StrategyStatus.OK

    def test_the_deadline_ends_the_wait_and_blames_nobody(self, make, breaker):
        class OneStarts:
            """A pool in which the first submission runs for ever and the second never starts."""

            def __init__(self, *_):
                self.futures = []

            def submit(self, _):
                self.futures.append(Future())
                if len(self.futures) == 1:
                    self.futures[0].set_running_or_notify_cancel()
                return self.futures[-1]

            def shutdown(self, **_):
                pass

        minutes = itertools.count(step=60.0)
        executor = make(pool_factory=OneStarts, clock=lambda: next(minutes))

        running, waiting = executor.run([finds("running"), finds("waiting")], REQUEST)

        assert running.status is StrategyStatus.OUT_OF_TIME
        assert running.reason == "The request's 30 s were over before `running` was"
        assert waiting.status is StrategyStatus.NOT_STARTED
        assert waiting.reason == "No worker was free for `waiting` within 30 s"
        assert sorted(breaker.verdicts) == [("release", "running"), ("release", "waiting")]

    def test_the_stop_signal_of_a_hung_strategy_is_set(self, make, clock, gate):
        ended = threading.Event()

        def polite(_, stop):
            gate.pass_through()
            try:
                while True:
                    stop.raise_if_stopped()
            finally:
                ended.set()

        def wake(*_):
            gate.wait_for(1)
            clock.advance(11)
            gate.open()
            return []

        executor = make()
        executor.run([Scripted("polite", polite), Scripted("wake", wake, timeout_s=60)], REQUEST)

        assert ended.wait(5)
        executor.close()
        assert executor.stuck_workers == 0

    def test_an_endless_generator_ends_at_its_stop_signal(self, breaker):
        limits = ExecutionLimits(fragments_max=10**9, timeout_s=A_MOMENT_S)
        with ParallelStrategyExecutor(breaker=breaker, limits=limits) as executor:
            endless = Scripted("endless", lambda *_: itertools.repeat(fragment()))
            (report,) = executor.run([endless], REQUEST)

        assert report.status is StrategyStatus.TIMED_OUT


class TestStuckWorkers:
    def test_what_a_strategy_says_after_the_verdict_changes_nothing(self, make, clock, gate):
        """The hung one comes back with fragments while its request still waits for another."""
        given_up, threads = threading.Event(), []

        def late(_, stop):
            threads.append(threading.current_thread())
            stop.when_stopped(lambda _: given_up.set())
            gate.pass_through()
            return [fragment("late")]

        def poke(*_):
            gate.wait_for(1)
            clock.advance(11)
            return []

        def last(*_):
            assert given_up.wait(5)
            gate.open()
            threads[0].join(5)  # a replaced thread ends with its work
            return []

        found = make().run(
            [
                Scripted("late", late),
                Scripted("poke", poke, timeout_s=60),
                Scripted("last", last, timeout_s=60),
            ],
            REQUEST,
        )

        assert (found[0].status, found[0].fragments) == (StrategyStatus.TIMED_OUT, ())

    def test_hung_work_does_not_starve_the_next_request(self, breaker, gate):
        with ParallelStrategyExecutor(1, breaker=breaker) as executor:
            executor.run([hangs("hung", gate)], REQUEST, timeout_s=A_MOMENT_S)
            (report,) = executor.run([finds("next")], REQUEST)
            stuck = executor.stuck_workers
            gate.open()

        assert (report.status, stuck) == (StrategyStatus.OK, 1)

    def test_work_queued_behind_a_hung_strategy_moves_to_the_new_workers(self, breaker, gate):
        with ParallelStrategyExecutor(1, breaker=breaker) as executor:
            hung, queued = executor.run(
                [hangs("hung", gate, timeout_s=A_MOMENT_S), finds("queued")], REQUEST
            )
            gate.open()

        assert hung.status is StrategyStatus.TIMED_OUT
        assert queued.status is StrategyStatus.OK

    def test_beyond_the_limit_workers_are_not_replaced_and_the_report_says_so(self, breaker, gate):
        limits = ExecutionLimits(stuck_workers_max=1)
        with ParallelStrategyExecutor(1, breaker=breaker, limits=limits) as executor:
            (first,) = executor.run([hangs("h1", gate)], REQUEST, timeout_s=A_MOMENT_S)
            (second,) = executor.run([hangs("h2", gate)], REQUEST, timeout_s=A_MOMENT_S)
            (third,) = executor.run([finds("next")], REQUEST, deadline_s=A_MOMENT_S)
            gate.open()

        assert first.reason == "`h1` ran longer than its 0.02 s"
        assert second.reason == (
            "`h2` ran longer than its 0.02 s; 2 workers are stuck, so its own is not replaced"
        )
        assert third.status is StrategyStatus.NOT_STARTED

    def test_a_worker_that_comes_back_makes_room_for_replacing_the_others(self, breaker):
        limits = ExecutionLimits(stuck_workers_max=1)
        gates = [Gate(), Gate()]
        with ParallelStrategyExecutor(1, breaker=breaker, limits=limits) as executor:
            for index, gate in enumerate(gates):
                executor.run([hangs(f"h{index}", gate)], REQUEST, timeout_s=A_MOMENT_S)
            gates[0].open()
            for thread in threading.enumerate():
                if thread.name.endswith("-0_0"):  # the only worker of the first threads
                    thread.join(5)
            (report,) = executor.run([finds("next")], REQUEST)
            gates[1].open()

        assert report.status is StrategyStatus.OK


class TestCancelling:
    def test_the_caller_can_stop_a_request_from_another_thread(self, make, breaker, gate):
        stop = StopSignal()

        def cancel(*_):
            gate.wait_for(1)
            stop.stop("the user pressed Ctrl-C")
            return gate.pass_through() or []

        reports = make(max_workers=2).run(
            [hangs("a", gate), Scripted("b", cancel), finds("waits")], REQUEST, stop=stop
        )

        assert [report.status for report in reports] == [StrategyStatus.CANCELLED] * 3
        assert reports[0].reason == "Cancelled: the user pressed Ctrl-C"
        assert {verdict for verdict, _ in breaker.verdicts} == {"release"}

    def test_a_request_that_is_stopped_already_starts_nothing(self, make, breaker):
        stop = StopSignal()
        stop.stop()

        (report,) = make().run([finds("a")], REQUEST, stop=stop)

        assert report.status is StrategyStatus.CANCELLED
        assert breaker.verdicts == []

    def test_the_request_leaves_no_listener_on_the_callers_signal(self, make):
        stop = StopSignal()

        make().run([finds("a")], REQUEST, stop=stop)

        assert stop._listeners == {}

    def test_an_interrupt_of_the_caller_gives_every_permit_back(self, make, breaker, gate):
        class Interrupting(Future):
            def add_done_callback(self, _):
                raise KeyboardInterrupt

        class Pool(ThreadPoolExecutor):
            def submit(self, _, /):
                super().submit(gate.pass_through)
                return Interrupting()

        executor = make(pool_factory=Pool)
        with pytest.raises(KeyboardInterrupt):
            executor.run([finds("a")], REQUEST)

        assert breaker.verdicts == [("release", "a")]
        assert executor._runs == {}

    def test_a_reason_to_stop_is_kept_without_its_secrets(self, make):
        stop = StopSignal()
        stop.stop("the key sk-proj-0123456789abcdef0123 was revoked")

        (report,) = make().run([finds("a")], REQUEST, stop=stop)

        assert report.reason == "Cancelled: the key [redacted] was revoked"


def listens(name: str, gate: Gate, listener: Callable[[str], object]) -> Scripted:
    """Registers what is to be called when it is stopped, then ignores the stop."""

    def script(_, stop):
        stop.when_stopped(listener)
        return gate.pass_through() or []

    return Scripted(name, script)


class TestListenersOfStrategies:
    def test_a_listener_that_hangs_holds_up_nobody(self, breaker, gate):
        with ParallelStrategyExecutor(breaker=breaker) as executor:
            hung = listens("hung", gate, lambda _: gate.pass_through())
            (report,) = executor.run([hung], REQUEST, timeout_s=A_MOMENT_S)
            gate.wait_for(2)
            stuck = executor.stuck_workers
            gate.open()

        assert report.status is StrategyStatus.TIMED_OUT
        assert (stuck, executor.stuck_workers) == (2, 0)

    def test_a_listener_that_ends_its_thread_ends_only_that(self, breaker, gate):
        def leave(_):
            raise SystemExit

        with ParallelStrategyExecutor(breaker=breaker) as executor:
            (report,) = executor.run([listens("a", gate, leave)], REQUEST, timeout_s=A_MOMENT_S)
            gate.open()

        assert report.status is StrategyStatus.TIMED_OUT

    def test_close_tells_listeners_and_names_those_that_hang(self, make, gate):
        """The run that close cancels has returned before close looks for threads."""
        executor, told = make(), Gate()
        reports = []
        hung = listens("hung", gate, lambda _: told.pass_through())
        caller = threading.Thread(
            target=lambda: reports.extend(executor.run([hung], REQUEST)), name="caller"
        )
        caller.start()
        gate.wait_for(1)

        left = executor.close(timeout_s=A_MOMENT_S * 10)

        assert statuses(reports) == {"hung": StrategyStatus.CANCELLED}
        assert len(left) == 2
        told.open()
        gate.open()
        caller.join(5)
        assert executor.close() == ()

    def test_listeners_hear_in_the_context_of_the_request(self, make, clock, gate):
        plan = contextvars.ContextVar("plan", default="none")
        plan.set("p-1")
        heard = []
        told = threading.Event()

        def hear(_):
            heard.append(plan.get())
            told.set()

        def wake(*_):
            gate.wait_for(1)
            clock.advance(11)
            return []

        make().run([listens("a", gate, hear), Scripted("wake", wake, timeout_s=60)], REQUEST)

        assert told.wait(5)
        assert heard == ["p-1"]


class TestClosing:
    def test_a_closed_executor_refuses_and_says_the_way_out(self, make):
        executor = make()
        assert executor.close() == executor.close() == ()

        with pytest.raises(RequestError, match="closed and takes no more work") as caught:
            executor.run([finds("a")], REQUEST)

        assert caught.value.code == "CA6101"

    def test_close_cancels_what_runs_and_names_the_threads_it_cannot_end(self, make, gate):
        executor = make(max_workers=1)
        reports = []
        caller = threading.Thread(
            target=lambda: reports.extend(
                executor.run([hangs("hung", gate), finds("queued")], REQUEST)
            )
        )
        caller.start()
        gate.wait_for(1)

        (left,) = executor.close(timeout_s=A_MOMENT_S)
        caller.join(5)

        assert left.startswith("ca-strategy-")
        assert statuses(reports) == {
            "hung": StrategyStatus.CANCELLED,
            "queued": StrategyStatus.CANCELLED,
        }
        gate.open()
        assert executor.close() == ()

    def test_a_strategy_that_closes_its_executor_does_not_wait_for_itself(self, make):
        executor = make()
        left = []

        (report,) = executor.run(
            [Scripted("closer", lambda *_: left.extend(executor.close()) or [])], REQUEST
        )

        assert report.status is StrategyStatus.CANCELLED
        executor.close()
        assert len(left) == 1

    def test_work_that_finds_the_threads_closed_is_cancelled_like_the_rest(self, make, breaker):
        executor = make()
        executor._pool.close(1)

        (report,) = executor.run([finds("a")], REQUEST)

        assert report.status is StrategyStatus.CANCELLED
        assert report.reason == "Cancelled: the executor was closed"
        assert breaker.verdicts == [("release", "a")]

    def test_work_without_a_thread_is_reported_and_never_runs_late(self, make, breaker):
        kept, calls = [], []

        class Exhausted(ThreadPoolExecutor):
            def submit(self, work, /):
                kept.append(work)
                raise RuntimeError("can't start new thread")

        executor = make(pool_factory=Exhausted)
        (report,) = executor.run([Scripted("a", lambda *_: calls.append(1) or [])], REQUEST)
        kept[0]()

        assert report.reason == "No worker took `a` because of RuntimeError: can't start new thread"
        assert (breaker.verdicts, calls) == ([("release", "a")], [])


class TestRules:
    @pytest.mark.parametrize("workers", [0, -1, 257, 2.0, True], ids=str)
    def test_a_number_of_workers_that_is_nonsense_is_refused(self, workers):
        with pytest.raises(RequestError, match="`max_workers` must be 1 to 256"):
            ParallelStrategyExecutor(workers)

    @pytest.mark.parametrize(
        "seconds", [0, -1.0, float("nan"), float("inf"), 1e9, True, "1"], ids=str
    )
    def test_a_time_that_nobody_can_wait_is_refused(self, make, seconds):
        executor = make()
        with pytest.raises(RequestError, match="`timeout_s` must be above 0 s"):
            executor.run([], REQUEST, timeout_s=seconds)
        with pytest.raises(RequestError, match="`deadline_s` must be above 0 s"):
            executor.run([], REQUEST, deadline_s=seconds)
        with pytest.raises(RequestError, match="`timeout_s` must be above 0 s"):
            executor.run([Scripted("a", list, timeout_s=seconds)], REQUEST)
        with pytest.raises(RequestError, match="`timeout_s` must be above 0 s"):
            ExecutionLimits(timeout_s=seconds)

    @pytest.mark.parametrize("number", [-1, 1.0, True], ids=str)
    def test_a_limit_that_is_no_count_is_refused(self, number):
        with pytest.raises(RequestError, match="`fragments_max` must be a whole number"):
            ExecutionLimits(fragments_max=number)

    def test_two_strategies_of_one_name_are_refused(self, make):
        with pytest.raises(RequestError, match="Two strategies are named `twin`"):
            make().run([finds("twin"), finds("twin")], REQUEST)

    @pytest.mark.parametrize("name", ["", "  ", None], ids=str)
    def test_a_strategy_without_a_name_is_refused(self, make, name):
        with pytest.raises(RequestError, match="`name` must be text"):
            make().run([finds(name)], REQUEST)
