"""A plan that runs fixers at once, each on the same tree and each with the check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.conditions import as_written, did_you_mean
from cleveragents.domain.error_record import SAME_AGAIN, Action, ErrorCategory
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.plan import (
    ApplyMode,
    Check,
    CommandActor,
    Defaults,
    Node,
    OnFailure,
    Plan,
    PythonActor,
    Recovery,
)
from cleveragents.infrastructure.fixers.fixing import FIX

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cleveragents.infrastructure.fixers.fixer import Fixer

GOAL: Final = "Run the fixers that this repository is configured for"


def chosen_fixers(fixers: Sequence[Fixer], only: Collection[str] = ()) -> tuple[Fixer, ...]:
    """Return those that shall run: all that can, or those that are asked for by name."""
    known = {fixer.name: fixer for fixer in fixers}
    for name in only:
        fixer = known.get(name)
        if fixer is None:
            names = ", ".join(known) or "none"
            raise RequestError(
                f"`--only` must name a fixer that was found: {names}, got {name!r}"
                f"{did_you_mean(name, known)}"
            )
        if fixer.why_not is not None:
            raise SetupError(
                f"The fixer `{name}` cannot run here: {fixer.why_not}",
                code="CA1006",
                facts={"fixer": name, "asked for by": fixer.why},
                hint="Install it where the tree or the `PATH` has it, then try again",
            )
    return tuple(
        fixer
        for fixer in fixers
        if fixer.runnable and (fixer.name in only if only else not fixer.on_request)
    )


def fix_plan(
    fixers: Sequence[Fixer], *, check: tuple[str, ...] | None = None, only: Collection[str] = ()
) -> Plan:
    """Return a plan with a node for each fixer, all at once on the same tree.

    A fixer whose result breaks the check is left out, and the others go on. One that conflicts
    with what others did is run again on the tree that they made.
    """
    chosen = chosen_fixers(fixers, only)
    # Each may be in the way of each other once.
    tries = min(100, max(3, len(chosen)))
    recovery = Recovery(
        cures={
            **dict.fromkeys(SAME_AGAIN, (Action.ABORT,)),
            ErrorCategory.CONFLICT: (Action.RETRY, Action.ABORT),
        },
        times_max={Action.RETRY: tries},
    )
    return Plan(
        name="fix",
        goal=GOAL,
        on_failure=OnFailure.CONTINUE,
        apply=ApplyMode.NEVER,
        defaults=Defaults(
            attempts_max=tries, check=None if check is None else Check(_literally(check))
        ),
        nodes=tuple(_node(fixer, recovery) for fixer in chosen),
    )


def _node(fixer: Fixer, recovery: Recovery) -> Node:
    argv = _literally(fixer.argv)
    if fixer.files is None and fixer.codes == (0,):
        return Node(name=fixer.name, actor=CommandActor(argv), recovery=recovery)
    files: Any = fixer.files and fixer.files.plain()
    inputs = {"argv": argv, "codes": fixer.codes, "files": as_written(files)}
    return Node(name=fixer.name, actor=PythonActor(FIX), inputs=inputs, recovery=recovery)


def _literally(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(as_written(word) for word in words)
