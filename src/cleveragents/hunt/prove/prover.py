"""From a candidate to its finding; the user's code runs in this process."""

from __future__ import annotations

import importlib
import sys
import time
from collections import Counter
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from frontrun._tracing import set_active_trace_filter

from cleveragents.hunt.inputs import known_inputs, trials
from cleveragents.hunt.inputs.known import Known
from cleveragents.hunt.prove.modules import UserCode, forget_strangers
from cleveragents.hunt.prove.options import ProveOptions
from cleveragents.hunt.prove.scene import play_of
from cleveragents.hunt.prove.stage import OutOfReachError, Stage
from cleveragents.hunt.prove.telling import plan_text, reason_of, steps_of
from cleveragents.hunt.prove.trying import Tried, try_out
from cleveragents.hunt.prove.turns import Abandoned
from cleveragents.hunt.prove.ways import NoWayError, find_ways
from cleveragents.hunt.prove.world import the_world
from cleveragents.hunt.verdict import Finding, Strikes, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.inputs import Ways
    from cleveragents.hunt.trial import Trial

__all__ = ["prove"]

#: What a verdict is worth when several trials ended differently.
_WORTH = (
    Verdict.PROVEN, Verdict.DEADLOCK, Verdict.BENIGN, Verdict.UNSTEADY, Verdict.SILENT,
    Verdict.GAVE_UP, Verdict.NOT_TRIABLE,
)  # fmt: skip
#: How long to look for a trial that strikes today, once one is found that does not.
_TODAY_S = 2.0
#: One trial may not use up the time of all others.
_TRIAL_S_MAX = 4.0
#: So many trials are searched a second time, for races that need more than one switch.
_DEEP_MAX = 24


def prove(
    candidate: Candidate,
    root: Path,
    options: ProveOptions | None = None,
    told: Known | None = None,
) -> Finding:
    """Try a candidate until something is proven, all was tried, or its time is up.

    What is `told` of inputs comes before what the files of the options say.

    It runs the user's code in this process, with the world patched for as long as it takes.
    """
    options = options or ProveOptions()
    started_s = time.monotonic()
    with the_world.entered():
        try:
            known = told or Known()
            finding = _prove(
                candidate, root.resolve(), options, started_s + options.budget_s, known
            )
        finally:
            set_active_trace_filter(None)
    return replace(finding, elapsed_s=round(time.monotonic() - started_s, 3))


def _prove(
    candidate: Candidate, root: Path, options: ProveOptions, until_s: float, told: Known
) -> Finding:
    folder = root / candidate.import_root
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    set_active_trace_filter(UserCode([folder], [folder / candidate.module.partition(".")[0]]))
    forget_strangers(candidate.module, folder)
    try:
        owner = _owner(candidate)
    except BaseException as error:  # noqa: BLE001  # importing may run anything, `sys.exit` too
        reason = f"importing `{candidate.module}` raises {type(error).__name__}: {error}"
        return Finding(candidate=candidate, verdict=Verdict.UNIMPORTABLE, reason=reason)
    files = known_inputs(_path(root, options.factories), _path(root, options.recorded))
    known = files.with_more(told)
    try:
        ways = find_ways(candidate, owner, known, the_world)
    except NoWayError as error:
        return Finding(candidate=candidate, verdict=_no_way(str(error)), reason=str(error))
    return _Hunt(candidate, root, options, until_s).run(ways)


def _owner(candidate: Candidate) -> Any:
    module = importlib.import_module(candidate.module)
    return module if candidate.owner is None else attrgetter(candidate.owner)(module)


def _path(root: Path, name: str | None) -> Path | None:
    return None if name is None else root / name


def _no_way(reason: str) -> Verdict:
    if "thread of its own" in reason or "threads of its own" in reason:
        return Verdict.GAVE_UP
    return Verdict.UNBUILDABLE if "built" in reason else Verdict.NOT_TRIABLE


class _Hunt:
    """Goes through the trials of one candidate."""

    def __init__(
        self, candidate: Candidate, root: Path, options: ProveOptions, until_s: float
    ) -> None:
        self._candidate = candidate
        self._root = root
        self._options = options
        self._until_s = until_s
        self._explored = 0
        self._tried = 0
        self._met: dict[Verdict, tuple[Trial, Tried]] = {}
        self._count: Counter[Verdict] = Counter()

    def run(self, ways: Ways) -> Finding:
        """Return the first bug that strikes today; else the most telling of what was met."""
        for trial, deep in self._schedule(ways):
            left_s = self._until_s - time.monotonic()
            if left_s <= 0:
                break
            tried = self._try(trial, min(left_s, _TRIAL_S_MAX), deep=deep)
            self._met.setdefault(tried.verdict, (trial, tried))
            if tried.verdict.is_bug:
                if tried.strange is None or tried.strange.today:
                    return self._finding(trial, tried)
                # Another trial may show that it strikes today.
                self._until_s = min(self._until_s, time.monotonic() + _TODAY_S)
        for verdict in _WORTH:
            if verdict in self._met:
                return self._finding(*self._met[verdict])
        reason = "its time was up before anything was tried"
        return Finding(candidate=self._candidate, verdict=Verdict.GAVE_UP, reason=reason)

    def _schedule(self, ways: Ways) -> Iterator[tuple[Trial, bool]]:
        """Search all trials a little, then the first ones in depth."""
        every = list(trials(ways))
        yield from ((trial, False) for trial in every)
        yield from ((trial, True) for trial in every[:_DEEP_MAX])

    def _try(self, trial: Trial, limit_s: float, *, deep: bool) -> Tried:
        stage = Stage(play_of(trial), the_world)
        self._tried += not deep
        try:
            until_s = time.monotonic() + limit_s
            return try_out(stage, until_s, replays=self._options.replays, deep=deep)
        except OutOfReachError as reason:
            return Tried(Verdict.GAVE_UP, str(reason))
        except (Abandoned, Exception) as error:  # noqa: BLE001  # the set-up is the user's code
            return Tried(Verdict.NOT_TRIABLE, f"its set-up raises {type(error).__name__}")
        finally:
            self._explored += stage.runs

    def _finding(self, trial: Trial, tried: Tried) -> Finding:
        strange, base = tried.strange, tried.base
        reason = tried.reason
        if strange is not None and base is not None and not reason:
            reason = reason_of(strange, base, trial.calls)
        finding = Finding(
            candidate=self._candidate,
            verdict=tried.verdict,
            reason=reason or f"{self._tried} trials came out as in some order of whole calls",
            trial=trial,
            sequential=() if base is None else base.outcomes,
            replays=tried.replays,
            reproduced=tried.reproduced,
            explored=self._explored,
            trials=self._tried,
        )
        if strange is None:
            return finding
        return replace(
            finding,
            observed=None if strange.seen is None else strange.seen.outcome,
            steps=steps_of(strange.ran.points, self._root),
            strikes=Strikes.TODAY if strange.today else Strikes.FREE_THREADED,
            strategy=strange.strategy,
            schedule=plan_text(strange.plan),
        )
