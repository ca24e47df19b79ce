"""What a hunt tells, in the form that is asked for, and the files that it writes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents._version import __version__
from cleveragents.cli import output
from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.wording import counted
from cleveragents.hunt.hunt_plan import game_of
from cleveragents.hunt.nodes import LOST
from cleveragents.hunt.records import finding_from
from cleveragents.hunt.report.baseline import baseline_text, read_baseline
from cleveragents.hunt.report.hunt_report import HuntReport
from cleveragents.hunt.report.pages import markdown, terminal
from cleveragents.hunt.report.sarif import sarif
from cleveragents.hunt.verdict import Finding, Verdict

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from cleveragents.application.run_journal import NodeRecord
    from cleveragents.domain.plan import Plan
    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.hunt_plan import Game

_FOUND = 1
_VERDICTS = {code: verdict for verdict, (code, _) in LOST.items()}


class Telling:
    """Tells reports; what it shall write is refused at birth if that cannot work."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        #: Whether a bug was told that no fix holds for.
        self.has_left = False
        self._format = "json" if options.json else options.format
        self._known = (
            frozenset() if options.baseline is None else read_baseline(Path(options.baseline))
        )
        for flag, path in (("--out", options.out), ("--write-baseline", options.write_baseline)):
            if path is not None and not Path(path).absolute().parent.is_dir():
                raise RequestError(f"`{flag}` must name a file in a folder that is there")
        if options.tests is not None and Path(options.tests).is_file():
            raise RequestError(f"`--tests` must name a folder, and `{options.tests}` is a file")

    def tell(self, plan: Plan, plan_id: str, nodes: Mapping[str, NodeRecord]) -> int:
        """Tell what is known of a hunt; 1 where a bug is proven that no baseline accepts."""
        report = self._report(plan, plan_id, nodes)
        self.has_left = any(one.candidate.id not in report.mended_ids for one in report.bugs)
        self._write(self._told(report))
        self._write_files(report)
        return _FOUND if report.bugs and self._options.write_baseline is None else 0

    def tell_nothing(self, game: Game) -> int:
        """Tell of a hunt that had nothing to try, so that a reader of the file finds one."""
        report = HuntReport(plan_id="", findings=(), modules=game.modules, skipped=game.skipped)
        if self._format != "text" or self._options.out is not None:
            self._write(self._told(report))
        self._write_files(report)
        return 0

    def _report(self, plan: Plan, plan_id: str, nodes: Mapping[str, NodeRecord]) -> HuntReport:
        game = game_of(plan)
        judged = [
            finding
            for instance, candidate in game.items()
            if (finding := _finding(candidate, _latest(instance, nodes))) is not None
        ]
        mended, refused = _mending(nodes)
        read = plan.nodes[0].inputs["read"]
        return HuntReport(
            plan_id=plan_id,
            findings=tuple(judged),
            untried=len(game) - len(judged),
            skipped=dict(read["skipped"]),
            modules=read["modules"],
            known_ids=self._known,
            mended_ids=mended,
            refused=refused,
        )

    def _told(self, report: HuntReport) -> str:
        if self._format == "json":
            return json.dumps(report.record(), ensure_ascii=False)
        if self._format == "sarif":
            return json.dumps(sarif(report, __version__), indent=2, ensure_ascii=False)
        if self._format == "markdown":
            return markdown(report, _test_of).rstrip("\n")
        return "\n".join(terminal(report))

    def _write(self, text: str) -> None:
        if self._options.out is None:
            output.data(text)
        else:
            Path(self._options.out).write_text(f"{text}\n", encoding="utf-8")
            output.talk(f"the report is in `{self._options.out}`")

    def _write_files(self, report: HuntReport) -> None:
        if self._options.write_baseline is not None:
            path = Path(self._options.write_baseline)
            path.write_text(baseline_text((*report.known, *report.bugs)), encoding="utf-8")
            output.talk(f"`{path}` accepts {counted(len(report.known + report.bugs), 'bug')}")
        if self._options.tests is None:
            return
        folder = Path(self._options.tests)
        folder.mkdir(parents=True, exist_ok=True)
        for finding in report.bugs:
            file = folder / f"test_race_{_slug(finding)}.py"
            file.write_text(_test_of(finding), encoding="utf-8")
            output.talk(f"`{os.fspath(file)}` fails as long as the race is there")


def _latest(instance: str, nodes: Mapping[str, NodeRecord]) -> NodeRecord | None:
    """Return the proof of a candidate; the one with what a model built, if there is one."""
    again = nodes.get(instance.replace("prove", "built", 1))
    return again if again is not None and again.output is not None else nodes.get(instance)


def _finding(candidate: Candidate, node: NodeRecord | None) -> Finding | None:
    """Return what is known of a candidate; None while nobody has tried it to the end."""
    if node is None:
        return None
    if node.state is NodeState.DONE and node.output is not None:
        return finding_from(node.output)
    error: Mapping[str, Any] | None = node.error
    if node.state not in {NodeState.SKIPPED, NodeState.FAILED} or error is None:
        return None
    verdict = _VERDICTS.get(str(error.get("code")), Verdict.GAVE_UP)
    return Finding(candidate=candidate, verdict=verdict, reason=str(error.get("message")))


def _mending(nodes: Mapping[str, NodeRecord]) -> tuple[frozenset[str], dict[str, str]]:
    """Return the ids that a fix holds for, and why for others none does."""
    mended: set[str] = set()
    refused: dict[str, str] = {}
    for node in (one for one in nodes.values() if one.node == "mend"):
        if node.state is NodeState.DONE and node.output:
            mended |= set(node.output["mended"])
            refused |= node.output["refused"]
        elif node.error is not None:
            facts = node.error.get("facts") or {}
            refused |= facts.get("refused") or {}
    return frozenset(mended), refused


def _test_of(finding: Finding) -> str:
    from cleveragents.hunt.prove.regression import regression_test

    return regression_test(finding)


def _slug(finding: Finding) -> str:
    candidate = finding.candidate
    name = f"{candidate.module}_{candidate.owner or ''}_{candidate.state[0]}".lower()
    return f"{re.sub(r'[^a-z0-9]+', '_', name).strip('_')}_{candidate.id[2:8]}"
