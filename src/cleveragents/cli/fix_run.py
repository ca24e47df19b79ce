"""One run of `cleveragents fix`: fixers at once beside the check, then the check of what they made.

Nothing here touches the user's tree: all of it happens in sandboxes, and is merged in the plan's.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cleveragents.application.services.run_options import RunOptions
from cleveragents.cli.fix_check import NOT_RUN, Checked, FixCheck
from cleveragents.cli.fix_rounds import ROUNDS_MAX, look_again
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.run_events import AttemptFailed, NodeFinished
from cleveragents.infrastructure.fixers import fix_plan
from cleveragents.runs import Runs, WorkspaceBenches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.cli.fix_rounds import Round
    from cleveragents.cli.fix_view import FixView
    from cleveragents.domain.run_events import RunEvent
    from cleveragents.infrastructure.fixers import Fixer
    from cleveragents.workspace import Workspace

#: A check that does not pass, and a conflict that stays.
_HELD_BACK: Final = {"CA4203", "CA4101"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixerResult:
    """What became of one fixer: `merged`, `unchanged`, `held back` or `failed`."""

    name: str
    state: str
    files: int = 0
    duration_s: float = 0.0
    attempts: int = 1
    #: Whether the check passed on this result alone.
    is_checked: bool = False
    why: str = ""
    changeset: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FixReport:
    """What a run of fixers made; the plan's tree holds all that was merged."""

    plan_id: str
    fixers: tuple[FixerResult, ...]
    before: Checked = NOT_RUN
    after: Checked = NOT_RUN
    #: How often the check was run in all, and how often the fixers looked at the tree.
    checks: int = 0
    rounds: int = 1
    #: Whether the last round changed nothing any more.
    is_settled: bool = True

    @property
    def is_worse(self) -> bool:
        """Say whether the merged result breaks what worked before."""
        return self.after.is_worse_than(self.before)

    @property
    def all_well(self) -> bool:
        """Say whether nothing failed and nothing had to be held back."""
        well = {"merged", "unchanged"}
        return not self.is_worse and all(one.state in well for one in self.fixers)


class FixRun:
    """Runs fixers on a workspace, once, and shows what comes of them as it comes.

    All that they change is merged and checked once. Only if that is red, each of them is run
    again with a check of its own, to name what breaks it and to keep the rest.
    """

    def __init__(self, workspace: Workspace, check: tuple[str, ...] | None, view: FixView) -> None:
        self._workspace = workspace
        self._benches = WorkspaceBenches(workspace)
        self._check = FixCheck(self._benches, check, workspace.changes.root)
        self._view = view

    def go(self, fixers: Sequence[Fixer]) -> FixReport:
        """Fix, merge and check; where that is red, find out whose work it is."""
        plan_id = _new_id()
        self._workspace.begin(plan_id)
        with self._check.beside(plan_id, "before") as verdict:
            results = self._pass(plan_id, fixers)
            before = verdict()
        self._show("before", before)
        report = FixReport(plan_id=plan_id, fixers=results, before=before, after=before)
        if _merged(results):
            report = self._settled(report, fixers)
            self._show("after", report.after)
        if before.passes and report.is_worse:
            self._view.isolates(report.after)
            report = self._isolated(before, fixers, _merged(results), report)
        return replace(report, checks=self._check.count)

    def _settled(self, report: FixReport, fixers: Sequence[Fixer]) -> FixReport:
        """Let fixers look again until nothing changes; the check runs beside the last look."""
        again = _others(fixers, _merged(report.fixers))
        while again and report.rounds < ROUNDS_MAX:
            with self._check.beside(report.plan_id, "after") as verdict:
                this = look_again(self._benches, report.plan_id, again, report.rounds + 1)
                self._view.round(this)
                results = tuple(_after_round(one, this) for one in report.fixers)
                report = replace(report, fixers=results, rounds=this.number)
                if this.is_quiet:
                    return replace(report, after=verdict())
            again = tuple(fixers)
        after = self._check.now(report.plan_id, "after")
        return replace(report, after=after, is_settled=not again)

    def _isolated(
        self, before: Checked, fixers: Sequence[Fixer], names: Sequence[str], first: FixReport
    ) -> FixReport:
        """Run those that changed something again, on a fresh tree, each with the check."""
        plan_id = _new_id()
        suspects = [fixer for fixer in fixers if fixer.name in names]
        gated = self._pass(plan_id, suspects, check=self._check.argv)
        self._check.count += len(gated)
        known = {one.name: one for one in gated}
        results = tuple(known.get(one.name, one) for one in first.fixers)
        merged = _merged(gated)
        # One alone was checked as it is; what several make together is known by nobody yet.
        after = before if len(merged) < 2 else self._check.now(plan_id, "after")
        if len(merged) > 1:
            self._show("after", after)
        return FixReport(plan_id=plan_id, fixers=results, before=before, after=after)

    def _pass(
        self, plan_id: str, fixers: Sequence[Fixer], check: tuple[str, ...] | None = None
    ) -> tuple[FixerResult, ...]:
        """Run a plan of fixers, each with a check if one is given, and merge what passes."""
        names = [fixer.name for fixer in fixers]
        heard = _Heard(self._workspace, self._benches, plan_id, self._view, check is not None)
        plan = fix_plan(fixers, check=check, only=names)
        with Runs(self._workspace, options=RunOptions(listener=heard.hear)) as runs:
            runs.run(plan, plan_id)
        return tuple(heard.result_of(name) for name in names)

    def _show(self, when: str, checked: Checked) -> None:
        if self._check.argv is not None:
            self._view.checked(when, checked)


