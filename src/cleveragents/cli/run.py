"""`cleveragents run|resume`: plans from their first node to the question whether to apply."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.actors.llm.planner import is_planning
from cleveragents.application.run_journal import PlanState
from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of
from cleveragents.cli.live_view import LiveView
from cleveragents.cli.plain_view import JsonView, PlainView
from cleveragents.cli.plan_overrides import overridden
from cleveragents.cli.question import confirmed, person_is_there
from cleveragents.cli.run_desk import RunDesk
from cleveragents.cli.run_end import RunEnd
from cleveragents.cli.run_lines import header
from cleveragents.cli.stored_plans import UNFINISHED, reading_plan, reading_plans
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import ApplyMode
from cleveragents.domain.wording import counted
from cleveragents.hunt.hunt_plan import is_hunt
from cleveragents.infrastructure.plan_files import load_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.attempts import Actor
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.cli.plain_view import View


#: How the first line of a file begins that a model planned; the id of its planning follows.
PLANNED_AS: Final = "# Planned as "
_PLANNED: Final = re.compile(rf"{PLANNED_AS}(p-[0-9a-f]{{8}})\b")


def run(options: Namespace) -> int:
    """Run a plan file, or let a model make a plan of a goal and run that."""
    if _is_goal(options.plan):
        from cleveragents.cli.strategize import strategize

        return strategize(options)
    given = {"--model": options.model, "--base-url": options.base_url, "--out": options.out}
    for flag in (flag for flag, value in given.items() if value is not None):
        raise RequestError(
            f"`{flag}` is for a goal in words, and `{options.plan}` is a plan file",
            hint="Name models in the plan file itself, or write the goal in quotes",
        )
    return run_file(Path(options.plan), options)


def run_file(path: Path, options: Namespace) -> int:
    """Run a plan file; nothing is started before all of it is known to be right."""
    loaded = load_plan(path)
    plan = overridden(loaded.plan, options)
    budget = None if plan.budget is None else plan.budget.max_usd
    folder = path.absolute().parent
    with desk_for(folder, options) as desk:
        desk.check(plan)
        plan_id = desk.runs.add(plan, folder=_kept_folder(folder), session=_session(loaded.text))
        model = RunModel(plan_id, plan, budget=budget)
        end = lived_through(desk, lambda: desk.runs.resume(plan_id), model, options)
    return _concluded(end, plan.apply, options)


def resume(options: Namespace) -> int:
    """Go on with a plan: the one that is named, or the only one that is not finished."""
    budget = None if options.budget_usd_max is None else amount_of(options.budget_usd_max)
    plan_id = options.plan or _only_unfinished()
    if plan_id is None:
        return state.nothing(
            "No plan to go on with", "Run `cleveragents list` to see all, or `cleveragents run`"
        )
    with reading_plan(plan_id) as plans:
        model = plans.model(plan_id, with_past=True)
        folder = plans.get(plan_id).folder
    if budget is not None:
        model.budget = budget
    if is_planning(model.plan):
        from cleveragents.cli.strategize import go_on

        return go_on(model, options, budget)
    if is_hunt(model.plan):
        from cleveragents.cli import hunt

        return hunt.go_on(model, options)
    with desk_for(Path.cwd() if folder is None else state.root() / folder, options) as desk:
        desk.check(model.plan, model.kept)

        def start() -> RunResult:
            return desk.runs.resume(plan_id, budget_usd_max=budget)

        end = lived_through(desk, start, model, options)
    return _concluded(end, ApplyMode(options.apply or model.plan.apply), options)


def _session(text: str) -> str | None:
    """Return the session that a planned file goes on with, so that one bill shows both."""
    found = _PLANNED.match(text)
    return None if found is None else found[1]


def view_of(model: RunModel, *, as_json: bool) -> View:
    """Return the view that fits: records, a live one on a terminal, or plain lines."""
    if as_json:
        return JsonView(model)
    can_move = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return LiveView(model) if can_move else PlainView(model)


def desk_for(
    modules: Path, options: Namespace, wrap: Callable[[Actor], Actor] | None = None
) -> RunDesk:
    """Return the desk of a run; the person at the terminal is asked, unless records are wanted."""
    return RunDesk(modules, with_person=person_is_there() and not options.json, wrap=wrap)


def _is_goal(text: str) -> bool:
    """Say whether what stands in the place of a plan file is a goal in words."""
    return not text.endswith((".yaml", ".yml", ".py")) and not os.path.lexists(text)


def _kept_folder(folder: Path) -> str:
    """Return the folder of a plan file as `resume` finds it again, also in a tree that moved."""
    root = state.root()
    return str(folder.relative_to(root) if folder.is_relative_to(root) else folder)


def _only_unfinished() -> str | None:
    with reading_plans() as plans:
        known = () if plans is None else plans.all()
        found = [one.id for one in known if plans is not None and plans.state_of(one) in UNFINISHED]
    if len(found) > 1:
        raise RequestError(
            f"{len(found)} plans are not finished; name the one to go on with",
            facts={"plans": ", ".join(found[-10:])},
            hint=f"Run `{shlex.join(['cleveragents', 'resume', found[-1]])}`",
        )
    return found[0] if found else None


def lived_through(
    desk: RunDesk, start: Callable[[], RunResult], model: RunModel, options: Namespace
) -> RunEnd:
    """Show a run from its beginning to its end."""
    if not options.json:
        output.talk(header(model))
    result = desk.follow(start, view_of(model, as_json=options.json))
    # By the books: no event tells of promises of dead processes that ran out meanwhile.
    model.spent = desk.runs.tracker.balance("plan", result.plan_id).spent
    return RunEnd.of(result, model, desk.workspace.changes)


def _concluded(end: RunEnd, mode: ApplyMode, options: Namespace) -> int:
    """Tell how a run ended, and see to its changes."""
    if options.json:
        output.record(end.record())
    else:
        end.tell()
    if end.result.state is not PlanState.DONE or not end.files:
        return end.exit_code
    if mode is ApplyMode.ASK and not options.json and person_is_there():
        output.raw(end.summary)
        mode = ApplyMode.NEVER
        if confirmed(f"Apply {counted(end.files, 'file')} to your tree?"):
            mode = ApplyMode.AUTO
    if mode is ApplyMode.AUTO:
        return applied(end.result.plan_id, options)
    if not options.json:
        plan_id = shlex.quote(end.result.plan_id)
        output.talk(
            f"\nhint: Run `cleveragents diff {plan_id}` to review,"
            f" then `cleveragents apply {plan_id}`"
        )
    return end.exit_code


def applied(plan_id: str, options: Namespace) -> int:
    """Put the changes of a plan into the tree, as `cleveragents apply` does."""
    from cleveragents.cli.changes_apply import apply

    nothing = dict.fromkeys(("actor", "path", "branch", "message", "take"))
    flags = {"commit": False, "dry_run": False, "json": options.json, "warned": True}
    return apply(Namespace(plan=plan_id, **nothing, **flags))
