"""A trial brought to life: its text compiled once, its object built anew for every run."""

from __future__ import annotations

import contextlib
import dis
import itertools
import threading
from collections.abc import Generator
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from frontrun._cooperative import get_context
from frontrun._deadlock import SchedulerAbort

from cleveragents.hunt.prove.snapshot import Snapshot
from cleveragents.hunt.prove.turns import Abandoned, Ended, Ran, Turn, run_turns
from cleveragents.hunt.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from cleveragents.hunt.prove.world import World

__all__ = ["OutOfReachError", "Play", "Seen", "Stage"]

#: A generator is read so far: it may have no end.
_ITEMS_MAX = 1_000
_TEXT_MAX = 2_000
#: What arguments of an unknown kind are made up of.
_PLAIN = (str, bytes, int, float, FunctionType)


@dataclass(frozen=True, slots=True)
class Play:
    """What a run acts on: made by `build`, acted on by each of `acts`, seen through `roots`."""

    build: Callable[[], Any]
    acts: tuple[Callable[[Any], Any], ...]
    #: The names and values of all that the calls share.
    roots: Callable[[Any], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a run that ended whole."""

    exact: str
    loose: str
    outcome: Outcome
    #: For each call: whether it said no by a `raise` of its own, or by False or None.
    said_no: tuple[bool, ...]
    #: For each call: whether an operation failed, as opposed to a `raise` that somebody wrote.
    broke: tuple[bool, ...]
    #: Whether a call asked a plain value for what it does not have: an argument does not fit.
    misfit: bool
    #: For each call: whether it called a function that it was given.
    called_back: tuple[bool, ...]
    #: The loose text in its parts.
    loose_state: str
    loose_calls: tuple[str, ...]
    #: The same, but for containers that the state holds: they are told by what they hold.
    contents: tuple[str, ...]


class _Result:
    """What one call gave; `made` stays False for a call that was left out."""

    def __init__(self) -> None:
        self.made = False
        self.value: object = None
        self.error: BaseException | None = None
        self.raised_itself = False
        self.kept: list[object] = []
        self.called_back = False
        self.ident = 0


class Stage:
    """Runs the calls of a play by plans, each time on a fresh object in the same world."""

    def __init__(self, play: Play, world: World) -> None:
        self._play = play
        self._world = world
        self.threads = len(play.acts)
        #: How many runs there were.
        self.runs = 0

    def run(
        self, plan: Sequence[Turn], *, whole: bool = False, without: AbstractSet[int] = frozenset()
    ) -> tuple[Ran, Seen | None]:
        """Run the calls by a plan; what was seen is None unless the run ended whole."""
        self.runs += 1
        results = [_Result() for _ in range(self.threads)]
        subject: list[Any] = []

        def prepare() -> list[Callable[[], None]]:
            with self._world.preparing():
                subject.append(self._play.build())
            return [
                _call(act, subject[0], result) if number not in without else _nothing
                for number, (act, result) in enumerate(zip(self._play.acts, results, strict=True))
            ]

        ran = run_turns(plan, self.threads, prepare, whole=whole)
        if self._world.own_thread:
            msg = "it starts threads of its own, which are out of reach"
            raise OutOfReachError(msg)
        if ran.ended is not Ended.WHOLE:
            return ran, None
        return ran, self._look(subject[0], results)

    def _look(self, subject: object, results: list[_Result]) -> Seen:
        threads = {result.ident: number for number, result in enumerate(results)}
        roots = self._play.roots(subject)
        exact = _texts(Snapshot(threads=threads), roots, results)
        blurred = Snapshot(loose=True, threads=threads)
        blurred.name_ids(result.value for result in results)
        loose = _texts(blurred, roots, results)
        shown = _texts(Snapshot(loose=True, threads=threads, by_content=True), roots, results)
        outcome = Outcome(calls=tuple(_short(one) for one in exact[1]), state=_short(exact[0]))
        return Seen(
            exact=repr(exact),
            loose=repr(loose),
            outcome=outcome,
            said_no=tuple(
                one.raised_itself or (one.error is None and one.value in _NO) for one in results
            ),
            broke=tuple(one.error is not None and not one.raised_itself for one in results),
            called_back=tuple(one.called_back for one in results),
            misfit=any(_is_misfit(one.error) for one in results),
            loose_state=loose[0],
            loose_calls=loose[1],
            contents=shown[1],
        )


class OutOfReachError(Exception):
    """The calls do something that cannot be tried here; the message says what."""


class _No:
    """Finds None and False by identity: `==` of a user's class may do anything."""

    def __contains__(self, value: object) -> bool:
        return value is None or value is False


_NO = _No()


def _texts(
    snapshot: Snapshot, roots: Mapping[str, object], results: Sequence[_Result]
) -> tuple[str, tuple[str, ...]]:
    state = ", ".join(
        f"{name + ' = ' if len(roots) > 1 else ''}{snapshot.state(name, value)}"
        for name, value in roots.items()
    )
    return state, tuple(_result_text(snapshot, *one) for one in enumerate(results))


def _result_text(snapshot: Snapshot, number: int, result: _Result) -> str:
    if not result.made:
        return "not made"
    if result.error is not None:
        text = f"raised {type(result.error).__name__}"
    else:
        text = f"returned {snapshot.result(f'result {number}', result.value)}"
    kept = [snapshot.result(f"argument of {number}", one) for one in result.kept]
    return f"{text}; arguments {', '.join(kept)}" if any(kept) else text


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"


def _nothing() -> None:
    """Do not make the call."""


def _call(act: Callable[[Any], Any], subject: Any, result: _Result) -> Callable[[], None]:
    def call() -> None:
        result.made = True
        result.ident = threading.get_ident()
        try:
            value = act(subject)
            result.value = _consumed(value)
        except (Abandoned, SchedulerAbort):
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it raises is its outcome
            result.error = error
            result.raised_itself = _by_raise(error)
            # The frames would keep alive what the call let go.
            error.__traceback__ = None
        result.kept = getattr(act, "kept", list)()
        result.called_back = getattr(act, "called_back", bool)()

    return call


def _consumed(value: object) -> object:
    """Run what is still to be run: a generator to its end, a block of `contextmanager` through."""
    if isinstance(value, Generator):
        items = []
        for item in itertools.islice(value, _ITEMS_MAX):
            items.append(item)
            _end_part()
        return items
    if isinstance(value, map | filter | zip):
        return list(itertools.islice(value, _ITEMS_MAX))
    if isinstance(value, contextlib._GeneratorContextManager):  # noqa: SLF001  # no public name
        with value as inner:
            _end_part()
            return inner
    return value


def _end_part() -> None:
    """Tell that the call gave the word back to its caller, who may take a while."""
    context = get_context()
    if context is not None:
        context[0].end_part(context[1])


def _is_misfit(error: BaseException | None) -> bool:
    return isinstance(error, AttributeError) and isinstance(error.obj, _PLAIN)


def _by_raise(error: BaseException) -> bool:
    """Say whether a `raise` of Python code gave the error, and not an operation that failed.

    A callback that divides by zero is one of ours: it fails as others do by a `raise`.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    if isinstance(error, ZeroDivisionError) and code.co_name == "<lambda>":
        return True
    return dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
