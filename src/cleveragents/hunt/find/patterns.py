"""The rules: which touches of which state no lock keeps in one piece.

Two touches of one call are one piece if one stay inside a lock covers both. Where they are not,
a neighbour's write may come between: a read that decides a write, a write that is read back, a
test whose answer is used. Single steps of the interpreter are one piece by themselves.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.hunt.candidate import Pattern
from cleveragents.hunt.find.events import (
    READS,
    WRITES,
    Event,
    Hold,
    Op,
    are_exclusive,
    are_together,
    locks_of,
    share_a_lock,
)
from cleveragents.hunt.find.scopes import STRIDE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cleveragents.hunt.find.scopes import Entry, Scope

__all__ = ["Suspicion", "suspicions"]

#: Events of one state in one entry that are compared with each other.
_EVENTS_MAX: Final = 48
#: States of one entry whose pairs are compared.
_STATES_MAX: Final = 24
#: Readers that are named for one pair of states; more say nothing new.
_READERS_MAX: Final = 2
_CHANGES: Final = frozenset({Op.ADD, Op.REMOVE})
#: A write that a test before it may have become wrong for.
_ACTS: Final = frozenset({Op.WRITE, Op.ADD, Op.REMOVE})


class Suspicion(NamedTuple):
    """One rule that one entry, alone or beside another, breaks."""

    pattern: Pattern
    states: tuple[str, ...]
    #: The entry that is not in one piece first, then the one that comes between.
    entries: tuple[str, ...]
    #: How likely it is that somebody notices.
    weight: int


class _Touched:
    """The events of all entries, by state."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.by_entry: dict[str, dict[str, list[Event]]] = {}
        self.writes: dict[str, list[tuple[str, Event]]] = defaultdict(list)
        for entry in entries:
            states: dict[str, list[Event]] = defaultdict(list)
            for event in entry.events:
                if event.op is not Op.STRANGER and len(states[event.state]) < _EVENTS_MAX:
                    states[event.state].append(event)
            self.by_entry[entry.name] = states
            for state, events in states.items():
                self.writes[state] += [(entry.name, one) for one in events if one.op in WRITES]

        users: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            for state in self.by_entry[entry.name]:
                users[state].append(entry)
        #: States that one thread of the owner's own touches, and nobody else.
        self.confined = frozenset(
            state for state, (user, *others) in users.items() if user.is_thread and not others
        )

    def states_of(self, entry: str) -> Iterator[tuple[str, list[Event]]]:
        """Yield the states of an entry that somebody writes after the beginning."""
        for state, events in self.by_entry[entry].items():
            if self.writes.get(state) and state not in self.confined:
                yield state, events


def suspicions(scope: Scope) -> list[Suspicion]:
    """Return what the rules say about an owner's entries."""
    touched = _Touched([entry for entry in scope.entries if not entry.is_async])
    found = set[Suspicion]()
    for entry in touched.entries:
        for state, events in touched.states_of(entry.name):
            found.update(_in_one_call(entry, state, events, touched))
        found.update(_held_across(entry, touched))
    found.update(_mixed(touched))
    found.update(_torn(touched))
    return sorted(found, key=lambda one: (-one.weight, one))


# -- one state, one call --------------------------------------------------------------------


def _in_one_call(
    entry: Entry, state: str, events: list[Event], touched: _Touched
) -> Iterator[Suspicion]:
    broken = False
    for at, second in enumerate(events):
        if second.op is Op.ITERATE:
            yield from _iterated(entry, state, second, touched)
        for first in events[:at]:
            if are_exclusive(first, second) or are_together(first, second):
                continue
            if None not in {first.key, second.key} and first.key != second.key:
                continue
            rule = _rule(entry, first, second, events[:at], touched)
            if rule is not None:
                broken = True
                yield Suspicion(rule[0], (state,), (entry.name,), rule[1])
    if broken and state in entry.lock_per_call:
        yield Suspicion(Pattern.LOCK_PER_CALL, (state,), (entry.name,), 9)


