"""Proofs: what is accepted is taken, once, and whoever waits is woken."""

from __future__ import annotations

import threading

import pytest

from cleveragents.infrastructure import write_queue
from cleveragents.infrastructure.write_queue import WriteQueue
from proofs.racekit import Arena, SleepyThreading, prove, refute


def queue(
    size_max: int = 10, *items: str, kind: type[WriteQueue[str]] = WriteQueue
) -> WriteQueue[str]:
    made = kind(size_max)
    for one in items:
        made.put(one)
    return made


def close_and_drain(subject: WriteQueue[str]) -> list[str]:
    subject.close()
    return subject.take(10)


def accepted_is_taken(arena: Arena[WriteQueue[str]]) -> bool:
    accepted, taken = arena.returned[0], arena.returned[1]
    return taken == (["a"] if accepted else [])


class Hasty(WriteQueue[str]):
    """Looks whether it is closed before it has the lock."""

    def put(self, item: str) -> bool:
        if self._closed:
            return False
        with self._lock:
            self._waiting.append(item)
            self._arrived.notify()
        return True


class Deaf(WriteQueue[str]):
    """Reads what the taker waits for before it has the lock."""

    def put(self, item: str) -> bool:
        enough = self._enough
        with self._lock:
            self._waiting.append(item)
            if len(self._waiting) >= enough:
                self._arrived.notify()
        return True


def test_two_puts_are_both_taken_in_the_order_in_which_they_came():
    prove(
        queue,
        [lambda one: one.put("a"), lambda one: one.put("b")],
        lambda arena: sorted(arena.subject.take(10)) == ["a", "b"],
    )


def test_what_is_accepted_beside_closing_is_taken_and_what_is_refused_is_not():
    prove(queue, [lambda one: one.put("a"), close_and_drain], accepted_is_taken)


def test_a_queue_that_looks_before_it_has_the_lock_loses_what_it_accepted():
    refute(lambda: Hasty(10), [lambda one: one.put("a"), close_and_drain], accepted_is_taken)


class Sleepy:
    """A queue, of which one worker sleeps until the other has ended."""

    def __init__(self, made: WriteQueue[str], ended: threading.Semaphore) -> None:
        self.queue = made
        self.ended = ended
        # The taker waited for two the last time.
        made._enough = 2

    def put(self, item: str) -> bool:
        answer = self.queue.put(item)
        self.ended.release()
        return answer

    def take(self) -> list[str]:
        answer = self.queue.take(1)
        self.ended.release()
        return answer

    def wait(self, count: int) -> list[str]:
        self.queue.wait(count, None)
        return self.queue.take(10)

    def close(self) -> None:
        self.queue.close()
        self.ended.release()


@pytest.fixture
def sleepy(monkeypatch):
    def make(size_max: int, *items: str, kind: type[WriteQueue[str]] = WriteQueue) -> Sleepy:
        ended = threading.Semaphore(0)
        monkeypatch.setattr(write_queue, "threading", SleepyThreading(ended))
        return Sleepy(queue(size_max, *items, kind=kind), ended)

    return make


def taken_alone(arena: Arena[Sleepy]) -> bool:
    return arena.returned[0] == ["a"]


def test_who_waits_for_one_is_woken_by_it_whatever_it_waited_for_before(sleepy):
    prove(
        lambda: sleepy(10),
        [lambda one: one.wait(1), lambda one: one.put("a")],
        taken_alone,
    )


def test_a_queue_that_reads_the_number_before_it_has_the_lock_wakes_nobody(sleepy):
    refute(
        lambda: sleepy(10, kind=Deaf),
        [lambda one: one.wait(1), lambda one: one.put("a")],
        taken_alone,
    )


def test_those_who_are_expected_are_taken_with_the_first(sleepy):
    prove(
        lambda: sleepy(10, "a"),
        [lambda one: one.wait(2), lambda one: one.put("b")],
        lambda arena: arena.returned[0] == ["a", "b"],
    )


def test_who_waits_for_room_gets_it_when_something_is_taken(sleepy):
    prove(
        lambda: sleepy(1, "a"),
        [lambda one: one.queue.put("b"), lambda one: one.take()],
        lambda arena: (
            arena.returned == {0: True, 1: ["a"]} and arena.subject.queue.take(10) == ["b"]
        ),
    )


def test_who_waits_is_let_go_when_the_queue_closes(sleepy):
    prove(
        lambda: sleepy(1, "a"),
        [lambda one: one.queue.put("b"), lambda one: one.close()],
        lambda arena: arena.returned[0] is False and arena.subject.queue.take(10) == ["a"],
    )
    prove(
        lambda: sleepy(1),
        [lambda one: one.wait(1), lambda one: one.close()],
        lambda arena: arena.returned[0] == [],
    )
