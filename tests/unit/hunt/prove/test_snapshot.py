"""What reads alike, and what does not."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("frontrun", reason="needs the packages of the hunt")

from cleveragents.hunt.prove.snapshot import Snapshot
from cleveragents.hunt.prove.world import Id


class Plain:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("__secret", "n")

    def __init__(self, n: int) -> None:
        self.n, self.__secret = n, n


@dataclass(frozen=True)
class Frozen:
    n: int


def exact(value: object) -> str:
    return Snapshot().state("it", value)


def loose(value: object) -> str:
    return Snapshot(loose=True).state("it", value)


def test_the_order_of_dicts_and_sets_is_no_difference() -> None:
    assert exact({"a": 1, "b": 2}) == exact({"b": 2, "a": 1})
    assert exact({3, 1, 2}) == "{1, 2, 3}"


def test_the_order_of_lists_counts_exactly_but_not_loosely() -> None:
    for one, other in (
        ([1, 2], [2, 1]),
        (deque([1, 2]), deque([2, 1])),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
    ):
        assert exact(one) != exact(other)
        assert loose(one) == loose(other)
    assert loose((1, 2)) != loose((2, 1))


def test_fields_slots_and_cycles_are_told() -> None:
    plain = Plain(n=1)
    plain.me = plain
    assert exact(plain) == "Plain(me=<it>, n=1)"
    assert exact(Slotted(2)) == "Slotted(_Slotted__secret=2, n=2)"


def test_who_is_who_counts_for_objects_but_not_for_values() -> None:
    thing, value = Plain(), Frozen(1)
    assert exact([thing, thing]) != exact([thing, Plain()])
    assert exact([value, value]) == exact([value, Frozen(1)])


def test_a_returned_container_counts_loosely_only_if_the_state_holds_it() -> None:
    rows: list[int] = []
    held, apart = Snapshot(loose=True), Snapshot(loose=True)
    for snapshot in (held, apart):
        snapshot.state("it", {"rows": rows})
    assert held.result("r", rows) != apart.result("r", [])
    assert Snapshot(loose=True).result("r", [rows, rows]) == "[[], []]"


def test_lists_of_numbers_that_calls_gave_have_one_order_in_the_loose_text():
    one, other = Snapshot(loose=True), Snapshot(loose=True)
    one.name_ids([Id(1), Id(2)])
    other.name_ids([Id(1), Id(2)])
    assert one.state("it", [Id(1), Id(2)]) == other.state("it", [Id(2), Id(1)])


def test_numbers_that_only_name_things_may_be_swapped_loosely() -> None:
    one, other = Snapshot(loose=True), Snapshot(loose=True)
    one.name_ids([Id(1), Id(2)])
    other.name_ids([Id(2), Id(1)])
    assert one.state("it", {Id(1): "a"}) == other.state("it", {Id(2): "a"})


def test_addresses_and_threads_are_told_without_their_numbers() -> None:
    assert exact(id(object())) == "<address>"
    assert exact("<Box at 0x7f0011223344>") == "'<Box at 0x…>'"
    assert Snapshot(threads={2_000_000: 1}).state("it", 2_000_000) == "<thread 1>"


def test_insides_that_are_nobody_s_business_stay_shut() -> None:
    assert exact(weakref.WeakSet()) == "<WeakSet>"
    assert exact(ValueError("told differently every time")) == "ValueError()"


def test_depth_has_an_end() -> None:
    nested: list[Any] = []
    for _ in range(50):
        nested = [nested]
    assert "…" in exact(nested)


def test_lists_in_a_circle_are_sorted_and_have_an_end() -> None:
    first, second = Plain(n=1), Plain(n=2)
    first.all = second.all = [first, second]
    first.known = second.known = {first, second}
    assert loose([first, second]) == loose([second, first])


def test_insides_of_equal_values_are_alike_loosely() -> None:
    class Row:
        def __init__(self) -> None:
            self.cells = [1]

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Row) and self.cells == other.cells

        def __hash__(self) -> int:
            return 1

    row = Row()
    assert exact([row, row]) != exact([row, Row()])
    assert loose([row, row]) == loose([row, Row()])
