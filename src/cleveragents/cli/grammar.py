"""The whole grammar of the command line; `run` names the module and function of each command.

Nothing else of ours is imported here, so that `--help` and `--version` answer at once.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cleveragents._version import __version__

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
    _add_demo(commands)
    _add_costs(commands)
    _add_budget(commands)
    _add_errors(commands)
    _add_audit(commands)
    _add(
        commands,
        "settings",
        "show every setting, its value and where it comes from",
        run=("settings", "show_settings"),
    )
    return top


def _add_demo(commands: Commands) -> None:
    demo = _add(
        commands,
        "demo",
        "watch many actors share one budget, without a key or a server",
        run=("demo", "demo"),
    )
    demo.description = (
        "Twenty scripted actors at once spend, fail, look for context and change files "
        "in a temporary git repository; at the end the books are checked and shown."
    )
    demo.add_argument("--actors", type=int, default=20, metavar="N", help="1 to 256 (default: 20)")
    demo.add_argument("--seed", type=int, default=7, metavar="N", help="script of the actors")
    demo.add_argument("--budget-usd-max", default="0.60", metavar="USD", help="default: 0.60")


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
