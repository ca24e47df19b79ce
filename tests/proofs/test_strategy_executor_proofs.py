"""Every pair of calls that touch the state of a stop signal, a worker pool or an executor.

frontrun does not control threads that the code starts, so the pools here have none:
`InlinePool` runs work inside `submit`, `PaperPool` leaves it to another worker of the proof.
"""

from __future__ import annotations

import threading
from pathlib import Path

from cleveragents.application.services.strategy_executor import ParallelStrategyExecutor
from cleveragents.application.services.worker_pool import WorkerPool
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import RequestError
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.domain.strategy import StrategyStatus
from proofs.racekit import prove, refute, without_lock


class PaperFuture:
    """A future of a few atomic steps: every lock of a real one multiplies the orders to prove."""

    def __init__(self):
        self._lock = threading.Lock()  # guards: _state, _callbacks
        self._state = "queued"
        self._callbacks = ()

    def _to(self, state, allowed):
        with self._lock:
            if self._state != allowed:
                return False
            self._state = state
            callbacks = () if state == "running" else self._callbacks
        for callback in callbacks:
            callback(self)
        return True

    def run(self):
        return self._to("running", "queued")

    def end(self):
        return self._to("done", "running")

    def cancel(self):
        return self._to("cancelled", "queued")

    def cancelled(self):
        with self._lock:
            return self._state == "cancelled"

    def add_done_callback(self, callback):
        with self._lock:
            is_over = self._state in {"done", "cancelled"}
            if not is_over:
                self._callbacks = (*self._callbacks, callback)
        if is_over:
            callback(self)


class PaperPool:
    """A pool without threads: `submit` queues, and shutting it down cancels what did not begin."""

    def __init__(self, *_):
        self._lock = threading.Lock()  # guards: is_shut, futures
        self.is_shut = False
        self.futures = ()

    def submit(self, _work):
        future = PaperFuture()
        with self._lock:
            if self.is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self.futures = (*self.futures, future)
        return future

    def shutdown(self, **_):
        with self._lock:
            self.is_shut = True
            futures = self.futures
        for future in futures:
            future.cancel()


class InlinePool:
    """A pool whose only worker is the caller; its one flag needs no lock."""

    def __init__(self, *_):
        self.is_shut = False

    def submit(self, work):
        if self.is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = PaperFuture()
        future.run()
        work()
        future.end()
        return future

    def shutdown(self, **_):
        self.is_shut = True


class Finds:
    name = "finds"

    def find(self, *_):
        return ()


REQUEST = ContextRequest("Do it", Path())


# --- StopSignal -----------------------------------------------------------------------------


class Watched:
    """A signal and what its listeners were told."""

    def __init__(self):
        self.signal = StopSignal()
        self.told = ()

    def hear(self, reason):
        self.told = (*self.told, reason)


def told_once(arena):
    return arena.subject.told == (arena.subject.signal.reason,)


def test_a_listener_is_told_once_whether_it_comes_before_or_after_the_stop():
    prove(
        Watched,
        [
            lambda watched: watched.signal.stop("now"),
            lambda watched: watched.signal.when_stopped(watched.hear),
        ],
        told_once,
    )


def test_two_stops_agree_on_one_reason():
    def setup():
        watched = Watched()
        watched.signal.when_stopped(watched.hear)
        return watched

    prove(
        setup,
        [lambda it: it.signal.stop("first"), lambda it: it.signal.stop("second")],
        told_once,
    )


def test_a_listener_forgotten_during_the_stop_is_told_at_most_once():
    def setup():
        watched = Watched()
        watched.forget = watched.signal.when_stopped(watched.hear)
        return watched

    prove(
        setup,
        [lambda it: it.signal.stop("now"), lambda it: it.forget()],
        lambda arena: len(arena.subject.told) <= 1 and not arena.subject.signal._listeners,
    )


def test_a_signal_without_its_lock_is_caught():
    def setup():
        watched = Watched()
        without_lock(watched.signal, "_lock")
        return watched

    refute(
        setup,
        [
            lambda watched: watched.signal.stop("now"),
            lambda watched: watched.signal.when_stopped(watched.hear),
        ],
        told_once,
    )


# --- WorkerPool -----------------------------------------------------------------------------


class Crew:
    """A worker pool with two pieces of work that run, on paper, and every pool it made."""

    def __init__(self, stuck_max=4):
        self.made = []
        self.pool = WorkerPool(1, stuck_max=stuck_max, pool_factory=self.make)
        self.running = [self.pool.submit(lambda: None) for _ in range(2)]
        for submission in self.running:
            submission.future.run()

    def make(self, *_):
        pool = PaperPool()
        self.made.append(pool)
        return pool


def only_the_current_pool_is_open(crew):
    return all(pool.is_shut != (pool is crew.pool._pool) for pool in crew.made)


def hung_crew():
    """Both pieces of work are given up, and nobody has replaced the threads yet."""
    crew = Crew()
    for submission in crew.running:
        crew.pool._stuck[submission.future] = submission.generation
    return crew


def replaced_once(arena):
    crew = arena.subject
    return crew.pool._generation == 1 and only_the_current_pool_is_open(crew)


def test_two_callers_that_meet_hung_workers_replace_them_once():
    prove(
        hung_crew, [lambda crew: crew.pool.renew(), lambda crew: crew.pool.renew()], replaced_once
    )


