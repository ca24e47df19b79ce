"""How good is the hunt? Every file of the corpus: found by reading, then proven in a process.

Run it with `PYTHONPATH=tests python -m hunt_corpus.evaluate [NAME ...]`. Racy files must be proven,
their correct twins must not be; it exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.find import find
from cleveragents.hunt.records import finding_from, to_record
from cleveragents.hunt.verdict import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cleveragents.hunt.candidate import Candidate

CORPUS = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in (CORPUS / "racy").glob("*.py")))
#: Where the file also holds helpers, the class that has to be the one that is proven.
OWNERS = {
    "acms_pipeline": "CircuitBreaker",
    "cost_tracker": "CostTracker",
    "error_recovery_service": "ErrorRecoveryService",
    "plan_execution_context": "PlanExecutionContext",
}
#: The share of the racy files that must be found and proven.
PROVEN_MIN = 0.9
#: What importing, limits and a loaded machine may add to the time for the search.
GRACE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one file."""

    part: str
    name: str
    candidates: tuple[Candidate, ...]
    findings: tuple[Finding, ...]
    elapsed_s: float

    @property
    def decisive(self) -> Finding | None:
        """The finding that says most: a bug of the class that is meant, or the first one."""
        bugs = [one for one in self.findings if one.verdict.is_bug]
        meant = [one for one in bugs if self._is_meant(one.candidate)]
        return next(iter([*meant, *bugs, *self.findings]), None)

    @property
    def is_found(self) -> bool:
        return any(map(self._is_meant, self.candidates))

    @property
    def is_bug(self) -> bool:
        """Racy files count with the class that is meant, correct ones with any."""
        return any(
            one.verdict.is_bug and (self.part == "safe" or self._is_meant(one.candidate))
            for one in self.findings
        )

    @property
    def is_right(self) -> bool:
        return self.is_bug == (self.part == "racy")

    def _is_meant(self, candidate: Candidate) -> bool:
        return candidate.owner == OWNERS.get(self.name, candidate.owner)


def answer_of(program: str, folder: Path, question: object, seconds: float) -> Any:
    """Ask one of the hunt's programs, in a process of its own that is ended when it overstays."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"cleveragents.hunt.{program}", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        start_new_session=True,
    )
    try:
        answer, said = process.communicate(json.dumps(question), timeout=seconds + GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise ValueError(f"it had to be ended {GRACE_S:g} s after its time") from None
    try:
        return json.loads(answer)
    except ValueError:
        raise ValueError(f"no answer, exit code {process.returncode}: {said[-300:]}") from None


def prove(folder: Path, candidate: Candidate, seconds: float) -> Finding:
    """Return what the program finds, or that it gave nothing."""
    question = {"candidate": to_record(candidate), "options": options_for(seconds)}
    try:
        return finding_from(answer_of("prove", folder, question, seconds))
    except ValueError as error:
        return Finding(candidate=candidate, verdict=Verdict.GAVE_UP, reason=str(error))


def options_for(seconds: float) -> dict[str, float]:
    return {"budget_s": seconds}


def mend(row: Row, seconds: float) -> str:
    """Mend what was proven in a copy of the file: `mended`, or what does not hold."""
    bugs = [to_record(one) for one in row.findings if one.verdict.is_bug]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(CORPUS / row.part / f"{row.name}.py", folder)
        question = {"findings": bugs, "options": options_for(seconds)}
        try:
            told = answer_of("mend", folder, question, 6 * seconds * len(bugs))
        except ValueError as error:
            return str(error)
        if told["refused"]:
            return "refused: " + "; ".join(told["refused"].values())
        checked = check(folder, [CORPUS / "checks" / f"test_{row.name}.py"])
        return "mended" if checked.returncode == 0 else f"check: {checked.stdout[-500:]}"


def check(folder: Path, checks: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    """Run checks against the files of a folder."""
    quiet = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--import-mode=importlib")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, f"--rootdir={folder}", *checks],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def suspects(part: str, name: str) -> tuple[Candidate, ...]:
    """Return what reading finds; a correct twin is also accused of all that the racy one does.

    Otherwise reading alone would acquit the twins, and the proofs would never meet them.
    """
    found = find(CORPUS / part, [f"{name}.py"]).candidates
    if part == "racy":
        return found
    known = {one.id for one in found}
    accused = find(CORPUS / "racy", [f"{name}.py"]).candidates
    return found + tuple(
        replace(one, calls=calls)
        for one in accused
        if one.id not in known and (calls := _calls_of_twin(one))
    )


def _calls_of_twin(candidate: Candidate) -> tuple[str, ...]:
    """Return the calls that the correct twin has as well."""
    source = (CORPUS / "safe" / candidate.path).read_text(encoding="utf-8")
    twin = ast.parse(source)
    if candidate.owner and all(
        candidate.owner != node.name for node in twin.body if isinstance(node, ast.ClassDef)
    ):
        return ()
    functions = {node.name for node in ast.walk(twin) if isinstance(node, ast.FunctionDef)}
    return tuple(call for call in candidate.calls if call.partition(".")[0] in functions)


def examine(part: str, name: str, seconds: float, *, every: bool = False) -> Row:
    """Find and prove one file; a racy one until the first bug unless `every`."""
    started = time.monotonic()
    folder = CORPUS / part
    candidates = suspects(part, name)
    findings: list[Finding] = []
    row = Row(part=part, name=name, candidates=candidates, findings=(), elapsed_s=0)
    for candidate in candidates:
        findings.append(prove(folder, candidate, seconds))
        row = Row(
            part=part,
            name=name,
            candidates=candidates,
            findings=tuple(findings),
            elapsed_s=time.monotonic() - started,
        )
        if row.is_bug and not every:
            break
    return row


def evaluate(
    files: Sequence[tuple[str, str]], seconds: float, *, jobs: int = 2, every: bool = False
) -> Iterator[Row]:
    """Examine files, given as part and name, so many at once; rows come as they are ready."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        yield from pool.map(lambda file: examine(*file, seconds, every=every), files)


