"""What the nodes of a hunt do: each starts a program in its sandbox and keeps what it found.

The user's code runs there, confined and in a process of its own. What ends that process costs one
candidate: it is raised, so error recovery keeps it, and the plan goes on without.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.attempts import ActorResult
from cleveragents.domain.command import Command, CommandLimits, last_words
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.stop_signal import Stopped
from cleveragents.hunt.records import finding_from
from cleveragents.hunt.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.application.attempts import AttemptContext
    from cleveragents.domain.command import Finished

#: What a plan calls the functions by.
OBSERVE: Final = f"{__name__}:observe_calls"
PROVE: Final = f"{__name__}:prove_candidate"
UNBUILT: Final = f"{__name__}:collect_unbuilt"
PROVE_BUILT: Final = f"{__name__}:prove_built"
COLLECT: Final = f"{__name__}:collect_bugs"
MEND: Final = f"{__name__}:mend_file"

#: To start Python, import the user's code and write the answer, beyond the time to search.
_GRACE_S: Final = 40.0
#: For the tests of a repository, run once.
_OBSERVING_S: Final = 1_800.0
#: A file is mended and proven again for each of its findings.
_MENDING_S: Final = 6.0
_SAID_CHARS_MAX: Final = 2_000
#: Verdicts that say nothing about the code are errors, each by a code of its own.
LOST: Final = {
    Verdict.UNIMPORTABLE: ("CA5302", ErrorCategory.TOOL_CRASH),
    Verdict.GAVE_UP: ("CA5301", ErrorCategory.TOOL_TIMEOUT),
}


def observe_calls(attempt: AttemptContext) -> ActorResult:
    """Run the repository's tests on a copy, and keep the arguments that they call its code with."""
    program = "cleveragents.hunt.inputs.observe"
    rows = _answer(attempt, program, attempt.inputs["command"], time_s=_OBSERVING_S)
    return ActorResult(rows, summary=f"saw calls of {len(rows)} functions")


def prove_candidate(attempt: AttemptContext) -> ActorResult:
    """Prove one candidate; a finding that says nothing about the code is an error."""
    return _proven(attempt, {})


def collect_unbuilt(attempt: AttemptContext) -> ActorResult:
    """Gather the candidates that nothing known can build."""
    found = {
        name: record["candidate"]
        for name, record in (attempt.inputs["findings"] or {}).items()
        if record is not None
        and record["candidate"]["owner"] is not None
        and Verdict(record["verdict"]) is Verdict.UNBUILDABLE
    }
    return ActorResult(found)


def prove_built(attempt: AttemptContext) -> ActorResult:
    """Prove a candidate by the expression that a model wrote for it."""
    candidate = attempt.inputs["candidate"]
    key = attempt.instance.partition("[")[2].removesuffix("]")
    written = (attempt.inputs["factories"] or {}).get(key) or {}
    expression = written.get("expression")
    if not isinstance(expression, str):
        raise SandboxError(
            f"No expression was written that builds `{candidate['owner']}`",
            code="CA5301",
            facts={"category": ErrorCategory.TOOL_CRASH},
        )
    return _proven(attempt, {f"{candidate['module']}:{candidate['owner']}": expression})


def _proven(attempt: AttemptContext, factories: Mapping[str, str]) -> ActorResult:
    inputs = attempt.inputs
    options, seen = inputs["options"], inputs.get("seen") or {}
    about = f"{inputs['candidate']['module']}:"
    rows = {name: list(calls) for name, calls in seen.items() if name.startswith(about)}
    record = _answer(
        attempt,
        "cleveragents.hunt.prove",
        {
            "candidate": inputs["candidate"],
            "options": options,
            "recorded": rows,
            "factories": factories,
        },
        time_s=options["budget_s"] + _GRACE_S,
    )
    finding = finding_from(record)
    lost = LOST.get(finding.verdict)
    if lost is not None:
        code, category = lost
        raise SandboxError(
            f"`{finding.candidate.name}` was not judged: {finding.reason}",
            code=code,
            facts={"category": category, "candidate": finding.candidate.id},
        )
    return ActorResult(record, summary=f"{finding.verdict}: {finding.reason}"[:_SAID_CHARS_MAX])


def collect_bugs(attempt: AttemptContext) -> ActorResult:
    """Gather what was proven by the file that holds it: a file is mended by one node."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    again = {name: one for name, one in (attempt.inputs.get("again") or {}).items() if one}
    for record in {**(attempt.inputs["findings"] or {}), **again}.values():
        if record is not None and Verdict(record["verdict"]).is_bug:
            found.setdefault(record["candidate"]["path"], []).append(record)
    return ActorResult(dict(sorted(found.items())))


def mend_file(attempt: AttemptContext) -> ActorResult:
    """Mend what was proven in one file and prove it again; what does not hold is left as it was."""
    findings, options = attempt.inputs["findings"], attempt.inputs["options"]
    record = _answer(
        attempt,
        "cleveragents.hunt.mend",
        {"findings": findings, "options": options},
        time_s=_MENDING_S * options["budget_s"] * len(findings) + _GRACE_S,
    )
    if not record["mended"]:
        why = "; ".join(sorted(set(record["refused"].values()))) or "nothing could be changed"
        raise SandboxError(
            f"No fix for `{findings[0]['candidate']['path']}` holds: {why}",
            code="CA5303",
            facts={"category": ErrorCategory.TOOL_CRASH, "refused": record["refused"]},
        )
    return ActorResult(record, summary=f"mended {len(record['mended'])} of {len(findings)}")


def _answer(attempt: AttemptContext, module: str, question: Any, *, time_s: float) -> Any:
    """Start one of our programs in the sandbox; return the JSON that it prints."""
    command = Command(
        (attempt.inputs["python"], "-P", "-m", module, "."),
        stdin=json.dumps(question, default=dict).encode(),
        # What is imported must not be written beside the source, where it would be a change.
        env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", **attempt.node.env},
        limits=CommandLimits(time_s),
    )
    finished = attempt.bench.run(command, stop=attempt.stop)
    if finished.stopped == "cancelled":
        raise Stopped(attempt.stop.reason or "cancelled")
    if finished.stopped is None and finished.exit_code == 0:
        try:
            return json.loads(finished.stdout)
        except ValueError:
            raise _broken(finished, "answered with something other than JSON") from None
    if finished.stopped is not None:
        raise _broken(finished, f"reached its limit of {finished.stopped} and was ended")
    raise _broken(finished, f"ended with exit code {finished.exit_code}")


def _broken(finished: Finished, how: str) -> SandboxError:
    last = last_words(finished, _SAID_CHARS_MAX)
    late = finished.stopped == "time"
    return SandboxError(
        f"The process that runs the code {how}" + (f": {last.splitlines()[-1]}" if last else ""),
        code="CA5301",
        facts={
            "category": ErrorCategory.TOOL_TIMEOUT if late else ErrorCategory.TOOL_CRASH,
            "exit_code": finished.exit_code,
            "last_lines": last,
        },
    )
