"""How a command ends badly: our errors as they are, anything else as a report that is kept."""

from __future__ import annotations

import json
import os
import secrets
import traceback
from datetime import UTC, datetime
from pathlib import Path

from cleveragents._version import __version__
from cleveragents.cli import output
from cleveragents.domain.errors import CleverAgentsError, InternalError
from cleveragents.domain.redaction import redact


def fail(error: Exception, *, as_json: bool) -> int:
    """Show an error and return the exit code that goes with it."""
    problem = error if isinstance(error, CleverAgentsError) else _reported(error)
    output.error(problem, as_json=as_json)
    return problem.exit_code


def log_folder() -> Path:
    """Return where reports are kept, by the convention of the platform's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cleveragents" / "log"


def _reported(error: Exception) -> InternalError:
    now = datetime.now(UTC)
    report = f"r-{secrets.token_hex(4)}"
    path = log_folder() / f"{now.date()}.jsonl"
    entry = {
        "report": report,
        "at": now.isoformat(),
        "version": __version__,
        "trace": redact("".join(traceback.format_exception(error))),
    }
    facts = {"kind": type(error).__name__, "report": report}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
        facts["log"] = str(path)
    except OSError as why:
        facts["log"] = f"not written: {why.strerror}"
    return InternalError(
        "Unexpected error; this is our bug",
        facts=facts,
        hint="Report it with the entry of that id from the log",
    )