def _rule(
    entry: Entry, first: Event, second: Event, before: Iterable[Event], touched: _Touched
) -> tuple[Pattern, int] | None:
    """Name the rule that two touches of one state break, with its weight."""
    if first.op in READS and second.op in _ACTS:
        return _read_then_write(entry, first, second, before)
    if _are_apart(first, second):
        return None
    if first.op in WRITES and second.op in READS:
        return _write_then_read(first, second)
    writes = [one for _, one in touched.writes[first.state]]
    vanishes = any(map(_empties, writes))
    found: tuple[Pattern, int] | None = None
    if vanishes and first.op in {Op.TEST, Op.LAST} and second.op in READS - {Op.TEST}:
        found = Pattern.CHECK_THEN_ACT, 5
    elif second.op is Op.ADD and _empties(first) and _is_read_elsewhere(entry, first, touched):
        found = Pattern.TORN_UPDATE, 5
    elif second.op is Op.ADD and first.op is Op.ENSURE and vanishes:
        # What `setdefault` handed out may be thrown out before it is filled.
        found = Pattern.READ_MODIFY_WRITE, 5
    return found


def _read_then_write(
    entry: Entry, first: Event, second: Event, before: Iterable[Event]
) -> tuple[Pattern, int] | None:
    is_looked_at_again = any(
        one.op in READS and are_together(one, second) and not are_exclusive(one, second)
        for one in before
    )
    if is_looked_at_again:
        return None
    weight = 6 if first.holds and second.holds else 9
    if first.op is Op.TEST or first.state in entry.tested:
        return Pattern.CHECK_THEN_ACT, weight
    if first.op is Op.LAST:
        return Pattern.LAST_ELEMENT, weight - 1
    return Pattern.READ_MODIFY_WRITE, weight


def _write_then_read(first: Event, second: Event) -> tuple[Pattern, int] | None:
    if second.op is Op.LAST and first.op in _CHANGES:
        return Pattern.LAST_ELEMENT, 7
    is_whole = not first.depth and not second.depth
    return (Pattern.READ_MODIFY_WRITE, 4 if first.clears else 5) if is_whole else None


def _empties(event: Event) -> bool:
    return event.op is Op.REMOVE or (event.op is Op.WRITE and event.clears)


def _is_read_elsewhere(entry: Entry, event: Event, touched: _Touched) -> bool:
    return any(
        one.op in READS
        for name, states in touched.by_entry.items()
        if name != entry.name
        for one in states.get(event.state, ())
    )


def _iterated(entry: Entry, state: str, loop: Event, touched: _Touched) -> Iterator[Suspicion]:
    for name, write in touched.writes[state]:
        is_there = write.op in _CHANGES and write.depth == loop.depth
        if is_there and not share_a_lock(locks_of(loop), locks_of(write)):
            pair = (entry.name,) if name == entry.name else (entry.name, name)
            yield Suspicion(Pattern.ITERATE_BESIDE_MUTATE, (state,), pair, 6)
            if write.holds:
                yield Suspicion(Pattern.MIXED_GUARD, (state,), pair, 7)
            return


# -- one state, two calls -------------------------------------------------------------------


def _mixed(touched: _Touched) -> Iterator[Suspicion]:
    """Yield states that are changed in several steps under a lock, and touched without it."""
    for state in sorted(touched.writes):
        stays = _stays(state, touched)
        for (name, _), events in stays.items():
            writes = [one for one in events if one.op in WRITES]
            in_steps = any(not are_exclusive(*two) for two in combinations(writes, 2))
            deepest = max(one.depth for one in writes)
            common = frozenset[str].intersection(*map(locks_of, events))
            for entry in touched.entries:
                for event in touched.by_entry[entry.name].get(state, ()):
                    if share_a_lock(locks_of(event), common):
                        continue
                    if event.depth > deepest:
                        continue  # what is inside keeps itself
                    compound = event.op in _ACTS and len(events) > 1
                    seen_between = event.op in READS and in_steps and not _is_hint(event, entry)
                    if compound or seen_between:
                        weight = 8 if compound else 5
                        yield Suspicion(
                            Pattern.MIXED_GUARD, (state,), _pair(entry.name, name), weight
                        )


