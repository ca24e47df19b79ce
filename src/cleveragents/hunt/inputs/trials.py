"""The trials of a candidate: pairs, then triples, after 0 to 2 calls of set-up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

from cleveragents.hunt.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cleveragents.hunt.inputs.text import Text

__all__ = ["Ways", "trials"]

#: More calls than this make more pairs than anyone waits for.
_CALLS_MAX = 6
_SETUPS_MAX = 4
_ENTER, _EXIT = "subject.__enter__(", "subject.__exit__("


@dataclass(frozen=True, slots=True)
class Ways:
    """What is known to work: how to build the object, call its methods and change its state."""

    subject: Text
    #: For each method, the most suspicious first: its calls, the plainest first.
    calls: tuple[tuple[Text, ...], ...]
    #: Calls that change a new object and do not wait.
    changes: tuple[Text, ...] = ()
    fresh_module: str | None = None


def trials(ways: Ways) -> Iterator[Trial]:
    """Yield every trial once."""
    seen: set[Trial] = set()
    enters = any(_ENTER in text.text for text in ways.changes)
    for setup, calls in chain(_pairs(ways), _triples(ways)):
        trial = _trial(ways, setup, calls)
        if trial not in seen and not (enters and _leaves_unentered(trial)):
            seen.add(trial)
            yield trial


def _leaves_unentered(trial: Trial) -> bool:
    """Say whether a block would be left more often than it was entered: no program does that."""
    entered = sum(_ENTER in text for text in trial.setup)
    return sum(_EXIT in text for text in (*trial.setup, *trial.calls)) > entered


def _pairs(ways: Ways) -> Iterator[tuple[Sequence[Text], Sequence[Text]]]:
    pairs = list(_pairs_of_calls(ways.calls[:_CALLS_MAX]))
    for setup in _setups(ways.changes):
        for pair in pairs:
            yield setup, pair


def _pairs_of_calls(calls: Sequence[Sequence[Text]]) -> Iterator[tuple[Text, Text]]:
    """Each call beside itself, with the same and with other arguments, then beside the others."""
    for texts in calls:
        yield texts[0], texts[0]
        if len(texts) > 1:
            yield texts[0], texts[1]
    for one, other in combinations(calls, 2):
        yield one[0], other[0]
    for texts in calls:
        # Ways that raise stand last, and what a call does then may race, too.
        yield texts[-1], texts[-1]
    for one, other in combinations(calls, 2):
        if len(other) > 1:
            yield one[0], other[1]
        if len(one) > 1:
            yield one[1], other[0]


def _setups(changes: Sequence[Text]) -> Iterator[tuple[Text, ...]]:
    some = changes[:_SETUPS_MAX]
    yield ()
    for change in some:
        yield (change,)
    for one in some:
        yield (one, one)
    for one, other in combinations(some, 2):
        yield (one, other)


def _triples(ways: Ways) -> Iterator[tuple[Sequence[Text], Sequence[Text]]]:
    calls = ways.calls[:3]
    for setup in ((), *((change,) for change in ways.changes[:1])):
        for texts in calls:
            yield setup, (texts[0],) * 3
        for one, other in combinations(calls, 2):
            yield setup, (one[0], one[0], other[0])
            yield setup, (one[0], other[0], other[0])


def _trial(ways: Ways, setup: Iterable[Text], calls: Iterable[Text]) -> Trial:
    setup, calls = tuple(setup), tuple(calls)
    imports = frozenset().union(*(one.imports for one in (ways.subject, *setup, *calls)))
    return Trial(
        imports=tuple(sorted(imports)),
        subject=ways.subject.text,
        setup=tuple(one.text for one in setup),
        calls=tuple(one.text for one in calls),
        fresh_module=ways.fresh_module,
    )
