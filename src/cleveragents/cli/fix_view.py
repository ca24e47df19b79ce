"""What `cleveragents fix` shows: lines for people, or records for programs."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from cleveragents.cli import output
from cleveragents.cli.table import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.cli.fix_check import Checked
    from cleveragents.cli.fix_rounds import Round
    from cleveragents.cli.fix_run import FixerResult, FixReport
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.difference import Difference
    from cleveragents.infrastructure.fixers import Fixer, FoundCheck


@dataclass(frozen=True, slots=True)
class FixEnd:
    """What became of the result: how many files it has, and whether it is in the tree now."""

    files: int
    applied: Applied | None = None
    #: It was to be applied, and no check could say that it may.
    is_unjudged: bool = False


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

    def round(self, this: Round) -> None:
        """Show what came of a further round."""
        ...

    def isolates(self, checked: Checked) -> None:
        """Show that what is merged is red, and that each fixer is run again by itself."""
        ...

    def difference(self, difference: Difference, *, whole: bool) -> None:
        """Show what would be applied."""
        ...

    def end(self, report: FixReport, end: FixEnd) -> None:
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
            output.talk(one_line(f"warning: The check is {says}: {checked.says}"))

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

    def round(self, this: Round) -> None:
        """Show a line for each fixer that had more to do."""
        for name, files in this.changed.items():
            told = f"{counted(files):>9}  round {this.number}, on what others made"
            output.talk(one_line(f"  ✓ {name:<20}            {told}"))
        for name, why in this.failed.items():
            output.talk(one_line(f"  ✗ {name:<20}            failed in round {this.number}: {why}"))

    def isolates(self, checked: Checked) -> None:
        """Say what is looked for now."""
        says = one_line(checked.says)
        output.talk(f"check  fails on all of it together: {says}; each is run by itself now")

    def difference(self, difference: Difference, *, whole: bool) -> None:
        """Show the patch, or how many lines of which files."""
        output.raw(difference.patch() if whole else difference.summary())

    def end(self, report: FixReport, end: FixEnd) -> None:
        """Say what is in the tree now, and give one command to go on with."""
        for one in report.fixers:
            if one.why and one.files:
                where = f"changes diff {report.plan_id} --changeset {one.changeset}"
                output.talk(f"left out  {one.name}: `cleveragents {where}` shows it")
        if not end.files:
            tidy = "Nothing to fix: the tree is tidy"
            output.talk(tidy if report.all_well else "Nothing was changed")
            return
        times = f"  ({_times(report.checks)})" if report.checks else ""
        output.talk(one_line(f"check  {report.after.compared(report.before)}{times}"))
        if not report.is_settled:
            output.talk(
                f"warning: Fixers still undo each other's work after {report.rounds} rounds"
            )
        output.talk(_outcome(report, end))


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

    def round(self, this: Round) -> None:
        """Write what came of a round."""
        output.record({"kind": "round", **asdict(this)})

    def isolates(self, checked: Checked) -> None:
        """Write nothing: the check that leads to it was written, and so is each that follows."""

    def difference(self, difference: Difference, *, whole: bool) -> None:  # noqa: ARG002  # a record has no patch
        """Write a record for each file."""
        for record in difference.records():
            output.record(record)

    def end(self, report: FixReport, end: FixEnd) -> None:
        """Write how it ended."""
        told: dict[str, Any] = {"plan": report.plan_id, "files": end.files}
        output.record(
            {
                "kind": "fix",
                **told,
                "check": report.after.compared(report.before),
                "checks": report.checks,
                "rounds": report.rounds,
                "settled": report.is_settled,
                "worse": report.is_worse,
                "unjudged": end.is_unjudged,
                "applied": end.applied and end.applied.id,
            }
        )


def counted(files: int) -> str:
    """Return a number of files as people say it."""
    return "1 file" if files == 1 else f"{files} files"


def _times(checks: int) -> str:
    return "checked once" if checks == 1 else f"checked {checks} times"


def _outcome(report: FixReport, end: FixEnd) -> str:
    """Return what was done, and the one command that leads on."""
    if end.applied is not None:
        return (
            f"Applied {counted(end.applied.files)} of plan `{report.plan_id}`"
            f"\n\nhint: Run `cleveragents undo {end.applied.id}` to take it back"
        )
    if report.is_worse:
        return (
            "Nothing was applied: the fixers together break what worked before"
            f"\n\nhint: Run `cleveragents fix --only {shlex.quote(_first(report))}`"
            " to see what one of them does"
        )
    if end.is_unjudged:
        return (
            "Nothing was applied: the check was not green before any fixer ran, and is not now,"
            " so nothing can be called checked"
            "\n\nhint: Run `cleveragents fix --yes --no-check` to apply it unchecked, or name"
            " another check with `--check`"
        )
    apply = f"cleveragents changes apply {report.plan_id}"
    return f"Nothing was applied\n\nhint: Run `{apply}` to apply it"


def _first(report: FixReport) -> str:
    return next((one.name for one in report.fixers if one.files), report.fixers[0].name)


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
