"""`cleveragents run|resume`: plans from their first node to the question whether to apply."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from cleveragents.application.run_journal import PlanState
from cleveragents.cli import output, state
from cleveragents.cli.arguments import amount_of
from cleveragents.cli.live_view import LiveView
from cleveragents.cli.plain_view import JsonView, PlainView
from cleveragents.cli.plan_overrides import overridden
from cleveragents.cli.question import confirmed, person_is_there
from cleveragents.cli.run_desk import RunDesk
from cleveragents.cli.run_end import RunEnd
from cleveragents.cli.run_lines import counted, header
from cleveragents.cli.stored_plans import UNFINISHED, reading_plan, reading_plans
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import ApplyMode
from cleveragents.infrastructure.plan_files import load_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.services.run_result import RunResult
    from cleveragents.cli.plain_view import View


def run(options: Namespace) -> int:
    """Run a plan file; nothing is started before all of it is known to be right."""
    plan = overridden(load_plan(options.plan).plan, options)
    budget = None if plan.budget is None else plan.budget.max_usd
    with _desk(Path(options.plan).absolute().parent, options) as desk:
        desk.check(plan)
        plan_id = desk.runs.add(plan)
        model = RunModel(plan_id, plan, budget=budget)
        end = _lived_through(desk, lambda: desk.runs.resume(plan_id), model, options)
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
    if budget is not None:
        model.budget = budget
    with _desk(Path.cwd(), options) as desk:

        def start() -> RunResult:
            return desk.runs.resume(plan_id, budget_usd_max=budget)

        end = _lived_through(desk, start, model, options)
    return _concluded(end, ApplyMode(options.apply or model.plan.apply), options)


def view_of(model: RunModel, *, as_json: bool) -> View:
    """Return the view that fits: records, a live one on a terminal, or plain lines."""
    if as_json:
        return JsonView(model)
    can_move = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return LiveView(model) if can_move else PlainView(model)


def _desk(modules: Path, options: Namespace) -> RunDesk:
    return RunDesk(modules, with_person=person_is_there() and not options.json)


def _only_unfinished() -> str | None:
    with reading_plans() as plans:
        known = () if plans is None else plans.all()
        found = [one.id for one in known if plans is not None and plans.state_of(one) in UNFINISHED]
    if len(found) > 1:
        raise RequestError(
            f"{len(found)} plans are not finished; name the one to go on with",
            facts={"plans": ", ".join(found[-10:])},
            hint=f"Run `cleveragents resume {found[-1]}`",
        )
    return found[0] if found else None


def _lived_through(
    desk: RunDesk, start: Callable[[], RunResult], model: RunModel, options: Namespace
) -> RunEnd:
    if not options.json:
        output.talk(header(model))
    result = desk.follow(start, view_of(model, as_json=options.json))
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
        return _applied(end.result.plan_id, options)
    if not options.json:
        plan_id = end.result.plan_id
        output.talk(
            f"\nhint: Run `cleveragents diff {plan_id}` to review,"
            f" then `cleveragents apply {plan_id}`"
        )
    return end.exit_code


def _applied(plan_id: str, options: Namespace) -> int:
    from cleveragents.cli.changes_apply import apply

    nothing = dict.fromkeys(("actor", "path", "branch", "message", "take"))
    flags = {"commit": False, "dry_run": False, "json": options.json}
    return apply(Namespace(plan=plan_id, **nothing, **flags))
