"""`cleveragents doctor`: what works on this machine, and what to do where something does not."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cleveragents.cli import output, state
from cleveragents.cli.table import table
from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.machine import Check, look
from cleveragents.settings import Settings, load, store_path
from cleveragents.workspace import Workspace

if TYPE_CHECKING:
    from argparse import Namespace


def doctor(options: Namespace) -> int:
    """Look at everything; ends with 3 when something that all else needs does not work."""
    if options.clean:
        return _clean(as_json=options.json)
    settings, checks = _settings()
    checks += look(state.root(), store_path(settings), os.environ, settings.context_index_folder)
    if options.json:
        for check in checks:
            output.record(_record(check))
    else:
        rows = [(check.name, _word(check), check.says) for check in checks]
        output.data(table(("what", "state", "found"), rows))
        hints = [f"hint: {check.hint}" for check in checks if check.hint is not None]
        output.talk("\n".join(["", *hints]) if hints else "\nEverything works")
    broken = any(check.basic and not check.works for check in checks)
    return SetupError.exit_code if broken else 0


def _clean(*, as_json: bool) -> int:
    """Put what dead processes left into the store, and delete what nobody needs any more."""
    if not state.is_there():
        return state.nothing("Nothing to clean yet", "Run a plan, then look again")
    with state.writing() as store, Workspace(state.root(), store) as workspace:
        collected = workspace.collect_garbage()
    for one in collected:
        if as_json:
            output.record({"kind": "collected", **asdict(one)})
        else:
            changes = (
                "" if one.changeset is None else f", its changes are changeset {one.changeset}"
            )
            output.data(f"sandbox {one.id} of `{one.node}` in plan {one.plan}{changes}")
    output.talk(f"Collected {_sandboxes(len(collected))} of dead processes")
    plans = dict.fromkeys(one.plan for one in collected if one.changeset is not None)
    if plans:
        show = shlex.join(["cleveragents", "changes", "show", next(iter(plans))])
        output.talk(f"\nhint: Run `{show}` to see what was in them")
    return 0


def _settings() -> tuple[Settings, tuple[Check, ...]]:
    try:
        return load()[0], (Check("settings", True, "every one keeps its rule", basic=True),)
    except SetupError as error:
        # What is asked below can still be told, with the settings that nobody set.
        return Settings(), (Check("settings", False, error.message, error.hint, basic=True),)


def _sandboxes(count: int) -> str:
    return "1 sandbox" if count == 1 else f"{count} sandboxes"


def _word(check: Check) -> str:
    return "ok" if check.works else "broken" if check.basic else "missing"


def _record(check: Check) -> dict[str, Any]:
    return {
        "kind": "check",
        "name": check.name,
        "state": _word(check),
        "found": check.says,
        "hint": check.hint,
        "basic": check.basic,
    }
