"""`cleveragents fix`: every fixer that the repository is configured for, at once and checked."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cleveragents.cli import output, state
from cleveragents.cli.fix_run import FixRun
from cleveragents.cli.fix_view import FixEnd, RecordView, TalkView, counted
from cleveragents.cli.interrupted import tell_rescued
from cleveragents.domain.errors import ConflictError, RequestError
from cleveragents.domain.plan_actors import shell_word
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.fixers import found_check, found_fixers, given_check
from cleveragents.infrastructure.fixers.fix_plan import chosen_fixers
from cleveragents.infrastructure.fixers.fixer import FoundCheck
from cleveragents.settings import load
from cleveragents.workspace import Workspace, WorkspaceOptions

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from cleveragents.cli.fix_run import FixReport
    from cleveragents.cli.fix_view import FixView
    from cleveragents.domain.event import Notice
    from cleveragents.infrastructure.sandbox.confinement import Confinement
    from cleveragents.workspace import PlanChanges

_NOT_WANTED = FoundCheck((), "`--no-check`", "it is not wanted")


def fix(options: Namespace) -> int:
    """Run what was found in sandboxes, show what it makes of the tree, and apply it if wanted."""
    view = _view_of(options)
    found = found_fixers(state.root())
    chosen = chosen_fixers(found, options.only or ())
    check = check_of(options)
    view.found(found, chosen, check)
    if not chosen:
        output.talk("No fixer that this repository is configured for can run here")
        output.talk(
            "\nhint: Install one that is named above, or configure one, such as `[tool.ruff]`"
        )
        return 0
    argv = check.argv if check is not None and check.why_not is None else None
    with opened_workspace() as workspace:
        try:
            report = FixRun(workspace, argv, view).go(chosen)
        except KeyboardInterrupt:
            output.talk("interrupted: nothing was applied")
            raise
        end = _end(workspace.changes, report, options, is_judged=_is_judged(check, report))
        view.end(report, end)
    if end.is_unjudged:
        return ConflictError.exit_code
    return 0 if report.all_well else 1


def _view_of(options: Namespace) -> FixView:
    return RecordView() if options.json else TalkView()


@contextmanager
def opened_workspace(confinement: Confinement | None = None) -> Iterator[Workspace]:
    """Give the tree around here with sandboxes for it, on the store of this tree."""
    settings = load()[0]
    kept_apart = WorkspaceOptions(
        sandbox_kind=settings.sandbox_kind,
        confinement=confinement or settings.confinement,
        on_notice=_tell_notice,
    )
    with (
        state.writing() as store,
        Workspace(state.root(), store, kept_apart) as workspace,
    ):
        # What a killed run left is in the store before anything new begins.
        workspace.collect_garbage()
        yield workspace


def is_interactive() -> bool:
    """Say whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answer_to(question: str) -> str:
    """Ask once; no answer is an empty one."""
    output.talk(question)
    return sys.stdin.readline().strip().lower()


def check_of(options: Namespace) -> FoundCheck | None:
    """Return the check that is wanted: a given one, the tests that are found, or none."""
    if options.no_check:
        return _NOT_WANTED
    if options.check is None:
        return found_check(state.root())
    return given_check(state.root(), words_of("--check", options.check))


def words_of(flag: str, command: str) -> tuple[str, ...]:
    """Return a command that a person wrote as its words; refuse what only a shell understands."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise RequestError(
            f"`{flag}` must be a command, got {command!r}: {str(error).lower()}"
        ) from None
    if (word := shell_word(command)) is not None:
        in_shell = shlex.quote(shlex.join(("sh", "-c", command)))
        raise RequestError(
            f"`{flag}` holds `{word}`, which only a shell understands",
            hint=f"Let a shell read it: `{flag} {in_shell}`",
        )
    if not words:
        hint = "Use `--no-check` to run without one" if flag == "--check" else None
        raise RequestError(f"`{flag}` must be a command, got none", hint=hint)
    return tuple(words)


def _is_judged(check: FoundCheck | None, report: FixReport) -> bool:
    """Say whether a check passed on the result, or there is none that could have."""
    return check is None or check is _NOT_WANTED or report.after.passes


def _end(changes: PlanChanges, report: FixReport, options: Namespace, *, is_judged: bool) -> FixEnd:
    """Show what was made of the tree, and put it there if that is wanted."""
    prospect = changes.applies.prospect(report.plan_id)
    files = len(prospect.changes)
    if files:
        difference = Difference(changes.repository, prospect.before, prospect.after)
        _view_of(options).difference(difference, whole=options.diff)
    if not files or report.is_worse or (options.yes and not is_judged):
        return FixEnd(files, is_unjudged=bool(files and not report.is_worse and options.yes))
    if not _is_wanted(files, options):
        return FixEnd(files)
    applied = changes.applies.carry_out(prospect)
    if applied is not None:
        tell_rescued(applied.id, applied.rescued)
    return FixEnd(files, applied)


def _is_wanted(files: int, options: Namespace) -> bool:
    if options.yes or options.dry_run:
        return bool(options.yes)
    if options.json or not is_interactive():
        return False
    return answer_to(f"Apply {counted(files)}? [y/N]") in {"y", "yes"}


def _tell_notice(notice: Notice) -> None:
    output.talk(f"warning[{notice.code}]: {output.one_line(notice.message)}")
