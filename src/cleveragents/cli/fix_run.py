"""One run of `cleveragents fix`: the check before, the fixers at once, the check of what they made.

Nothing here touches the user's tree: all of it happens in sandboxes, and is merged in the plan's.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.application.services.run_options import RunOptions
from cleveragents.cli.table import one_line
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.run_events import AttemptFailed, NodeFinished
from cleveragents.infrastructure.fixers import fix_plan
from cleveragents.runs import Runs, WorkspaceBenches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.cli.fix_view import FixView
    from cleveragents.domain.command import Finished
    from cleveragents.domain.run_events import RunEvent
    from cleveragents.infrastructure.fixers import Fixer
    from cleveragents.workspace import Workspace

#: As long as the check of a node may take.
_CHECK_S_MAX: Final = 300.0
#: How pytest names what failed, at the end of its output.
_FAILED_TEST: Final = re.compile(rb"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_PYTHON: Final = re.compile(r"^(py\.?test|python[\d.]*)$")
#: What `env` and shells answer for a program that is not there, or that is none.
_NOT_STARTED: Final = {126, 127}
_SAID_CHARS_MAX: Final = 200
_COLOR: Final = re.compile(rb"\x1b\[[0-9;]*m")
#: A check that does not pass, and a conflict that stays.
_HELD_BACK: Final = {"CA4203", "CA4101"}


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check; without an exit code it did not run, and says nothing."""

    exit_code: int | None
    says: str = ""
    failures: frozenset[str] = frozenset()

    @property
    def passes(self) -> bool:
        """Say whether it ran and was content."""
        return self.exit_code == 0

    def is_worse_than(self, before: Checked) -> bool:
        """Say whether something fails that did not before; what did may go on to.

        A check that passed and cannot run any more is worse: a fixer may have broken it.
        """
        if self.exit_code is None:
            return before.passes
        if self.passes:
            return False
        return before.exit_code in {0, None} or not self.failures <= before.failures

    def compared(self, before: Checked) -> str:
        """Say how it stands, in the light of how it stood."""
        if self.exit_code is None:
            return f"not run: {self.says}" if self.says else "not run"
        if self.passes:
            return "passes"
        if before.passes or before.exit_code is None:
            return f"fails: {self.says}"
        fresh = sorted(self.failures - before.failures)
        if fresh:
            return f"red before, and now also {', '.join(fresh[:3])}" + (
                f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""
            )
        return f"red before and after: {self.says}"


NOT_RUN: Final = Checked(None)


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
    before: Checked
    after: Checked

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
    """Runs fixers on a workspace, once, and shows what comes of them as it comes."""

    def __init__(self, workspace: Workspace, check: tuple[str, ...] | None, view: FixView) -> None:
        self.plan_id = f"fix-{uuid.uuid4().hex[:8]}"
        self._workspace = workspace
        self._benches = WorkspaceBenches(workspace)
        self._check = None if check is None else _in_place(check, workspace.changes.root)
        self._view = view
        self._is_gated = False
        self._faults: dict[str, AttemptFailed] = {}
        self._ended: dict[str, FixerResult] = {}

    def go(self, fixers: Sequence[Fixer]) -> FixReport:
        """Check, fix, merge, and check again."""
        before = self._checked("before")
        # A check that is red already cannot tell a good fixer from a bad one.
        self._is_gated = before.passes
        names = [fixer.name for fixer in fixers]
        plan = fix_plan(fixers, check=self._check if self._is_gated else None, only=names)
        with Runs(self._workspace, options=RunOptions(listener=self._hear)) as runs:
            runs.run(plan, self.plan_id)
        results = tuple(
            self._ended.get(name) or FixerResult(name=name, state="failed", why="It did not run")
            for name in names
        )
        after = self._after(results, before)
        return FixReport(plan_id=self.plan_id, fixers=results, before=before, after=after)

    def _after(self, results: Sequence[FixerResult], before: Checked) -> Checked:
        merged = [one for one in results if one.state == "merged"]
        if not merged:
            return before
        if len(merged) == 1 and self._is_gated:
            # The merged tree is that of the one fixer, which was checked already.
            return Checked(0)
        return self._checked("after")

    def _checked(self, when: str) -> Checked:
        """Run the check on the plan's tree as it is now."""
        if self._check is None:
            return NOT_RUN
        bench = self._benches.open(self.plan_id, f"check-{when}", 1, actor="check")
        command = Command(self._check, limits=CommandLimits(time_s=_CHECK_S_MAX))
        try:
            checked = _judged(bench.run(command))
        except SandboxError as error:
            checked = Checked(None, error.message)
        finally:
            bench.close()
        self._view.checked(when, checked)
        return checked

    def _hear(self, event: RunEvent) -> None:
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
        rows = self._workspace.changes.trees.merges(self.plan_id)
        about = (event.node, event.attempt)
        return next((row.changeset_id for row in rows if (row.node, row.attempt) == about), None)

    def _files(self, changeset: str | None) -> int:
        return 0 if changeset is None else len(self._benches.paths(changeset))


def _judged(finished: Finished) -> Checked:
    if finished.stopped is not None:
        return Checked(finished.exit_code or 1, f"it reached its limit of {finished.stopped}")
    if finished.exit_code in _NOT_STARTED:
        return Checked(None, f"exit code {finished.exit_code}, it could not be started")
    printed = _COLOR.sub(b"", finished.stdout + b"\n" + finished.stderr)
    last = printed.rstrip().rpartition(b"\n")[2].decode("utf-8", "replace")
    says = one_line(redact_to(last, _SAID_CHARS_MAX)) or f"exit code {finished.exit_code}"
    failures = {os.fsdecode(one) for one in _FAILED_TEST.findall(printed)}
    return Checked(finished.exit_code, says, frozenset(failures))


def _in_place(check: tuple[str, ...], root: Path) -> tuple[str, ...]:
    """Return a check that looks at the sandbox.

    A package that is installed in place is found in the user's tree, where nothing was changed:
    its tests would pass whatever the fixers did. So the sandbox's own sources come first.
    """
    if not _PYTHON.search(Path(check[0]).name):
        return check
    sources = "src" if (root / "src").is_dir() else "."
    return ("env", f"PYTHONPATH={sources}", "PYTHONDONTWRITEBYTECODE=1", *check)
