"""`python -m cleveragents.hunt.prove ROOT`: one candidate on stdin, one finding on stdout.

The user's code runs in a child process. Whatever it does there, hang, crash, print or exit, the
parent gives one answer, and nothing else reaches stdout.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.inputs.known import Known
from cleveragents.hunt.prove import ProveOptions, prove
from cleveragents.hunt.records import candidate_from, to_record
from cleveragents.hunt.verdict import Finding, Verdict

if TYPE_CHECKING:
    from cleveragents.hunt.candidate import Candidate


def main() -> int:
    """Read a candidate, let a child prove it, write the finding."""
    answer = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.read())
    candidate = candidate_from(request["candidate"])
    options = ProveOptions(**request.get("options", {}))
    told = Known.of(request.get("factories"), request.get("recorded"))
    root = Path(sys.argv[1]).resolve()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with tempfile.TemporaryDirectory(prefix="hunt-", ignore_cleanup_errors=True) as aside:
        # Code that writes files, temporary ones or of made-up names, must leave none behind.
        os.chdir(aside)
        tempfile.tempdir = aside
        record = _by_child(candidate, root, options, told)
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")
    return 0


def _by_child(
    candidate: Candidate, root: Path, options: ProveOptions, told: Known
) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as out:
            out.write(json.dumps(_proven(candidate, root, options, told)))
        # At once, whatever threads still hang.
        os._exit(0)
    os.close(writing)
    started_s = time.monotonic()
    said = _read(reading, started_s + options.budget_s + options.grace_s)
    if said is None:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if said is None:
        return _gave_up(candidate, f"it hung, and was ended {options.grace_s:g} s after its time")
    with contextlib.suppress(ValueError):
        found: dict[str, Any] = json.loads(said)
        return found
    code = os.waitstatus_to_exitcode(status)
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return _gave_up(candidate, f"the process of its proof ended early, with {how}")


def _proven(candidate: Candidate, root: Path, options: ProveOptions, told: Known) -> dict[str, Any]:
    """Prove, in the child."""
    _set_limits(options)
    try:
        return to_record(prove(candidate, root, options, told))
    except MemoryError:
        return _gave_up(candidate, "it needs more memory than it may have")
    except BaseException as error:  # noqa: BLE001  # one answer, whatever happened
        return _gave_up(candidate, f"the proof failed: {type(error).__name__}: {error}")


def _set_limits(options: ProveOptions) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # not on every platform

        for kind, limit in (
            (resource.RLIMIT_AS, options.memory_bytes_max),
            (resource.RLIMIT_CPU, options.cpu_s_max),
        ):
            if limit is not None:
                resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def _read(reading: int, until_s: float) -> bytes | None:
    """Return all that the child says, or None if it is not done in time."""
    said = b""
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                return None
            part = pipe.read(65536)
            if not part:
                return said
            said += part


def _gave_up(candidate: Candidate, reason: str) -> dict[str, Any]:
    return to_record(Finding(candidate=candidate, verdict=Verdict.GAVE_UP, reason=reason))


if __name__ == "__main__":
    sys.exit(main())
