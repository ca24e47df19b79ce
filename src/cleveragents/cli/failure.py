"""How a command ends badly: our errors as they are, anything else as a report that is kept."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Final

from cleveragents.cli import output
from cleveragents.cli.log_file import write_entry
from cleveragents.domain.errors import CleverAgentsError, InternalError

if TYPE_CHECKING:
    from cleveragents.cli.log_file import LogFile

_HINT: Final = "Report it with the entry of that id from the log"


def fail(error: Exception, *, as_json: bool) -> int:
    """Show an error and return the exit code that goes with it."""
    problem = error if isinstance(error, CleverAgentsError) else _reported(error)
    output.error(problem, as_json=as_json)
    return problem.exit_code


def concluded(code: int, log: LogFile, *, as_json: bool) -> int:
    """Tell what went wrong beside the work; a thread of ours that died makes no success."""
    if log.broken is not None:
        problem = InternalError(
            "Unexpected error in a thread of ours; this is our bug", facts=log.broken, hint=_HINT
        )
        output.error(problem, as_json=as_json)
        return code or problem.exit_code
    if log.last is not None:
        output.talk(f"warning: More went wrong beside the work\n{output.facts(log.last)}")
    return code


def _reported(error: Exception) -> InternalError:
    told = write_entry(trace="".join(traceback.format_exception(error)))
    facts = {"kind": type(error).__name__, **told}
    return InternalError("Unexpected error; this is our bug", facts=facts, hint=_HINT)
