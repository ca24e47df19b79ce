"""How a command ended, when it did not end well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.stop_signal import Stopped

if TYPE_CHECKING:
    from cleveragents.domain.command import Command, Finished
    from cleveragents.domain.stop_signal import StopSignal

_TAIL_LINES: Final = 20
_TAIL_CHARS_MAX: Final = 2_000
#: By convention (`sysexits.h`): it may work later.
_EXIT_TRY_LATER: Final = 75


def raise_if_ended_early(
    command: Command, finished: Finished, stop: StopSignal, *, more_time: str | None = None
) -> None:
    """Raise CA5005 for a limit, and `Stopped` when it was asked to end.

    `more_time` is the hint where it ran out of time.
    """
    if finished.stopped == "cancelled":
        raise Stopped(stop.reason or "cancelled")
    if finished.stopped == "time":
        limit = f"{command.limits.time_s:g} s"
        early = _early(command, finished, f"{limit} of time", ErrorCategory.TOOL_TIMEOUT)
        early.hint = more_time
        raise early
    if finished.stopped == "output":
        limit = f"{command.limits.output_bytes_max} bytes of output"
        raise _early(command, finished, limit, ErrorCategory.TOOL_CRASH)


def raise_if_failed(command: Command, finished: Finished) -> None:
    """Raise CA5201 for any exit code but 0."""
    if finished.exit_code == 0:
        return
    later = finished.exit_code == _EXIT_TRY_LATER
    category = ErrorCategory.TOOL_TRANSIENT if later else ErrorCategory.TOOL_CRASH
    by_signal = f" (signal {finished.signal})" if finished.signal else ""
    tail = tail_of(finished)
    raise SandboxError(
        f"The command {command.argv[0]!r} failed with exit code {finished.exit_code}{by_signal}"
        + (f": {tail.splitlines()[-1]}" if tail else ""),
        code="CA5201",
        facts={
            "category": category,
            "program": command.argv[0],
            "exit_code": finished.exit_code,
            "signal": finished.signal,
            "output": tail,
        },
    )


def tail_of(finished: Finished) -> str:
    """Return the last lines of what a command complained, or printed, without secrets."""
    said = finished.stderr.strip() or finished.stdout.strip()
    lines = said.decode("utf-8", "replace").splitlines()[-_TAIL_LINES:]
    clean = redact_to("\n".join(lines), 10 * _TAIL_CHARS_MAX)
    return clean if len(clean) <= _TAIL_CHARS_MAX else "…" + clean[1 - _TAIL_CHARS_MAX :]


def _early(
    command: Command, finished: Finished, limit: str, category: ErrorCategory
) -> SandboxError:
    return SandboxError(
        f"The command {command.argv[0]!r} reached its limit of {limit} and was ended",
        code="CA5005",
        facts={
            "category": category,
            "program": command.argv[0],
            "duration_s": round(finished.duration_s, 3),
            "output": tail_of(finished),
        },
    )
