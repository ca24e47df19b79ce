"""Proofs: requests, replies, bills and faults of the model server's books are atomic."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from cleveragents.testing.desk import Desk
from proofs.racekit import Arena, NoLock, prove, refute

if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = SimpleNamespace(model="m", messages=(), tool_names=(), max_tokens=1, stream=False)
DIALECT = SimpleNamespace(name="openai-chat")


class NoCondition(NoLock):
    """What a racy twin holds instead of its condition."""

    def notify_all(self) -> None:
        return None


def books() -> Desk:
    return Desk(["first", "second", "third"])


def racy() -> Desk:
    desk = books()
    desk._changed = NoCondition()
    return desk


def receive(desk: Desk) -> int:
    return desk.receive(DIALECT, PROMPT, {}, {}).number


def take(desk: Desk) -> str:
    (step,) = desk.ask(SimpleNamespace(model="m")).steps
    return step


def charge(number: int, bill: str = "") -> Callable[[Desk], None]:
    return lambda desk: desk.charge(SimpleNamespace(number=number, bill=bill))


def each_has_its_number(arena: Arena[Desk]) -> bool:
    numbers = sorted(arena.returned.values())
    return numbers == [1, 2] == [one.number for one in arena.subject.asked]


def each_has_its_reply(arena: Arena[Desk]) -> bool:
    return sorted(arena.returned.values()) == ["first", "second"]


def both_are_charged(arena: Arena[Desk]) -> bool:
    return [one.number for one in arena.subject.bills] == [1, 2]


def is_a_snapshot(arena: Arena[Desk]) -> bool:
    """A reader sees all requests until a moment, in their order."""
    seen = arena.returned[1]
    return tuple(one.number for one in seen) in {(), (1,)}


def test_two_requests_get_two_numbers() -> None:
    prove(books, [receive, receive], each_has_its_number)


def test_two_requests_get_two_replies_of_a_list() -> None:
    prove(books, [take, take], each_has_its_reply)


def test_bills_of_two_connections_are_both_kept() -> None:
    prove(books, [charge(1), charge(2)], both_are_charged)


def test_one_of_two_bills_of_a_request_stays() -> None:
    def one_stays(arena: Arena[Desk]) -> bool:
        return [one.bill in {"early", "late"} for one in arena.subject.bills] == [True]

    prove(books, [charge(1, "early"), charge(1, "late")], one_stays)


def test_who_reads_requests_sees_a_snapshot() -> None:
    prove(books, [receive, lambda desk: desk.asked], is_a_snapshot)


def test_who_reads_bills_sees_a_snapshot() -> None:
    def seen(arena: Arena[Desk]) -> bool:
        return [one.number for one in arena.returned[1]] in ([], [2])

    prove(books, [charge(2), lambda desk: desk.bills], seen)


def test_faults_of_two_connections_are_both_kept() -> None:
    def report(name: str) -> Callable[[Desk], None]:
        return lambda desk: desk.report(ValueError(name))

    def both(arena: Arena[Desk]) -> bool:
        return sorted(map(str, arena.subject.faults)) == ["a", "b"]

    prove(books, [report("a"), report("b")], both)


def test_books_without_their_lock_give_one_number_twice() -> None:
    refute(racy, [receive, receive], each_has_its_number)


def test_books_without_their_lock_give_one_reply_twice() -> None:
    refute(racy, [take, take], each_has_its_reply)
