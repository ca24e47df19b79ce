from __future__ import annotations

import pytest

from cleveragents.domain.stop_signal import Stopped, StopSignal


def test_a_new_signal_lets_work_go_on():
    signal = StopSignal()

    signal.raise_if_stopped()

    assert (signal.stopped, signal.reason) == (False, None)


def test_a_stopped_signal_ends_work_with_the_first_reason():
    signal = StopSignal()

    signal.stop("time is up")
    signal.stop("something else")

    assert (signal.stopped, signal.reason) == (True, "time is up")
    with pytest.raises(Stopped, match="time is up"):
        signal.raise_if_stopped()


def test_a_broad_except_in_the_work_does_not_swallow_the_stop():
    assert not issubclass(Stopped, Exception)


def test_each_listener_is_told_once():
    signal, told = StopSignal(), []
    signal.when_stopped(told.append)

    signal.stop("now")
    signal.stop("again")

    assert told == ["now"]


def test_a_listener_that_comes_late_is_told_at_once():
    signal, told = StopSignal(), []
    signal.stop("before")

    forget = signal.when_stopped(told.append)
    forget()

    assert told == ["before"]


def test_a_forgotten_listener_is_not_told():
    signal, told = StopSignal(), []
    forget = signal.when_stopped(told.append)

    forget()
    forget()
    signal.stop()

    assert told == []


def test_a_listener_that_raises_keeps_nobody_else_from_being_told(caplog):
    signal, told = StopSignal(), []
    signal.when_stopped(lambda _: 1 / 0)
    signal.when_stopped(told.append)

    signal.stop("now")

    assert told == ["now"]
    assert "A listener raised" in caplog.text


def test_listeners_may_be_told_by_somebody_else():
    """So that what a stranger registers cannot hold up the one who stops."""
    errands, told = [], []
    signal = StopSignal(aside=errands.append)
    signal.when_stopped(told.append)
    signal.when_stopped(told.append)

    signal.stop("now")

    assert (signal.reason, told) == ("now", [])
    (errand,) = errands
    errand()
    assert told == ["now", "now"]


def test_nobody_is_sent_when_nobody_listens():
    errands = []

    StopSignal(aside=errands.append).stop()

    assert errands == []
