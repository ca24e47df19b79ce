"""The whole grammar of the command line; `run` names the module and function of each command.

Nothing but grammar is imported here, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cleveragents._version import __version__
from cleveragents.cli.context_grammar import add_context
from cleveragents.cli.hunt_grammar import add_hunt
from cleveragents.cli.plan_grammar import add_plan_commands

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # it has no other name

_ABOUT = "Run many AI actors on one codebase at once; every dollar, error and change accounted for."
_KINDS = "day, month, plan, session, actor, model or label"
_MOMENT = "a date or a date and time, such as 2026-11-15 or 2026-11-15T09:30"


def parser() -> argparse.ArgumentParser:
    """Return the grammar; what a user typed is checked by the command that it is for."""
    top = argparse.ArgumentParser(prog="cleveragents", description=_ABOUT, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"cleveragents {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_init(commands)
    _add_demo(commands)
    add_plan_commands(commands, _add)
    _add_diff_and_apply(commands)
    _add_fix(commands)
    add_hunt(commands, _add)
    _add_guard(commands)
    add_context(commands, _add)
    _add_costs(commands)
    _add_budget(commands)
    _add_errors(commands)
    _add_changes(commands)
    _add_undo(commands)
    _add_blame(commands)
    _add(commands, "verify", "check all books: money, errors, changes", run=("verify", "verify"))
    _add_audit(commands)
    _add(
        commands,
        "settings",
        "show every setting, its value and where it comes from",
        run=("settings", "show_settings"),
    )
    doctor = _add(commands, "doctor", "see what works on this machine", run=("doctor", "doctor"))
    doctor.add_argument(
        "--clean", action="store_true", help="instead, collect what processes left that died"
    )
    _add_completion(commands)
    return top


def _add_demo(commands: Commands) -> None:
    demo = _add(
        commands,
        "demo",
        "watch many actors edit one file, be killed and go on, without a key or a server",
        run=("demo", "demo"),
    )
    demo.description = (
        "Runs a plan in a temporary git repository: many actors edit one file at once under one "
        "budget, the process is killed in the middle and resumed, the changes are reviewed, "
        "applied and taken back; at the end the books are checked and shown."
    )
    demo.add_argument("--actors", type=int, default=12, metavar="N", help="8 to 64 (default: 12)")
    demo.add_argument(
        "--llm",
        action="store_true",
        help="instead, watch an agent fix a test, with a scripted model on this machine",
    )
    demo.add_argument("--keep", action="store_true", help="keep the repository, and say where")


def _add_fix(commands: Commands) -> None:
    fix = _add(
        commands,
        "fix",
        "run every fixer that this repository is configured for, at once and checked",
        run=("fix", "fix"),
    )
    fix.description = (
        "Finds formatters and linters that fix, from the files of the repository, and runs them "
        "at once in sandboxes, again until nothing changes. What breaks the check is held back; "
        "the rest is merged, shown, and applied as one, when you say so."
    )
    fix.add_argument("--only", action="append", metavar="NAME", help="this fixer; may be repeated")
    check = fix.add_mutually_exclusive_group()
    check.add_argument("--check", metavar="COMMAND", help="must pass; the tests, if they are found")
    check.add_argument("--no-check", action="store_true", help="run without a check")
    answer = fix.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="apply without a question")
    answer.add_argument("--dry-run", action="store_true", help="run and show, and apply nothing")
    fix.add_argument("--diff", action="store_true", help="show lines instead of counting them")


def _add_guard(commands: Commands) -> None:
    guard = _add(
        commands,
        "guard",
        "run any program on a copy of the tree, then decide about what it changed",
        run=("guard", "guard"),
    )
    guard.usage = "%(prog)s [options] -- PROGRAM [ARGUMENT ...]"
    guard.description = (
        "Runs a program, such as an agent of your own, in a sandbox: its output is shown as it "
        "comes, and your tree is not touched until you apply what it changed. A file or a pipe "
        "as standard input is passed on; a program that needs a terminal cannot be run."
    )
    guard.add_argument("program", nargs="+", metavar="PROGRAM", help="and its arguments, after --")
    guard.add_argument(
        "--budget-usd-max", metavar="USD", help="apply nothing if it tells that it spent more"
    )
    guard.add_argument(
        "--timeout", type=float, default=3600.0, metavar="SECONDS", help="default: 3600"
    )
    guard.add_argument(
        "--network",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="let it use the network",
    )
    guard.add_argument(
        "--unconfined",
        action="store_true",
        help="run it although nothing keeps it away from your other files",
    )
    guard.add_argument(
        "--env", action="append", metavar="NAME", help="let it see this variable of yours"
    )
    answer = guard.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="apply without a question")
    answer.add_argument("--discard", action="store_true", help="throw away what it changed")


def _add_costs(commands: Commands) -> None:
    costs = _add(
        commands,
        "costs",
        "show what was spent and promised, and what is left",
        run=("costs", "show_costs"),
    )
    costs.add_argument("--by", default="day", metavar="KIND", help=f"{_KINDS} (default: day)")
    corrections = costs.add_subparsers(metavar="[CORRECTION]")
    settle = _add(
        corrections,
        "settle",
        "say what an unconfirmed call was billed",
        run=("costs", "settle"),
        json=argparse.SUPPRESS,  # or it would overwrite a `--json` before the word `settle`
    )
    settle.add_argument(
        "id", metavar="ID", help="the reservation, as `cleveragents costs` lists it"
    )
    settle.add_argument("amount", metavar="AMOUNT", help="what was billed, in USD")
    release = _add(
        corrections,
        "release",
        "say that an unconfirmed call was not billed",
        run=("costs", "release"),
        json=argparse.SUPPRESS,
    )
    release.add_argument(
        "id", metavar="ID", help="the reservation, as `cleveragents costs` lists it"
    )


def _add_budget(commands: Commands) -> None:
    actions = _add_group(commands, "budget", "set, list and clear budgets")
    change = _add(
        actions, "set", "put a budget in force, for all processes", run=("budget", "set_budget")
    )
    change.add_argument("kind", metavar="KIND", help=_KINDS)
    change.add_argument("amount", metavar="AMOUNT", help="in USD, such as 5 or 0.25")
    change.add_argument(
        "--warn-at", metavar="SHARES", help="warn at these shares of it, such as 0.5,0.8"
    )
    clear = _add(actions, "clear", "lift a budget", run=("budget", "clear_budget"))
    clear.add_argument("kind", metavar="KIND", help=_KINDS)
    for command in (change, clear):
        command.add_argument("--name", help="of one scope; without it, each of its kind")
        command.add_argument("--soft", action="store_true", help="one that warns, not refuses")
    _add(actions, "list", "show the budgets in force", run=("budget", "list_budgets"))


def _add_errors(commands: Commands) -> None:
    errors = _add(
        commands,
        "errors",
        "show what failed, how often, and what was decided",
        run=("errors", "show_errors"),
    )
    errors.add_argument("--plan", metavar="PLAN", help="errors of this plan only")


def _add_changes(commands: Commands) -> None:
    actions = _add_group(commands, "changes", "review, apply and revert what plans changed")
    show = _add(actions, "show", "list plans, or the changesets of one", run=("changes", "show"))
    show.add_argument("plan", nargs="?", metavar="PLAN", help="its changesets and applies")
    _add_diff_and_apply(actions)
    revert = _add(actions, "revert", "take an apply back", run=("changes_apply", "revert"))
    revert.add_argument("what", metavar="PLAN|APPLY", help="the last apply of a plan, or this one")
    _add_prospect(revert)
    _add_conflicts(actions)


def _add_diff_and_apply(actions: Commands) -> None:
    """Add both under `changes`, and as the short forms that most people type."""
    diff = _add(actions, "diff", "show what a plan changed", run=("changes", "diff"))
    diff.add_argument("--changeset", metavar="ID", help="of one attempt only, as it was made")
    diff.add_argument("--stat", action="store_true", help="count lines instead of showing them")
    diff.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto: on a terminal"
    )
    apply = _add(
        actions, "apply", "put a plan's changes into the tree", run=("changes_apply", "apply")
    )
    as_git = apply.add_argument_group("as git (index and HEAD are not touched otherwise)")
    as_git.add_argument("--commit", action="store_true", help="and commit exactly these files")
    as_git.add_argument("--branch", metavar="NAME", help="only as a commit on a new branch")
    as_git.add_argument("--message", metavar="TEXT", help="of the commit")
    for command in (diff, apply):
        command.add_argument("plan", metavar="PLAN", help="as `cleveragents changes show` lists it")
        command.add_argument(
            "--actor", action="append", metavar="ACTOR", help="changes of this one; may be repeated"
        )
        command.add_argument(
            "--path",
            action="append",
            metavar="PATH",
            help="a file, a folder or a pattern, from the root of the tree; may be repeated",
        )
    _add_prospect(apply)


def _add_prospect(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="only say what would happen")
    command.add_argument(
        "--take", choices=("mine", "plan"), help="whose version, where both changed a place"
    )


def _add_conflicts(actions: Commands) -> None:
    conflicts = _add(
        actions, "conflicts", "show what needs a choice", run=("changes", "show_conflicts")
    )
    conflicts.add_argument("plan", nargs="?", metavar="PLAN", help="of this plan only")
    resolve = _add(actions, "resolve", "choose, in one conflict", run=("changes", "resolve"))
    resolve.add_argument(
        "conflict", metavar="CONFLICT", help="as `cleveragents changes conflicts` lists it"
    )
    resolve.add_argument(
        "--take",
        choices=("ours", "theirs"),
        help="what is in the plan's tree, or what came later",
    )
    resolve.add_argument("--with", dest="content", metavar="FILE", help="take this file's content")


def _add_audit(commands: Commands) -> None:
    actions = _add_group(commands, "audit", "show and verify the trail of everything that happened")
    show = _add(actions, "show", "show events, oldest first", run=("audit", "show_events"))
    show.add_argument("--plan", metavar="PLAN", help="events of this plan")
    show.add_argument("--actor", metavar="ACTOR", help="events of this actor")
    show.add_argument("--kind", metavar="KIND", help="such as `money` or `money.settled`")
    show.add_argument("--since", metavar="TIME", help=_MOMENT)
    show.add_argument("--until", metavar="TIME", help="likewise; a date means to its end")
    show.add_argument("--limit", type=int, metavar="N", help="the last N of them")
    _add(
        actions,
        "verify",
        "check that no event was changed and that all money adds up",
        run=("audit", "verify"),
    )
    _add(
        actions,
        "rebuild",
        "make the balances anew from the entries of money",
        run=("audit", "rebuild"),
    )


def _add_init(commands: Commands) -> None:
    init = _add(
        commands, "init", "write a first plan to edit, and the state folder", run=("init", "init")
    )
    init.add_argument("--force", action="store_true", help="replace a `plan.yaml` that is there")
    init.add_argument(
        "--template",
        choices=("commands", "agents", "model"),
        default="commands",
        help="what the plan works with (default: commands, which need no key)",
    )
    init.add_argument(
        "--schema", action="store_true", help="only print the JSON Schema of plan files"
    )


def _add_undo(commands: Commands) -> None:
    undo = _add(
        commands,
        "undo",
        "take back what was applied last, or one actor's part",
        run=("undo", "undo"),
    )
    undo.description = (
        "Takes back the last apply of the tree, of a plan, or the one that is named; edits that "
        "were made since elsewhere stay. An undo has an id, and can be undone by it."
    )
    undo.add_argument("what", nargs="?", metavar="PLAN|APPLY")
    undo.add_argument("--actor", metavar="NAME", help="only what this actor or node did")
    undo.add_argument("--dry-run", action="store_true", help="only say what would happen")
    undo.add_argument(
        "--take", choices=("mine", "plan"), help="whose version, where a place was edited since"
    )


def _add_blame(commands: Commands) -> None:
    blame = _add(
        commands, "blame", "show who wrote each line, why and for how much", run=("blame", "blame")
    )
    blame.add_argument("file", metavar="FILE[:LINE]", help="a file, or all about one line of it")


def _add_completion(commands: Commands) -> None:
    completion = _add(
        commands,
        "completion",
        "print what a shell needs to complete commands",
        run=("completion", "completion"),
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _add_group(commands: Commands, name: str, about: str) -> Commands:
    group = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    return group.add_subparsers(metavar="ACTION", required=True)


def _add(
    commands: Commands, name: str, about: str, *, run: tuple[str, str], json: Any = False
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    command.add_argument("--json", action="store_true", default=json, help="JSON on stdout")
    command.set_defaults(run=run)
    return command
