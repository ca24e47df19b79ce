"""`cleveragents watch|logs`: a plan that another process runs, followed in the store."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output, state
from cleveragents.cli.run import view_of
from cleveragents.cli.run_lines import ending, header
from cleveragents.cli.stored_plans import STOPPED, reading_plan, reading_plans, run_events
from cleveragents.cli.table import one_line
from cleveragents.domain.budget import zone_of
from cleveragents.domain.run_events import NodeFinished
from cleveragents.settings import load

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from datetime import tzinfo

    from cleveragents.cli.plain_view import View
    from cleveragents.cli.stored_plans import StoredPlans, Told
    from cleveragents.cli.view_model import RunModel

#: How often the store is looked at.
POLL_S: Final = 0.2


@dataclass(slots=True)
class _Watch:
    """What was seen of a plan so far."""

    plan_id: str
    model: RunModel
    view: View
    seq: int = 0

    def look(self, plans: StoredPlans) -> bool:
        """Show what is new; say whether the plan still runs."""
        for told in plans.events(self.plan_id, self.seq):
            self.seq = told.seq
            for event in run_events(self.plan_id, told):
                files = None
                if isinstance(event, NodeFinished) and event.changeset is not None:
                    files = plans.files(event.changeset)
                self.view.take(event, told.at, files)
        return plans.is_run(self.plan_id)


def watch(options: Namespace, pause: Callable[[float], object] = time.sleep) -> int:
    """Show a plan as it runs, and end with it."""
    plan_id = options.plan or _newest()
    if plan_id is None:
        return state.nothing("No plans yet", "Run `cleveragents run plan.yaml`")
    with reading_plan(plan_id) as plans:
        model = plans.model(plan_id, with_past=False)
        seen = _Watch(plan_id, model, view_of(model, as_json=options.json))
        if not options.json:
            output.talk(header(model))
        is_run = seen.look(plans)
    while is_run:
        seen.view.tick(time.time())
        pause(POLL_S)
        with reading_plan(plan_id) as plans:
            is_run = seen.look(plans)
    seen.view.close(time.time())
    return _ended(seen, options)


def logs(options: Namespace, pause: Callable[[float], object] = time.sleep) -> int:
    """Print what the actors of a plan told, or of one node; with `--follow` until it ends."""
    zone, seq, found = zone_of(load()[0].zone), 0, False
    while True:
        with reading_plan(options.plan) as plans:
            is_run = plans.is_run(options.plan)
            for told in plans.events(options.plan, seq):
                seq = told.seq
                if told.kind == "node.log" and _is_wanted(told.body, options.node):
                    found = True
                    _print(told, zone, options)
        output.flush()
        if not (options.follow and is_run):
            break
        pause(POLL_S)
    if not found:
        of_node = "" if options.node is None else f" of node `{options.node}`"
        return state.nothing(
            f"No lines{of_node} in plan `{options.plan}`",
            f"Run `cleveragents status {shlex.quote(options.plan)}` to see what happened",
        )
    return 0


def _newest() -> str | None:
    """Return the plan that runs, or else the newest."""
    with reading_plans() as plans:
        known = () if plans is None else plans.all()
        running = [one.id for one in known if plans is not None and plans.is_run(one.id)]
    found = running or [one.id for one in known]
    return found[-1] if found else None


def _ended(seen: _Watch, options: Namespace) -> int:
    with reading_plan(seen.plan_id) as plans:
        now = plans.state_of(plans.get(seen.plan_id))
    if not options.json:
        if now == STOPPED:
            output.talk(f"The process that ran plan `{seen.plan_id}` is gone; what is done is kept")
        elif seen.model.end is not None:
            output.talk(ending(seen.model, sum(one.files or 0 for one in seen.model.rows())))
        word = {"done": "diff", "applied": "diff", "reverted": "diff"}.get(now, "resume")
        output.talk(f"\nhint: Run `cleveragents {word} {seen.plan_id}`")
    return int(now in {"failed", STOPPED})


def _is_wanted(body: dict[str, Any], node: str | None) -> bool:
    return node is None or node in {body["node"], body["node"].partition("[")[0]}


def _print(told: Told, zone: tzinfo, options: Namespace) -> None:
    if options.json:
        output.record({"kind": "log", "plan": options.plan, "at": told.at, **told.body})
        return
    moment = f"{datetime.fromtimestamp(told.at, zone):%H:%M:%S}"
    attempt = told.body["attempt"]
    again = f" ({attempt})" if attempt > 1 else ""
    output.data(f"{moment}  {told.body['node']}{again}  {one_line(told.body['text'])}")