class _Heard:
    """What the events of one plan of fixers tell; used by the thread that runs it."""

    def __init__(
        self,
        workspace: Workspace,
        benches: WorkspaceBenches,
        plan_id: str,
        view: FixView,
        is_gated: bool,  # noqa: FBT001  # a constructor of this file alone
    ) -> None:
        self._workspace = workspace
        self._benches = benches
        self._plan_id = plan_id
        self._view = view
        self._is_gated = is_gated
        self._faults: dict[str, AttemptFailed] = {}
        self._ended: dict[str, FixerResult] = {}

    def result_of(self, name: str) -> FixerResult:
        """Return what became of a fixer."""
        return self._ended.get(name) or FixerResult(name=name, state="failed", why="It did not run")

    def hear(self, event: RunEvent) -> None:
        """Take an event into account, and show a fixer that came to its end."""
        if isinstance(event, AttemptFailed):
            self._faults[event.node] = event
        elif isinstance(event, NodeFinished):
            done = event.state is NodeState.DONE
            result = self._done(event) if done else self._failed(event)
            self._ended[event.node] = result
            self._view.fixer(result)

    def _done(self, event: NodeFinished) -> FixerResult:
        files = self._files(event.changeset)
        return FixerResult(
            name=event.node,
            state="merged" if files else "unchanged",
            files=files,
            duration_s=event.duration_s,
            attempts=event.attempt,
            is_checked=self._is_gated,
            changeset=event.changeset,
        )

    def _failed(self, event: NodeFinished) -> FixerResult:
        fault = self._faults.get(event.node)
        changeset = self._rejected(event)
        return FixerResult(
            name=event.node,
            state="held back" if fault and fault.code in _HELD_BACK else "failed",
            files=self._files(changeset),
            duration_s=event.duration_s,
            attempts=event.attempt,
            why=fault.message if fault else f"It is {event.state}",
            changeset=changeset,
        )

    def _rejected(self, event: NodeFinished) -> str | None:
        """Return the changeset that an attempt made and that is kept out of the plan's tree."""
        rows = self._workspace.changes.trees.merges(self._plan_id)
        about = (event.node, event.attempt)
        return next((row.changeset_id for row in rows if (row.node, row.attempt) == about), None)

    def _files(self, changeset: str | None) -> int:
        return 0 if changeset is None else len(self._benches.paths(changeset))


def _new_id() -> str:
    return f"fix-{uuid.uuid4().hex[:8]}"


def _merged(results: Sequence[FixerResult]) -> tuple[str, ...]:
    return tuple(one.name for one in results if one.state == "merged")


def _others(fixers: Sequence[Fixer], merged: Sequence[str]) -> tuple[Fixer, ...]:
    """Return who has not seen what others changed: all, or all but the only one who did."""
    return tuple(one for one in fixers if len(merged) > 1 or one.name not in merged)


def _after_round(result: FixerResult, this: Round) -> FixerResult:
    files = this.changed.get(result.name)
    if files is not None and result.state == "unchanged":
        return replace(result, state="merged", files=files)
    why = this.failed.get(result.name)
    return result if why is None or result.why else replace(result, state="failed", why=why)