def _stays(state: str, touched: _Touched) -> dict[tuple[str, str], list[Event]]:
    """Return the touches of a state by the stay inside a lock, for stays that write."""
    stays: dict[tuple[str, str], list[Event]] = {}
    for entry in touched.entries:
        regions: dict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in touched.by_entry[entry.name].get(state, ()):
            for hold in event.holds:
                regions[hold].append(event)
        for (lock, _), events in regions.items():
            if any(one.op in WRITES for one in events):
                known = stays.setdefault((entry.name, lock), events)
                if len(events) > len(known):
                    stays[entry.name, lock] = events
    return stays


def _is_hint(event: Event, entry: Entry) -> bool:
    """Say whether a read without the lock only decides whether to take it."""
    return any(
        other.state == event.state and other.holds and other.op in READS
        for other in entry.events
        if other is not event
    )


def _pair(one: str, other: str) -> tuple[str, ...]:
    return (one,) if one == other else (one, other)


# -- two states ------------------------------------------------------------------------------

#: Two states with the locks that keep their touches in one piece; no lock: torn apart.
_Pairs = dict[tuple[str, str], frozenset[str]]


def _torn(touched: _Touched) -> Iterator[Suspicion]:
    """Yield states that one call writes one after the other and another reads together."""
    written = {entry.name: _pairs(entry, touched, WRITES) for entry in touched.entries}
    readers: dict[tuple[str, str], list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for entry in touched.entries:
        for pair, locks in _pairs(entry, touched, READS).items():
            readers[pair].append((entry.name, locks))
    for writer, pairs in written.items():
        for pair, locks in pairs.items():
            beside = (
                reader
                for reader, read_locks in readers.get(pair, ())
                if reader != writer and not share_a_lock(locks, read_locks)
            )
            for reader in islice(beside, _READERS_MAX):
                if locks:
                    yield Suspicion(Pattern.MIXED_GUARD, pair, (reader, writer), 6)
                yield Suspicion(Pattern.TORN_UPDATE, pair, (writer, reader), 5)


def _pairs(entry: Entry, touched: _Touched, ops: frozenset[Op]) -> _Pairs:
    """Return the states that an entry touches together, with the locks of a common stay."""
    firsts: dict[str, Event] = {}
    stays: dict[str, set[Hold]] = defaultdict(set)
    for state, events in touched.states_of(entry.name):
        for event in events:
            if event.op in ops:
                firsts.setdefault(state, event)
                stays[state] |= event.holds
    pairs: _Pairs = {}
    for one, other in combinations(sorted(firsts)[:_STATES_MAX], 2):
        together = stays[one] & stays[other]
        first, second = firsts[one], firsts[other]
        if together or not (_are_apart(first, second) or _is_a_look_before(entry, first, second)):
            pairs[one, other] = frozenset(hold.lock for hold in together)
    return pairs


def _are_apart(one: Event, other: Event) -> bool:
    """Say whether two touches are no pair: in two arms, or in two calls that lock each."""
    if are_exclusive(one, other):
        return True
    return _calls_of(one).isdisjoint(_calls_of(other)) if one.holds and other.holds else False


def _is_a_look_before(entry: Entry, one: Event, other: Event) -> bool:
    """Say whether one of two reads is a test without the lock that the other one holds."""
    looks = [event for event in (one, other) if not event.holds]
    return len(looks) == 1 and (looks[0].op is Op.TEST or looks[0].state in entry.tested)


def _calls_of(event: Event) -> set[int]:
    return {hold.region // STRIDE for hold in event.holds}


# -- locks that are held too long -----------------------------------------------------------


def _held_across(entry: Entry, touched: _Touched) -> Iterator[Suspicion]:
    strangers = [event for event in entry.events if event.op is Op.STRANGER]
    for event in strangers:
        states = sorted(
            {
                one.state
                for one in entry.events
                if touched.writes.get(one.state) and one.holds & event.holds
            }
        )
        if states:
            yield Suspicion(Pattern.LOCK_HELD_ACROSS, tuple(states), (entry.name,), 3)
