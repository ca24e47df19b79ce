"""The check that regression tests call."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("frontrun", reason="needs the packages of the hunt")

import cleveragents.hunt
from cleveragents.hunt import assert_atomic
from unit.hunt.prove import boxes


def test_calls_that_lose_an_update_fail_with_the_interleaving() -> None:
    with pytest.raises(AssertionError, match=r"(?s)n=1.*thread 0  .*thread 1"):
        assert_atomic(boxes.Racy, [lambda box: box.add(), lambda box: box.add()])


def test_calls_under_a_lock_pass() -> None:
    assert_atomic(boxes.Locked, [lambda box: box.add(), lambda box: box.add()])


def test_set_up_is_made_before_the_calls() -> None:
    with pytest.raises(AssertionError, match="n=3"):
        assert_atomic(
            boxes.Racy,
            [lambda box: box.add(), lambda box: box.add()],
            setup=[lambda box: box.add(), lambda box: box.add()],
        )


def test_calls_that_start_threads_are_not_passed_over() -> None:
    def start(_: object) -> None:
        threading.Thread(target=print).start()

    with pytest.raises(Exception, match="threads of its own"):
        assert_atomic(boxes.Locked, [start, start])


def test_nothing_else_is_exported_lazily() -> None:
    with pytest.raises(AttributeError):
        cleveragents.hunt.no_such_name  # noqa: B018  # looking it up is the test


def test_the_world_is_as_before_afterwards() -> None:
    before = threading.Lock, threading.Thread.start
    assert_atomic(boxes.Locked, [lambda box: box.add(), lambda box: box.add()])
    assert (threading.Lock, threading.Thread.start) == before
