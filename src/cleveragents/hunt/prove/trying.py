"""One trial from its first run to its verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from cleveragents.hunt.prove.search import Baseline, Kind, Search, Strange, baseline
from cleveragents.hunt.prove.turns import Ended
from cleveragents.hunt.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleveragents.hunt.prove.stage import Stage

__all__ = ["Tried", "try_out"]

#: Whole calls are run again so often before a race is called proven.
_ROUNDS_BEFORE_PROVEN = 4
#: How long to look for an interleaving that can strike today, once one is found that cannot.
_TODAY_S = 0.7


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a trial."""

    verdict: Verdict
    reason: str = ""
    base: Baseline | None = None
    strange: Strange | None = None
    replays: int = 0
    reproduced: int = 0


def try_out(stage: Stage, until_s: float, *, replays: int, deep: bool = True) -> Tried:
    """Try one trial until the time is up; a race is proven only if its replays show it again."""
    base = baseline(stage)
    if base.hung:
        return Tried(Verdict.GAVE_UP, "a call does not end, even alone")
    if base.unsteady:
        return Tried(Verdict.UNSTEADY, "the same calls in the same order give something else", base)
    if not base.seen:
        return Tried(Verdict.NOT_TRIABLE, "in every order a call waits for another", base)
    search = Search(stage, base, until_s)
    best = _best(chain(search.shallow(), search.deep() if deep else ()))
    if best is None:
        return Tried(Verdict.SILENT, "", base)
    if best.kind is Kind.SUSPICION:
        return Tried(Verdict.BENIGN, best.why, base, best)
    if not best.today:
        best = _striking_today(search.deep(), best)
    return _confirmed(stage, base, best, replays)


def _best(met: Iterable[Strange]) -> Strange | None:
    """Return the first race; else the first deadlock; else the first suspicion."""
    by_kind: dict[Kind, Strange] = {}
    for strange in met:
        by_kind.setdefault(strange.kind, strange)
        if strange.kind is Kind.RACE:
            break
    return next((by_kind[kind] for kind in Kind if kind in by_kind), None)


def _striking_today(met: Iterable[Strange], best: Strange) -> Strange:
    """Return a strange run of the same kind that can strike today, if one is met soon."""
    until_s = time.monotonic() + _TODAY_S
    for strange in met:
        if strange.kind is best.kind and strange.today:
            return strange
        if time.monotonic() > until_s:
            break
    return best


def _confirmed(stage: Stage, base: Baseline, strange: Strange, replays: int) -> Tried:
    again = baseline(stage, rounds=_ROUNDS_BEFORE_PROVEN)
    if again.unsteady or set(again.seen) != set(base.seen):
        return Tried(Verdict.UNSTEADY, "whole calls gave something else later on", base, strange)
    reproduced = 0
    for _ in range(replays):
        ran, seen = stage.run(strange.plan)
        if strange.seen is None:
            reproduced += ran.ended is Ended.DEADLOCK
        else:
            reproduced += seen is not None and seen.exact == strange.seen.exact
    verdict = Verdict.DEADLOCK if strange.kind is Kind.DEADLOCK else Verdict.PROVEN
    if reproduced < replays:
        return Tried(Verdict.UNSTEADY, "the replay does not always show it", base, strange)
    return Tried(verdict, "", base, strange, replays, reproduced)