def test_two_workers_given_up_at_once_are_both_counted():
    """Beyond the limit nothing is replaced, so that counting is all there is to order."""
    prove(
        lambda: Crew(stuck_max=0),
        [
            lambda crew: crew.pool.give_up(crew.running[0]),
            lambda crew: crew.pool.give_up(crew.running[1]),
        ],
        lambda arena: arena.subject.pool.stuck == 2 and arena.returned == {0: False, 1: False},
    )


def test_work_that_ends_while_it_is_given_up_is_not_counted():
    prove(
        Crew,
        [
            lambda crew: crew.pool.give_up(crew.running[0]),
            lambda crew: crew.running[0].future.end(),
        ],
        lambda arena: (
            arena.subject.pool.stuck == 0 and only_the_current_pool_is_open(arena.subject)
        ),
    )


def test_work_submitted_during_a_replacement_is_queued_or_evicted_never_lost():
    def owned(arena):
        future = arena.returned[1].future
        return future.cancelled() or future in arena.subject.pool._pool.futures

    prove(
        Crew,
        [
            lambda crew: crew.pool.give_up(crew.running[0]),
            lambda crew: crew.pool.submit(lambda: None),
        ],
        owned,
    )


def test_a_replacement_during_close_leaves_no_pool_open():
    prove(
        Crew,
        [lambda crew: crew.pool.give_up(crew.running[0]), lambda crew: crew.pool.close(1)],
        lambda arena: all(pool.is_shut for pool in arena.subject.made),
    )


def test_work_submitted_during_close_is_cancelled_or_refused():
    def settled(arena):
        refused = isinstance(arena.raised.get(0), RequestError)
        return refused or arena.returned[0].future.cancelled()

    prove(
        Crew,
        [lambda crew: crew.pool.submit(lambda: None), lambda crew: crew.pool.close(1)],
        settled,
        raises=True,
    )


def test_two_callers_may_close_at_once():
    prove(
        Crew,
        [lambda crew: crew.pool.close(1), lambda crew: crew.pool.close(1)],
        lambda arena: arena.returned == {0: (), 1: ()},
    )


def test_a_worker_that_comes_back_while_threads_are_renewed_leaves_one_pool_open():
    def setup():
        crew = Crew(stuck_max=1)
        for submission in crew.running:
            crew.pool.give_up(submission)
        return crew

    prove(
        setup,
        [
            lambda crew: crew.running[0].future.end(),
            lambda crew: crew.pool.renew(),
        ],
        lambda arena: only_the_current_pool_is_open(arena.subject),
    )


def test_a_pool_without_its_lock_is_caught():
    refute(
        lambda: (crew := hung_crew(), without_lock(crew.pool, "_lock"))[0],
        [lambda crew: crew.pool.renew(), lambda crew: crew.pool.renew()],
        replaced_once,
    )


class CountsWithoutTheLock(WorkerPool):
    """A twin in a blind spot: it asks `if not d` outside the lock whether somebody is stuck."""

    def renew(self):
        if not self._stuck:
            return
        fresh = self._new_pool(self._generation + 1)
        with self._lock:
            spent, self._pool = self._pool, fresh
            self._generation += 1
        spent.shutdown(wait=False, cancel_futures=True)


def test_a_pool_that_decides_outside_its_lock_is_caught():
    def setup():
        crew = Crew()
        crew.pool.__class__ = CountsWithoutTheLock
        return crew

    refute(
        setup,
        [
            lambda crew: crew.pool.give_up(crew.running[0]),
            lambda crew: crew.running[0].future.end(),
        ],
        lambda arena: arena.subject.pool._generation == 0 or arena.subject.pool.stuck == 1,
    )


# --- ParallelStrategyExecutor ---------------------------------------------------------------


def executor():
    return ParallelStrategyExecutor(pool_factory=InlinePool)


def answer(subject):
    return subject.run([Finds()], REQUEST)


def register(subject):
    """Touch the executor's own state only: all orders of a whole run would take minutes."""
    return subject.run([], REQUEST)


def close(subject):
    """All of `close` but its wait for runs: frontrun does not control a wait with a time limit."""
    subject._cancel_runs()
    subject._pool.close(1)


def test_a_run_beside_close_completes_or_is_refused():
    prove(
        executor,
        [register, close],
        lambda arena: (
            not arena.subject._runs
            and (arena.returned.get(0) == () or isinstance(arena.raised[0], RequestError))
        ),
        raises=True,
    )


def test_a_run_whose_threads_are_closed_meanwhile_has_an_answer():
    prove(
        executor,
        [answer, lambda subject: subject._pool.close(1)],
        lambda arena: arena.returned[0][0].status in {StrategyStatus.OK, StrategyStatus.CANCELLED},
    )


def test_two_runs_at_once_leave_nothing_behind():
    prove(
        executor,
        [register, register],
        lambda arena: not arena.subject._runs and arena.returned == {0: (), 1: ()},
    )


class ForgetsToRefuse(ParallelStrategyExecutor):
    """A twin that asks whether it is closed before it takes the lock to register."""

    def register(self, token):
        if self._closed:
            return "refused"
        with self._lock:
            self._runs[token] = None
        return "registered"

    def close(self):
        with self._lock:
            self._closed = True
            return tuple(self._runs)


def test_an_executor_that_checks_before_it_registers_is_caught():
    refute(
        lambda: ForgetsToRefuse(pool_factory=InlinePool),
        [lambda subject: subject.register("run"), lambda subject: subject.close()],
        lambda arena: arena.returned[0] == "refused" or arena.returned[1] == ("run",),
    )