HEADING = f"{'file':<30} {'cand':>4} {'verdict':<12} {'trials':>6} {'seconds':>7}  state"


def line(row: Row) -> str:
    best = row.decisive
    verdict = best.verdict.value if best else "not found"
    trials = sum(one.trials for one in row.findings)
    about = best.candidate.name.partition(":")[2] if best else ""
    return (
        f"{' ' if row.is_right else '!'}{row.part + '/' + row.name:<29} {len(row.candidates):>4}"
        f" {verdict:<12} {trials:>6} {row.elapsed_s:>7.1f}  {about}"
    )


def totals(rows: Sequence[Row]) -> str:
    racy = [row for row in rows if row.part == "racy"]
    safe = [row for row in rows if row.part == "safe"]
    proven = sum(row.is_bug for row in racy)
    share = f" ({proven / len(racy):.0%})" if racy else ""
    return "\n".join(
        [
            f"racy: {len(racy)}, found {sum(row.is_found for row in racy)}, proven {proven}{share}",
            f"safe: {len(safe)}, false bugs {sum(row.is_bug for row in safe)}",
        ]
    )


def goals_missed(rows: Sequence[Row]) -> list[str]:
    """Say what is not as it must be: nothing, if all is well."""
    racy = [row for row in rows if row.part == "racy"]
    unproven = [row.name for row in racy if not row.is_bug]
    missed = [f"safe/{row.name} is called a bug" for row in rows if not row.is_right and row.is_bug]
    missed += [f"racy/{name} must be proven" for name in unproven if name in OWNERS]
    if racy and len(unproven) > (1 - PROVEN_MIN) * len(racy):
        missed.append(f"{len(unproven)} of {len(racy)} racy files are unproven: {unproven}")
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hunt_corpus.evaluate", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="files to examine; all by default")
    parser.add_argument("--part", choices=("racy", "safe"), help="only this part")
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each candidate")
    parser.add_argument("--jobs", type=int, default=2, help="files at once")
    parser.add_argument("--every", action="store_true", help="go on after the first bug of a file")
    parser.add_argument("--fix", action="store_true", help="mend what is proven, in a copy")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all findings to it")
    parser.add_argument("--reasons", action="store_true", help="say why files came out wrong")
    options = parser.parse_args(arguments)
    parts = [options.part] if options.part else ["racy", "safe"]
    files = [(part, name) for part in parts for name in options.names or NAMES]
    rows = []
    print(HEADING)
    for row in evaluate(files, options.seconds, jobs=options.jobs, every=options.every):
        rows.append(row)
        print(line(row), flush=True)
    print(totals(rows))
    if options.fix:
        _tell_mended([row for row in rows if row.part == "racy" and row.is_bug], options)
    if options.reasons:
        for row in rows:
            for one in () if row.is_right else row.findings:
                print(f"{row.part}/{one.candidate.name}: {one.verdict}: {one.reason}")
    if options.json:
        findings = [to_record(one) | {"part": row.part} for row in rows for one in row.findings]
        options.json.write_text(json.dumps(findings, indent=1), encoding="utf-8")
    missed = goals_missed(rows)
    for one in missed:
        print(f"missed: {one}", file=sys.stderr)
    return 1 if missed else 0


def _tell_mended(rows: Sequence[Row], options: argparse.Namespace) -> None:
    told = []
    with ThreadPoolExecutor(max_workers=options.jobs) as pool:
        mending = pool.map(lambda row: mend(row, options.seconds), rows)
        for row, what in zip(rows, mending, strict=True):
            told.append(what)
            print(f"{row.name:<30} {what}", flush=True)
    print(f"mended: {told.count('mended')} of {len(rows)} that are proven")


if __name__ == "__main__":
    sys.exit(main())
