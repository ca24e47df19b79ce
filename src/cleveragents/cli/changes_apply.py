"""`cleveragents changes apply|revert`: the user's tree is touched here, once, all or nothing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from cleveragents.cli import output
from cleveragents.cli.cautions import Cautions
from cleveragents.cli.changes import apply_record, counted, opened_for, selection_of
from cleveragents.cli.interrupted import tell_rescued
from cleveragents.cli.table import one_line
from cleveragents.domain.errors import RequestError
from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.changes.user_commits import UserCommits
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.plan_apply import PlanApply, Prospect
    from cleveragents.infrastructure.changes.user_commits import UserCommit
    from cleveragents.workspace import PlanChanges


def apply(options: Namespace) -> int:
    """Put a plan's changes, or a part of them, into the tree."""
    as_git = options.commit or options.branch is not None
    if options.commit and options.branch is not None:
        raise RequestError("`--commit` and `--branch` exclude each other: choose one")
    if options.message and not as_git:
        raise RequestError("`--message` needs `--commit` or `--branch`")
    plan = plain(options.plan)
    with opened_for("Plan", plan) as changes:
        prospect = changes.applies.prospect(plan, selection_of(options), take=options.take)
        commits = UserCommits(changes.repository)
        if as_git:
            commits.check(prospect, branch=options.branch)
        if not getattr(options, "warned", False):  # a run tells them itself, before it asks
            Cautions.of_changes(changes, plan, prospect.after, prospect.changes).tell()
        if options.commit and not options.dry_run and prospect.idle:
            _commit_left_over(changes, prospect, commits, options)
        elif options.dry_run or prospect.idle:
            _tell_prospect(changes, prospect, options)
        elif prospect.changes and options.branch:
            commit = commits.make(prospect, _message(options))
            commits.branch(options.branch, commit)
            _tell_commit(commit, f"branch `{options.branch}`", options)
        elif prospect.changes and options.commit:
            # Made before the tree is touched: what git refuses, it refuses now.
            commit = commits.make(prospect, _message(options))
            applied = changes.applies.carry_out(prospect, commit=commit.id)
            commits.commit(commit)
            _tell_commit(commit, "HEAD", options)
            _tell(applied, options)
        else:
            _tell(changes.applies.carry_out(prospect), options)
        _tell_left_out(changes, plan)
    return 0


def revert(options: Namespace) -> int:
    """Take an apply back: the one that is named, or the last one of a plan."""
    what = plain(options.what)
    with opened_for("Plan or apply", what) as changes:
        applies = changes.applies
        prospect = applies.revert_prospect(_named(applies, what), take=options.take)
        if options.dry_run:
            _tell_prospect(changes, prospect, options)
        else:
            _tell(applies.carry_out(prospect), options)
    return 0


def _commit_left_over(
    changes: PlanChanges, prospect: Prospect, commits: UserCommits, options: Namespace
) -> None:
    """Make the commit of an apply that died between its files and its commit."""
    done = changes.applies.applies(prospect.errand.plan_id)
    made = done[-1].commit if done else None
    commit = None if made is None else commits.left_over(made)
    if commit is None:
        _tell_prospect(changes, prospect, options)
        return
    commits.commit(commit)
    _tell_commit(commit, "HEAD", options)


def _named(applies: PlanApply, what: str) -> str:
    if any(one.id == what for one in applies.applies()):
        return what
    return applies.last_standing(what).id


def _message(options: Namespace) -> str:
    plan = one_line(plain(options.plan))
    return f"{options.message or f'Apply plan {plan}'}\n\nCleverAgents-Plan: {plan}\n"


def _tell_prospect(changes: PlanChanges, prospect: Prospect, options: Namespace) -> None:
    """Say what would be done, and that nothing was."""
    found = Difference(changes.repository, prospect.before, prospect.after)
    if options.json:
        for record in found.records():
            output.record({**record, "dry_run": True})
    else:
        output.raw(found.summary())
    if prospect.changes:
        output.talk("Nothing was changed: this is what would be")
    else:
        output.talk("Nothing to do: the tree is so already")


def _tell(applied: Applied | None, options: Namespace) -> None:
    assert applied is not None, "what is idle is told before"
    tell_rescued(applied.id, applied.rescued)
    if options.json:
        output.record(apply_record(applied))
        return
    word = {"apply": "Applied", "revert": "Reverted"}[applied.kind]
    so_already = "" if applied.files else ": the tree was so already"
    files = counted(applied.files, "file")
    output.talk(f"{word} {files} of plan `{one_line(applied.plan_id)}`{so_already}")
    output.talk(f"\nhint: Run `cleveragents changes revert {applied.id}` to take it back")


def _tell_left_out(changes: PlanChanges, plan: str) -> None:
    """Say what is no part of the plan yet, and so of nothing that is applied."""
    states = [one.state for one in changes.trees.merges(plan)]
    conflicted, sealed = states.count("conflicted"), states.count("sealed")
    if not conflicted + sealed:
        return
    told = counted(conflicted + sealed, "changeset")
    output.talk(f"\nLeft out: {told} ({conflicted} in conflict, {sealed} not merged yet)")
    verb = "conflicts" if conflicted else "show"
    output.talk(f"hint: Run `{shlex.join(['cleveragents', 'changes', verb, plan])}` to see them")


def _tell_commit(commit: UserCommit, where: str, options: Namespace) -> None:
    if options.json:
        output.record({"kind": "commit", "commit": commit.id, "where": where})
    else:
        files = counted(len(commit.paths), "file")
        output.talk(f"Committed {files} to {where} as {commit.id[:12]}")
