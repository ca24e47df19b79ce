"""`cleveragents doctor`: what works on this machine, and what to do where something does not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cleveragents.cli import output, state
from cleveragents.cli.table import table
from cleveragents.domain.errors import SetupError
from cleveragents.infrastructure.machine import Check, look
from cleveragents.settings import Settings, load, store_path

if TYPE_CHECKING:
    from argparse import Namespace


def doctor(options: Namespace) -> int:
    """Look at everything; ends with 3 when something that all else needs does not work."""
    settings, checks = _settings()
    checks += look(state.root(), store_path(settings), os.environ)
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


def _settings() -> tuple[Settings, tuple[Check, ...]]:
    try:
        return load()[0], (Check("settings", True, "every one keeps its rule", basic=True),)
    except SetupError as error:
        # What is asked below can still be told, with the settings that nobody set.
        return Settings(), (Check("settings", False, error.message, error.hint, basic=True),)


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
