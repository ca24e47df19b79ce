"""The search for an outcome that no order of whole calls gives.

First all ways to stop one call once and let the others run in its middle, then all ways to stop
two of them, then a sample of wilder ones: the first that is found has the fewest switches. Every
opcode that others could notice is a place to stop, so nothing depends on knowing which container
or which operation is shared.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice, permutations
from typing import TYPE_CHECKING

from cleveragents.hunt.prove.cuts import Cut, cuts_of
from cleveragents.hunt.prove.turns import Ended, Ran, Turn, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cleveragents.hunt.prove.stage import Seen, Stage
    from cleveragents.hunt.verdict import Outcome

__all__ = ["Baseline", "Kind", "Search", "Strange", "baseline"]

#: So many sampled plans, of up to so many turns.
_SAMPLES = 120
_SAMPLE_TURNS_MAX = 6
#: How the text of a call begins that gave something that the object holds.
_HELD = "returned <"
#: After so many runs that hang, a trial is left: each costs seconds.
_HUNG_MAX = 2
#: Calls that run in parts, such as generators, are put into so many orders at most.
_ORDERS_OF_PARTS_MAX = 80


class Kind(Enum):
    """What is strange about a run, the worst first."""

    RACE = "race"
    DEADLOCK = "deadlock"
    #: It may be harmless: the order in a list, or a call that refuses to overlap.
    SUSPICION = "suspicion"


@dataclass(frozen=True, slots=True)
class Strange:
    """A run that no order of whole calls explains."""

    kind: Kind
    plan: tuple[Turn, ...]
    ran: Ran
    seen: Seen | None
    #: Whether every switch is where an interpreter with its lock may switch.
    today: bool
    strategy: str
    why: str = ""


@dataclass(slots=True)
class Baseline:
    """What whole calls give, one after the other, in every order."""

    seen: dict[str, Seen] = field(default_factory=dict)
    loose: set[str] = field(default_factory=set)
    #: The run of each order, as far as it came.
    traces: dict[tuple[int, ...], Ran] = field(default_factory=dict)
    #: Whether a whole call had to wait for another: such calls are meant to overlap.
    waited: bool = False
    hung: bool = False
    #: Whether an order gave something else when it was run again.
    unsteady: bool = False

    #: Whether calls run in more parts than can be put into every order.
    too_many_parts: bool = False

    def add(self, seen: Seen) -> None:
        """Take in one more outcome that is right."""
        self.seen.setdefault(seen.exact, seen)
        self.loose.add(seen.loose)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Return each outcome once."""
        return tuple(dict.fromkeys(seen.outcome for seen in self.seen.values()))


def baseline(stage: Stage, *, rounds: int = 2, without: frozenset[int] = frozenset()) -> Baseline:
    """Run whole calls in every order, more than once, to see whether they are steady."""
    found = Baseline()
    first: dict[tuple[int, ...], str] = {}
    for _ in range(rounds):
        for order in permutations(range(stage.threads)):
            ran, seen = stage.run(in_order(order), whole=True, without=without)
            found.waited = found.waited or ran.waited
            if ran.ended is Ended.HUNG:
                found.hung = True
                return found
            found.traces[order] = ran
            if seen is None:
                continue
            found.unsteady = found.unsteady or first.setdefault(order, seen.exact) != seen.exact
            found.add(seen)
    parts = [
        max(column) for column in zip(*(ran.parts for ran in found.traces.values()), strict=True)
    ]
    if max(parts) > 1:
        _add_parts(stage, found, parts, without)
    return found


def _add_parts(
    stage: Stage, found: Baseline, parts: Sequence[int], without: frozenset[int]
) -> None:
    """Add what orders of parts give: a caller may do anything between two of them.

    That an operation fails there is no excuse: a loop over what another call changes.
    """
    orders = list(islice(_orders_of_parts(parts), _ORDERS_OF_PARTS_MAX + 1))
    found.too_many_parts = len(orders) > _ORDERS_OF_PARTS_MAX
    for order in orders[:_ORDERS_OF_PARTS_MAX]:
        plan = tuple(Turn(thread, 0) for thread in order)
        _, seen = stage.run(plan, whole=True, without=without)
        if seen is not None and not any(seen.broke):
            found.add(seen)


