"""The grammar of the commands that run plans and show them; like `grammar`, it imports nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # it has no other name
    #: Adds a command with its name, what it is about, and the module and function that run it.
    Add: TypeAlias = Callable[..., argparse.ArgumentParser]

_PLAN: dict[str, Any] = {"metavar": "PLAN", "help": "as `cleveragents list` shows it"}


def add_plan_commands(commands: Commands, add: Add) -> None:
    """Add `run` and all that is about runs."""
    _add_run(commands, add)
    resume = add(
        commands,
        "resume",
        "go on with a plan that was stopped, failed or died",
        run=("run", "resume"),
    )
    resume.add_argument("plan", nargs="?", metavar="PLAN", help="default: the only unfinished one")
    _add_budget(resume, "give it this budget from now on")
    _add_apply_mode(resume)
    _add("list", "show all plans", ("plans", "list_plans"), commands, add)
    status = _add("status", "show a plan, node by node", ("plans", "show_status"), commands, add)
    status.add_argument("plan", nargs="?", metavar="PLAN", help="default: all plans")
    watch = _add("watch", "follow a plan that runs elsewhere", ("watch", "watch"), commands, add)
    watch.add_argument("plan", nargs="?", metavar="PLAN", help="default: the one that runs")
    logs = _add("logs", "show what the actors of a plan told", ("watch", "logs"), commands, add)
    logs.add_argument("plan", **_PLAN)
    logs.add_argument("node", nargs="?", metavar="NODE", help="of this node only")
    logs.add_argument("--follow", action="store_true", help="go on until the plan ends")
    for name, about in (
        ("pause", "let a plan finish what runs, and stop; `resume` goes on"),
        ("cancel", "give a plan up; only `resume` with its name goes on with it"),
    ):
        stop = _add(name, about, ("plans", name), commands, add)
        stop.add_argument("plan", **_PLAN)
        stop.add_argument("--now", action="store_true", help="stop its attempts too")


def _add(
    name: str, about: str, run: tuple[str, str], commands: Commands, add: Add
) -> argparse.ArgumentParser:
    return add(commands, name, about, run=run)


def _add_run(commands: Commands, add: Add) -> None:
    run = add(commands, "run", "run a plan file, or plan a goal and run that", run=("run", "run"))
    run.add_argument("plan", metavar="PLAN.yaml|GOAL", help="the plan file, or a goal in words")
    goal = run.add_argument_group("for a goal in words, which a model makes a plan of")
    goal.add_argument("--model", metavar="NAME", help="who plans and works, as provider:model")
    goal.add_argument("--base-url", metavar="URL", help="where it is served, if elsewhere")
    goal.add_argument("--out", metavar="FILE", help="where to keep the plan file")
    run.add_argument("--at-once", type=int, metavar="N", help="nodes that run at once, 1 to 256")
    _add_budget(run, "what the plan may spend")
    run.add_argument("--deadline", type=float, metavar="S", help="seconds the whole plan may take")
    failing = run.add_mutually_exclusive_group()
    for flag, value, about in (
        ("--keep-going", "continue", "when a node has failed, go on with the rest"),
        ("--fail-fast", "stop", "when a node has failed, start nothing more"),
    ):
        failing.add_argument(flag, dest="on_failure", action="store_const", const=value, help=about)
    run.add_argument(
        "--set", action="append", metavar="NAME=VALUE", help="put a value into the plan"
    )
    _add_apply_mode(run)


def _add_budget(command: argparse.ArgumentParser, about: str) -> None:
    names = ("--budget", "--budget-usd-max")
    command.add_argument(*names, dest="budget_usd_max", metavar="USD", help=about)


def _add_apply_mode(command: argparse.ArgumentParser) -> None:
    applying = command.add_mutually_exclusive_group()
    applying.add_argument(
        "--apply",
        choices=("ask", "auto", "never"),
        help="put the changes into the tree: after a question, at once, or not",
    )
    applying.add_argument(
        "--yes", dest="apply", action="store_const", const="auto", help="the same as --apply auto"
    )
