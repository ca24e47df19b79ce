from __future__ import annotations

import threading

import pytest

from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.code_index.rounds import Rounds
from cleveragents.testing import run_together


def until(says) -> None:
    """Wait for another thread; a test that waits for ever is ended by its time limit."""
    waiting = threading.Event()
    while not says():
        waiting.wait(0.001)


def start(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_alone_a_caller_does_its_work():
    rounds = Rounds()
    assert [rounds.share(lambda n=n: n, StopSignal()) for n in range(3)] == [0, 1, 2]


def test_callers_that_wait_share_one_run_that_began_after_they_came():
    rounds, runs, hold = Rounds(), [], threading.Event()
    results = []

    def slow():
        runs.append("slow")
        hold.wait(30)
        return "before"

    def quick():
        runs.append("quick")
        return "after"

    first = start(lambda: results.append(rounds.share(slow, StopSignal())))
    until(lambda: runs)
    others = [start(lambda: results.append(rounds.share(quick, StopSignal()))) for _ in range(5)]
    until(lambda: rounds._waiting is not None)
    hold.set()
    for thread in [first, *others]:
        thread.join(30)
    assert sorted(results) == ["after"] * 5 + ["before"]
    assert runs[0] == "slow"


def test_run_that_raises_raises_for_its_caller_alone():
    rounds = Rounds()

    def breaks():
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        rounds.share(breaks, StopSignal())
    assert rounds.share(lambda: 1, StopSignal()) == 1


def test_followers_of_a_run_that_raised_run_again():
    rounds = Rounds()
    first_fails = iter([True])
    raised = []

    def work():
        if next(first_fails, False):
            raise OSError("broken")
        return 1

    def call():
        try:
            return rounds.share(work, StopSignal())
        except OSError as error:
            raised.append(error)
            return 1

    assert run_together([call] * 8) == [1] * 8
    assert len(raised) == 1


def test_waiting_caller_can_be_stopped():
    rounds, hold, running = Rounds(), threading.Event(), threading.Event()

    def slow():
        running.set()
        hold.wait(30)

    first = start(lambda: rounds.share(slow, StopSignal()))
    running.wait(30)
    stop = StopSignal()
    stop.stop("enough")
    with pytest.raises(Stopped):
        rounds.share(lambda: None, stop)
    hold.set()
    first.join(30)
    assert rounds.share(lambda: 1, StopSignal()) == 1
