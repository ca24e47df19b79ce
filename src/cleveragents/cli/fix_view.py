"""What `cleveragents fix` shows: lines for people, or records for programs."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Protocol

from cleveragents.cli import output
from cleveragents.cli.table import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.cli.fix_run import Checked, FixerResult, FixReport
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.difference import Difference
    from cleveragents.infrastructure.fixers import Fixer, FoundCheck

_SIGNS: Final = {"merged": "✓", "unchanged": "·", "held back": "✗", "failed": "✗"}


class FixView(Protocol):
    """Shows a run of fixers, step by step."""

    def found(
        self, fixers: Sequence[Fixer], chosen: Sequence[Fixer], check: FoundCheck | None
    ) -> None:
        """Show what was found, why, and what of it will run."""
        ...

    def checked(self, when: str, checked: Checked) -> None:
        """Show what came of the check `before` or `after`."""
        ...

    def fixer(self, result: FixerResult) -> None:
        """Show what became of one fixer."""
        ...

    def difference(self, difference: Difference, *, whole: bool) -> None:
        """Show what would be applied."""
        ...

    def end(self, report: FixReport, files: int, applied: Applied | None) -> None:
        """Show how it ended, and how to go on."""
        ...


class TalkView:
    """Lines for people: the difference on stdout, all else on stderr."""

    def found(
        self, fixers: Sequence[Fixer], chosen: Sequence[Fixer], check: FoundCheck | None
    ) -> None:
        """Show a line for each fixer, and one for the check."""
        width = max((len(fixer.name) for fixer in fixers), default=0)
        for fixer in fixers:
            reason = _why_not(fixer, chosen)
            note = "" if reason is None else f"  not run: {reason}"
            output.talk(one_line(f"found  {fixer.name:<{width}}  {fixer.why}{note}"))
        output.talk(one_line(f"check  {_told_check(check)}"))

    def checked(self, when: str, checked: Checked) -> None:
        """Show what the tree as it is gives; what the merged one gives is said at the end."""
        if when == "before" and not checked.passes:
            says = "not run" if checked.exit_code is None else "red already, before any fixer"
            output.talk(f"warning: The check is {says}: {checked.says}")

    def fixer(self, result: FixerResult) -> None:
        """Show a line."""
        notes = [f"{counted(result.files):>9}"] if result.files else []
        if result.why:
            notes.append(f"{result.state}: {result.why}")
        elif not result.files:
            notes.append("no change")
        elif result.is_checked:
            notes.append("check passes")
        if result.attempts > 1:
            notes.append(f"(run again on what others made, attempt {result.attempts})")
        head = f"  {_SIGNS[result.state]} {result.name:<20}  {result.duration_s:6.1f} s"
        output.talk(one_line("  ".join((head, *notes))))

    def difference(self, difference: Difference, *, whole: bool) -> None:
        """Show the patch, or how many lines of which files."""
        output.raw(difference.patch() if whole else difference.summary())

    def end(self, report: FixReport, files: int, applied: Applied | None) -> None:
        """Say what is in the tree now, and give one command to go on with."""
        for one in report.fixers:
            if one.why and one.files:
                where = f"changes diff {report.plan_id} --changeset {one.changeset}"
                output.talk(f"left out  {one.name}: `cleveragents {where}` shows it")
        if not files:
            tidy = "Nothing to fix: the tree is tidy"
            output.talk(tidy if report.all_well else "Nothing was changed")
            return
        output.talk(f"check  {report.after.compared(report.before)}")
        if applied is not None:
            output.talk(f"Applied {counted(applied.files)} of plan `{report.plan_id}`")
            output.talk(f"\nhint: Run `cleveragents undo {applied.id}` to take it back")
        elif report.is_worse:
            output.talk("Nothing was applied: the fixers together break what worked before")
            output.talk("\nhint: Run `cleveragents fix --only NAME` with one fixer at a time")
        else:
            output.talk("Nothing was applied")
            output.talk(f"\nhint: Run `cleveragents changes apply {report.plan_id}` to apply it")


class RecordView:
    """Records on stdout, one for each thing that is shown."""

    def found(
        self, fixers: Sequence[Fixer], chosen: Sequence[Fixer], check: FoundCheck | None
    ) -> None:
        """Write each fixer and the check."""
        for fixer in fixers:
            told = {"name": fixer.name, "argv": fixer.argv, "why": fixer.why}
            output.record({"kind": "found", **told, "why_not": _why_not(fixer, chosen)})
        if check is not None:
            output.record({"kind": "found_check", **asdict(check)})

    def checked(self, when: str, checked: Checked) -> None:
        """Write what came of a check."""
        told = {"exit_code": checked.exit_code, "says": checked.says}
        output.record({"kind": "check", "when": when, **told})

    def fixer(self, result: FixerResult) -> None:
        """Write what became of a fixer."""
        output.record({"kind": "fixer", **asdict(result)})

    def difference(self, difference: Difference, *, whole: bool) -> None:  # noqa: ARG002  # a record has no patch
        """Write a record for each file."""
        for record in difference.records():
            output.record(record)

    def end(self, report: FixReport, files: int, applied: Applied | None) -> None:
        """Write how it ended."""
        told: dict[str, Any] = {"plan": report.plan_id, "files": files}
        output.record(
            {
                "kind": "fix",
                **told,
                "check": report.after.compared(report.before),
                "worse": report.is_worse,
                "applied": applied and applied.id,
            }
        )


def counted(files: int) -> str:
    """Return a number of files as people say it."""
    return "1 file" if files == 1 else f"{files} files"


def _why_not(fixer: Fixer, chosen: Sequence[Fixer]) -> str | None:
    if fixer in chosen:
        return None
    return fixer.why_not or f"only on request, by `--only {fixer.name}`"


def _told_check(check: FoundCheck | None) -> str:
    if check is None:
        return "not run: none was found; name one with `--check COMMAND`"
    if check.why_not is not None:
        return f"not run: {check.why_not} ({check.why})"
    return f"{shlex.join(check.argv)}  ({check.why})"
