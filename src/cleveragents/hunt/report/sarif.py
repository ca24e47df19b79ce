"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.hunt.candidate import Pattern
from cleveragents.hunt.report.judgement import Severity, severity_of, suggestion_for

if TYPE_CHECKING:
    from cleveragents.hunt.report.hunt_report import HuntReport
    from cleveragents.hunt.verdict import Finding, Step

__all__ = ["sarif"]

_LEVELS: Final = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
#: What a scanner shows as the score of a finding, out of ten.
_SCORES: Final = {Severity.HIGH: "8.0", Severity.MEDIUM: "5.0", Severity.LOW: "2.0"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: HuntReport, version: str) -> dict[str, Any]:
    """Return the proven findings as one run; those of the baseline are marked as unchanged."""
    results = [
        *(_result(one, "new") for one in report.bugs),
        *(_result(one, "unchanged") for one in report.known),
    ]
    driver = {
        "name": "cleveragents hunt",
        "version": version,
        "rules": [_rule(pattern) for pattern in Pattern],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(pattern: Pattern) -> dict[str, Any]:
    return {
        "id": f"race/{pattern}",
        "shortDescription": {"text": f"Data race: {pattern.replace('-', ' ')}"},
    }


def _result(finding: Finding, state: str) -> dict[str, Any]:
    candidate, severity = finding.candidate, severity_of(finding)
    first = candidate.patterns[0]
    return {
        "ruleId": f"race/{first}",
        "ruleIndex": list(Pattern).index(first),
        "level": _LEVELS[severity],
        "baselineState": state,
        "message": {"text": f"{finding.reason}. {suggestion_for(candidate)}."},
        "locations": [_location(candidate.path, _line_of(finding))],
        "partialFingerprints": {"candidate/v1": candidate.id},
        "codeFlows": [
            {
                "threadFlows": [
                    {"id": str(thread + 1), "locations": _flow(finding.steps, thread)}
                    for thread in sorted({step.thread for step in finding.steps})
                ]
            }
        ]
        if finding.steps
        else [],
        "properties": {"security-severity": _SCORES[severity], "strikes": finding.strikes},
    }


def _flow(steps: tuple[Step, ...], thread: int) -> list[dict[str, Any]]:
    """Return the steps of one thread; their order tells how they fall between the others."""
    return [
        {
            "executionOrder": order,
            "location": {
                **_location(step.path, step.line),
                "message": {"text": step.source.strip()},
            },
        }
        for order, step in enumerate(steps, 1)
        if step.thread == thread
    ]


def _location(path: str, line: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }


def _line_of(finding: Finding) -> int:
    accesses = finding.candidate.accesses
    return accesses[0].line if accesses else finding.candidate.line