def _orders_of_parts(parts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not any(parts):
        yield ()
    for thread, left in enumerate(parts):
        if left:
            fewer = [*parts[:thread], left - 1, *parts[thread + 1 :]]
            yield from ((thread, *rest) for rest in _orders_of_parts(fewer))


class Search:
    """Looks for strange runs of one trial until its time (of `time.monotonic`) is up."""

    def __init__(self, stage: Stage, base: Baseline, until_s: float) -> None:
        self._stage = stage
        self._base = base
        self._until_s = until_s
        self._hung = 0
        self._threads = range(stage.threads)
        #: The cuts of the second call, for each place where the first was stopped.
        self._second: dict[tuple[int, ...], dict[Cut, list[Cut]]] = {}
        self._without: dict[frozenset[int], Baseline] = {}

    def shallow(self) -> Iterator[Strange]:
        """Stop one call once, where it can strike today first: most races need no more."""
        for today in (True, False):
            yield from self._once(today=today)

    def deep(self) -> Iterator[Strange]:
        """Go on from the shallow search: stop two calls, then sample the rest."""
        for today in (True, False):
            yield from self._twice(today=today)
        yield from self._sample()

    def _over(self) -> bool:
        return time.monotonic() > self._until_s or self._hung >= _HUNG_MAX

    def _once(self, *, today: bool) -> Iterator[Strange]:
        for order, ran in self._base.traces.items():
            first, *others = order
            second = self._second.setdefault(order, {})
            for cut in cuts_of(ran.points, first):
                if cut.today is not today:
                    continue
                for plan in _around(first, cut, others):
                    if self._over():
                        return
                    strange, tried = self.judge(plan, "sweep", today=today)
                    second.setdefault(cut, cuts_of(tried.points, others[0]))
                    if strange is not None:
                        yield strange

    def _twice(self, *, today: bool) -> Iterator[Strange]:
        for order, cuts in self._second.items():
            first, second, *_ = order
            pairs = [(one, two) for one, twos in cuts.items() for two in twos]
            for one, two in pairs:
                if (one.today and two.today) is not today:
                    continue
                if self._over():
                    return
                plan = (Turn(first, one.opcodes), Turn(second, two.opcodes), Turn(first, None))
                strange, _ = self.judge(plan, "sweep", today=today)
                if strange is not None:
                    yield strange

    def _sample(self) -> Iterator[Strange]:
        chance = random.Random(7)  # noqa: S311  # no secret: the same samples every time
        lengths = sorted(
            {
                cut.opcodes
                for order, ran in self._base.traces.items()
                for cut in cuts_of(ran.points, order[0])
            }
        )
        for _ in range(_SAMPLES if lengths else 0):
            if self._over():
                return
            turns = chance.randint(3, _SAMPLE_TURNS_MAX)
            plan = tuple(
                Turn(chance.choice(self._threads), chance.choice(lengths)) for _ in range(turns)
            )
            strange, _ = self.judge(plan, "random", today=False)
            if strange is not None:
                yield self._fewer_turns(strange)

    def _fewer_turns(self, strange: Strange) -> Strange:
        """Leave out every turn that the strangeness does not need."""
        number = 0
        while number < len(strange.plan):
            plan = strange.plan[:number] + strange.plan[number + 1 :]
            fewer, _ = self.judge(plan, strange.strategy, today=False)
            if fewer is not None and fewer.kind is strange.kind:
                strange = fewer
            else:
                number += 1
        return strange

    def judge(
        self, plan: tuple[Turn, ...], strategy: str, *, today: bool
    ) -> tuple[Strange | None, Ran]:
        """Run a plan; say what is strange about it, if anything is."""
        ran, seen = self._stage.run(plan)
        if ran.ended is Ended.HUNG:
            self._hung += 1
            return None, ran
        if ran.ended is Ended.DEADLOCK:
            if self._base.waited:
                return None, ran
            return Strange(Kind.DEADLOCK, plan, ran, None, today, strategy), ran
        if seen is None or seen.exact in self._base.seen:
            return None, ran
        harmless = self._harmless(ran, seen)
        kind = Kind.SUSPICION if harmless else Kind.RACE
        return Strange(kind, plan, ran, seen, today, strategy, harmless), ran

    def _harmless(self, ran: Ran, seen: Seen) -> str:  # noqa: PLR0911  # one for each reason
        """Return why a strange outcome may be meant, or nothing."""
        usual = self._base.seen.values()
        if seen.loose in self._base.loose or any(_differ_in_holding(seen, one) for one in usual):
            return "only an order, or which of two equal things it is, differs"
        if seen.misfit:
            return "an argument that was made up is not of the kind that a call needs"
        if any(all(one.broke[call] for one in usual) for call in self._threads):
            return "a call fails in every order of whole calls, so it is not used as it is meant"
        if self._base.too_many_parts and not any(seen.broke):
            return "calls run in many parts, between which others may run"
        if ran.waited and self._base.waited:
            return "calls wait for one another by design, and what they leave meanwhile was seen"
        if self._has_shared(seen):
            return "a call let another's callback count as its own, and gave what that one gave"
        if ran.refused:
            return "a call found a lock taken, or its wait timed out, and went another way"
        if self._said_no_and_did_nothing(seen):
            return "a call refused to run while another ran, and changed nothing"
        return ""

    def _has_shared(self, seen: Seen) -> bool:
        """Say whether a call did not run its callback, and gave what another gives."""
        usual = self._base.seen.values()
        idle = (
            all(one.called_back[call] for one in usual) and not seen.called_back[call]
            for call in self._threads
        )
        if not any(idle):
            return False
        given = {text for one in usual for text in one.loose_calls}
        states = {one.loose_state for one in usual}
        return seen.loose_state in states and given.issuperset(seen.loose_calls)

    def _said_no_and_did_nothing(self, seen: Seen) -> bool:
        usual = self._base.seen.values()
        refusing = frozenset(
            call
            for call in self._threads
            if seen.said_no[call]
            and all(one.loose_calls[call] != seen.loose_calls[call] for one in usual)
        )
        if not refusing:
            return False
        if refusing not in self._without:
            self._without[refusing] = baseline(self._stage, rounds=1, without=refusing)
        others = self._without[refusing].seen.values()
        # A call that never changes anything, such as a reading, has no way to refuse.
        if {one.loose_state for one in others} == {one.loose_state for one in usual}:
            return False
        rest = [call for call in self._threads if call not in refusing]
        return any(
            one.loose_state == seen.loose_state
            and all(one.loose_calls[call] == seen.loose_calls[call] for call in rest)
            for one in others
        )


def _differ_in_holding(seen: Seen, usual: Seen) -> bool:
    """Say whether all is alike, but that a call gave what the object holds, and not its like.

    The other way around it counts: what the caller was given is cut off from the object.
    """
    if seen.loose_state != usual.loose_state or seen.contents != usual.contents:
        return False
    pairs = zip(usual.loose_calls, seen.loose_calls, strict=True)
    return all(_HELD in now or _HELD not in before for before, now in pairs)


def _around(first: int, cut: Cut, others: Sequence[int]) -> Iterator[tuple[Turn, ...]]:
    """Stop the first call there, and run all others, or the next one alone, in its middle."""
    yield (Turn(first, cut.opcodes), *in_order(others), Turn(first, None))
    if len(others) > 1:
        yield (Turn(first, cut.opcodes), *in_order([others[0], first, *others[1:]]))
