from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from cleveragents.application.services.worker_pool import Submission, WorkerPool
from cleveragents.domain.errors import RequestError
from cleveragents.testing import Gate


class PaperPool:
    """A pool without threads: work is queued, and the test says what runs."""

    def __init__(self) -> None:
        self.queue: list[Future[None]] = []
        self.is_shut = False

    def submit(self, _work):
        if self.is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.queue.append(Future())
        return self.queue[-1]

    def shutdown(self, *, wait, cancel_futures):
        assert not wait
        assert cancel_futures
        self.is_shut = True
        for future in self.queue:
            future.cancel()


class PaperFactory:
    def __init__(self) -> None:
        self.pools: list[PaperPool] = []
        self.during = lambda: None

    def __call__(self, _workers, _prefix):
        self.during()
        self.pools.append(PaperPool())
        return self.pools[-1]


@pytest.fixture
def factory():
    return PaperFactory()


@pytest.fixture
def pool(factory):
    return WorkerPool(1, stuck_max=2, pool_factory=factory)


def start(pool: WorkerPool) -> Submission:
    submission = pool.submit(lambda: None)
    assert submission.future.set_running_or_notify_cancel()
    return submission


def test_giving_up_running_work_replaces_the_threads_and_evicts_the_queue(pool, factory):
    hung, queued = start(pool), pool.submit(lambda: None)

    assert pool.give_up(hung)

    assert [made.is_shut for made in factory.pools] == [True, False]
    assert queued.future.cancelled()
    assert not hung.future.cancelled()
    assert pool.submit(lambda: None).future in factory.pools[1].queue


def test_work_that_ended_meanwhile_holds_nobody_up(pool, factory):
    done = start(pool)
    done.future.set_result(None)

    assert pool.give_up(done)

    assert pool.stuck == 0
    assert len(factory.pools) == 1


def test_work_that_hangs_on_old_threads_leaves_the_new_ones_alone(pool, factory):
    first, second = start(pool), start(pool)

    pool.give_up(first)
    pool.give_up(second)

    assert pool.stuck == 2
    assert len(factory.pools) == 2


def test_stuck_work_that_ends_after_all_no_longer_counts(pool):
    hung = start(pool)
    pool.give_up(hung)

    hung.future.set_result(None)

    assert pool.stuck == 0


def test_beyond_the_limit_the_threads_stay_until_somebody_comes_back(pool, factory):
    hung = []
    for _ in range(3):
        hung.append(start(pool))
        replaced = pool.give_up(hung[-1])
    assert (replaced, len(factory.pools)) == (False, 3)

    hung[0].future.set_result(None)
    pool.renew()

    assert len(factory.pools) == 4


def test_a_submission_that_meets_retired_threads_goes_to_the_new_ones(pool, factory):
    hung = start(pool)
    old = factory.pools[0]
    submit = old.submit

    def retire_then_submit(work):
        pool.give_up(hung)
        return submit(work)

    old.submit = retire_then_submit

    assert pool.submit(lambda: None).future in factory.pools[1].queue


def test_threads_made_while_another_caller_replaced_them_are_discarded(pool, factory):
    hung = start(pool)

    def meanwhile():
        factory.during = lambda: None
        pool.renew()

    factory.during = meanwhile
    pool.give_up(hung)

    assert [made.is_shut for made in factory.pools] == [True, False, True]


def test_threads_made_while_the_pool_was_closed_are_discarded(pool, factory):
    hung = start(pool)
    factory.during = lambda: pool.close(1)

    pool.give_up(hung)

    assert [made.is_shut for made in factory.pools] == [True, True]


def test_a_closed_pool_refuses_work_and_cancels_its_queue(pool):
    queued = pool.submit(lambda: None)

    assert pool.close(1) == ()

    assert queued.future.cancelled()
    with pytest.raises(RequestError, match="takes no more work"):
        pool.submit(lambda: None)


def test_a_pool_without_a_thread_to_give_raises_what_it_met(pool, factory):
    factory.pools[0].is_shut = True

    with pytest.raises(RuntimeError, match="cannot schedule"):
        pool.submit(lambda: None)


def test_work_beside_the_pool_is_stuck_until_it_ends_and_replaces_nobody(pool, factory):
    gate = Gate()

    pool.aside(gate.pass_through)
    gate.wait_for(1)

    assert (pool.stuck, pool.renew(), len(factory.pools)) == (1, True, 1)
    gate.open()
    assert (pool.close(5), pool.stuck) == ((), 0)


def test_work_beside_the_pool_without_a_thread_is_logged_and_not_counted(pool, monkeypatch, caplog):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    pool.aside(lambda: None)

    assert pool.stuck == 0
    assert "No thread could be started" in caplog.text
