"""Whether a mended file holds: the same exploration of it, and of all its pairs, finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cleveragents.hunt.find import find
from cleveragents.hunt.mend.anatomy import CannotMend
from cleveragents.hunt.mend.mending import mended
from cleveragents.hunt.records import finding_from, to_record
from cleveragents.hunt.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.verdict import Finding

__all__ = ["Mending", "mend_files"]

#: To start Python and import the user's code, beyond the time to search.
_GRACE_S: Final = 40.0
#: What a proof may say of code that is mended.
_HOLDS: Final = frozenset({Verdict.SILENT, Verdict.BENIGN})


@dataclass(slots=True)
class Mending:
    """What became of findings, by their ids."""

    mended: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    #: Interleavings that were explored of what is mended.
    explored: int = 0


def mend_files(root: Path, findings: Sequence[Finding], options: Mapping[str, Any]) -> Mending:
    """Mend each finding in its file; one whose fix does not hold is put back as it was."""
    told = Mending()
    for finding in findings:
        file = root / finding.candidate.path
        before = file.read_bytes()
        try:
            text = mended(before.decode(), _as_it_stands(root, finding.candidate))
            file.write_bytes(text.encode())
            told.explored += _explored(root, finding.candidate, options)
        except CannotMend as error:
            file.write_bytes(before)
            told.refused[finding.candidate.id] = str(error)
        else:
            told.mended.append(finding.candidate.id)
    return told


def _as_it_stands(root: Path, candidate: Candidate) -> Candidate:
    """Return the candidate as the file has it now: an earlier fix may have brought a lock."""
    for one in find(root, [candidate.path]).candidates:
        if one.id == candidate.id:
            return one
    return candidate


def _explored(root: Path, before: Candidate, options: Mapping[str, Any]) -> int:
    """Prove what was found and what reading finds now; raise where anything does not hold."""
    explored = 0
    for candidate in _to_prove(root, before):
        finding = _proof(root, candidate, options)
        if finding.verdict not in _HOLDS:
            raise CannotMend(f"with the lock, `{candidate.name}` is {_told(finding)}")
        explored += finding.explored
    return explored


def _told(finding: Finding) -> str:
    words = {Verdict.PROVEN: "still racy", Verdict.DEADLOCK: "a deadlock"}
    return f"{words.get(finding.verdict, finding.verdict)}: {finding.reason}"


def _to_prove(root: Path, before: Candidate) -> Iterable[Candidate]:
    """Yield the candidate itself, and what reading suspects of its owner besides."""
    yield before
    for one in find(root, [before.path]).candidates:
        if one.owner == before.owner and one.id != before.id:
            yield one


def _proof(root: Path, candidate: Candidate, options: Mapping[str, Any]) -> Finding:
    """Prove in a process of its own: this one has the old code in its memory."""
    question = json.dumps({"candidate": to_record(candidate), "options": dict(options)})
    command = [sys.executable, "-P", "-m", "cleveragents.hunt.prove", str(root)]
    try:
        done = subprocess.run(
            command,
            input=question.encode(),
            capture_output=True,
            timeout=options["budget_s"] + _GRACE_S,
            check=True,
        )
        return finding_from(json.loads(done.stdout))
    except (subprocess.SubprocessError, ValueError) as error:
        raise CannotMend(f"the proof of the fix broke: {error}") from error
