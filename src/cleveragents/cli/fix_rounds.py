"""Further rounds of `cleveragents fix`: fixers look again at what others made of the tree."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.fixers.fixing import run_fixer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.infrastructure.fixers import Fixer
    from cleveragents.runs import WorkspaceBenches

#: Fixers that still change something then undo each other's work, and would for ever.
ROUNDS_MAX: Final = 3
_AT_ONCE_MAX: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of a round: files that each fixer changed, and why others could not."""

    number: int
    changed: dict[str, int]
    #: In each other's way: what they made is left out, and another round may do it.
    in_the_way: tuple[str, ...] = ()
    failed: dict[str, str]

    @property
    def is_quiet(self) -> bool:
        """Say whether there is nothing left to do."""
        return not self.changed and not self.in_the_way


def look_again(
    benches: WorkspaceBenches, plan_id: str, fixers: Sequence[Fixer], number: int
) -> Round:
    """Run fixers at once on the plan's tree, and merge what they change in declared order."""
    stop = StopSignal()

    def changeset(fixer: Fixer) -> str | SandboxError | None:
        node = f"{fixer.name}-{number}"
        bench = benches.open(plan_id, node, 1, actor=f"command:{fixer.argv[0]}"[:200])
        try:
            run_fixer(fixer, bench, stop)
            return bench.seal()
        except SandboxError as error:
            return error
        finally:
            bench.close()

    with ThreadPoolExecutor(_AT_ONCE_MAX, thread_name_prefix="ca-fix") as pool:
        try:
            # All of them are over before the first is merged: they saw the same tree.
            made = list(pool.map(changeset, fixers))
        except BaseException:
            stop.stop("the round was broken off")
            raise
    return _merged(benches, number, dict(zip((one.name for one in fixers), made, strict=True)))


def _merged(
    benches: WorkspaceBenches, number: int, made: dict[str, str | SandboxError | None]
) -> Round:
    changed: dict[str, int] = {}
    in_the_way = []
    for name, changeset in made.items():
        if not isinstance(changeset, str):
            continue
        files = len(benches.paths(changeset))
        if not files:
            benches.reject(changeset)
        elif benches.merge(changeset).conflicts:
            benches.reject(changeset)
            in_the_way.append(name)
        else:
            changed[name] = files
    failed = {name: one.message for name, one in made.items() if isinstance(one, SandboxError)}
    return Round(number=number, changed=changed, in_the_way=tuple(in_the_way), failed=failed)
