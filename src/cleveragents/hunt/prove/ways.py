"""Finding out what works: the object is built and each call made once, alone, before any pair."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.inputs import Known, Ways, calls_of, constructions_of
from cleveragents.hunt.inputs.text import Text, name_of
from cleveragents.hunt.prove.modules import shared_by_module
from cleveragents.hunt.prove.scene import play_of
from cleveragents.hunt.prove.stage import OutOfReachError, Stage
from cleveragents.hunt.prove.turns import Abandoned, Ended, in_order
from cleveragents.hunt.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.prove.world import World

__all__ = ["NoWayError", "find_ways"]

#: Errors that say that the arguments do not fit, rather than that the state does not.
_MISFIT = frozenset({"raised TypeError", "raised AttributeError", "raised NotImplementedError"})
_CALLS_KEPT = 3
#: Other methods that may bring the object into a state worth trying.
_OTHERS_MAX = 12


class NoWayError(Exception):
    """Nothing can be tried; the message says why."""


@dataclass(frozen=True, slots=True)
class _Probe:
    """What one call does to a new object, alone."""

    text: Text
    fits: bool
    raises: bool
    changes: bool


def find_ways(candidate: Candidate, owner: Any, known: Known, world: World) -> Ways:
    """Return how to build the object and how to call it, or say why nothing can be tried."""
    fresh = candidate.module if _keeps_shared_state(candidate, owner) else None
    ground = _Ground(Text("None"), fresh, world, known)
    ground = _with_subject(candidate, owner, ground)
    target = f"{candidate.module}:{candidate.owner or ''}"
    calls: list[tuple[Text, ...]] = []
    changes: list[Text] = []
    reasons: list[str] = []
    for name in (*candidate.calls, *_others(owner, candidate.calls)):
        try:
            probes = _probes(name, owner, target, ground)
        except (NoWayError, OutOfReachError) as reason:
            if name in candidate.calls:
                reasons.append(str(reason))
            continue
        changes += [probe.text for probe in probes if probe.changes and not probe.raises][:2]
        if name in candidate.calls:
            calls.append(tuple(probe.text for probe in probes))
    if not calls:
        raise NoWayError("; ".join(dict.fromkeys(reasons)) or "it has no call that can be tried")
    return Ways(ground.subject, tuple(calls), tuple(changes), ground.fresh)


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where a call is tried out."""

    subject: Text
    fresh: str | None
    world: World
    known: Known

    def stage(self, *calls: Text) -> Stage:
        texts = (self.subject, *calls)
        trial = Trial(
            imports=tuple(sorted(frozenset().union(*(one.imports for one in texts)))),
            subject=self.subject.text,
            calls=tuple(one.text for one in calls),
            fresh_module=self.fresh,
        )
        return Stage(play_of(trial), self.world)


def _with_subject(candidate: Candidate, owner: Any, ground: _Ground) -> _Ground:
    """Return the ground with the first way to have the object that works."""
    reasons = []
    for subject in _subjects(candidate, owner, ground.known):
        there = replace(ground, subject=subject)
        if subject.text.startswith(f"{candidate.module}."):
            # The one that the module keeps: it is new when the module is imported anew.
            there = replace(there, fresh=candidate.module)
        built = False
        try:
            for _ in range(2):
                there.stage(Text("None")).run(in_order([0]), whole=True)
                built = True
        except OutOfReachError as reason:
            raise NoWayError(str(reason)) from reason
        except Abandoned:
            reasons.append(f"`{subject.text}` starts a thread of its own")
        except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the user's code raises
            how = "raises the second time" if built else "raises"
            reasons.append(f"`{subject.text}` {how} {type(error).__name__}: {error}")
        else:
            return there
    raise NoWayError(f"it cannot be built: {reasons[0] if reasons else 'nothing is known of it'}")


def _subjects(candidate: Candidate, owner: Any, known: Known) -> Iterator[Text]:
    if isinstance(owner, ModuleType):
        yield from constructions_of(owner)
        return
    name = name_of(owner)
    if all(_of_class(owner, call) for call in candidate.calls):
        yield name
    yield from known.constructions(f"{candidate.module}:{candidate.owner}", name)
    yield from constructions_of(owner)
    for variable, value in vars(sys.modules[candidate.module]).items():
        if isinstance(value, owner):
            whole = f"{candidate.module}.{variable}"
            yield Text(whole, frozenset({f"import {candidate.module}"}))
    if any(_of_class(owner, call) for call in candidate.calls):
        yield name


def _of_class(owner: type, call: str) -> bool:
    found = inspect.getattr_static(owner, call, None)
    return call in {"__new__", "__init__"} or isinstance(found, staticmethod | classmethod)


def _others(owner: Any, calls: Sequence[str]) -> list[str]:
    """Return further public methods: one of them may bring the object into a telling state."""
    names = [
        name
        for name, value in vars(owner).items()
        if (not name.startswith("_") or (name == "__enter__" and "__exit__" in calls))
        and inspect.isfunction(value)
        and name not in calls
    ]
    return names[:_OTHERS_MAX]


def _probes(name: str, owner: Any, target: str, ground: _Ground) -> list[_Probe]:
    """Try the ways to make a call, each alone; return those that fit, the best first."""
    call = calls_of(owner, name, ground.known.calls(target, name))
    if isinstance(call, str):
        raise NoWayError(call)
    found = [probe for text in call.texts if (probe := _probe(text, ground)) is not None]
    if not found:
        reason = f"`{name}` does not end, even alone"
        raise NoWayError(reason)
    found.sort(key=lambda probe: (not probe.fits, probe.raises))
    fitting = [probe for probe in found if probe.fits]
    return (fitting or found[:1])[:_CALLS_KEPT]


def _probe(text: Text, ground: _Ground) -> _Probe | None:
    stage = ground.stage(text)
    ran, seen = stage.run(in_order([0]), whole=True)
    if ran.ended is Ended.HUNG:
        return None
    if seen is None:
        return _Probe(text, fits=True, raises=True, changes=False)
    _, before = stage.run(in_order([0]), whole=True, without={0})
    gave = seen.outcome.calls[0]
    return _Probe(
        text,
        fits=gave not in _MISFIT,
        raises=gave.startswith("raised"),
        changes=before is not None and before.loose_state != seen.loose_state,
    )


def _keeps_shared_state(candidate: Candidate, owner: Any) -> bool:
    """Say whether objects share state through their class or module: that has to be made anew."""
    if isinstance(owner, ModuleType):
        return True
    module = sys.modules[candidate.module]
    kinds = [kind for kind in owner.__mro__ if kind.__module__ == module.__name__]
    own = {name for kind in kinds for name in vars(kind)}
    used = {
        name
        for value in vars(owner).values()
        if (code := getattr(inspect.unwrap(_function(value)), "__code__", None)) is not None
        for name in code.co_names
    }
    for name, value in shared_by_module(module).items():
        last = name.rpartition(".")[2]
        mutable = not isinstance(value, str | bytes | int | float | tuple | frozenset)
        if last in candidate.state and (last in own or "." not in name):
            return True
        if mutable and (last in own if "." in name else last in used):
            return True
    return False


def _function(value: Any) -> Any:
    return getattr(value, "__func__", None) or getattr(value, "fget", None) or value
