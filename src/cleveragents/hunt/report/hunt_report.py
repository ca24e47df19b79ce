"""The whole of a hunt: bugs, known bugs, suspicions apart with the reason, and what was skipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleveragents.hunt.records import to_record
from cleveragents.hunt.report.judgement import severity_of, suggestion_for
from cleveragents.hunt.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cleveragents.hunt.verdict import Finding

__all__ = ["HuntReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntReport:
    """Everything that a hunt has to tell, in the order of the candidates."""

    plan_id: str
    findings: tuple[Finding, ...]
    #: Candidates that nobody has tried yet: the hunt was stopped.
    untried: int = 0
    #: Files that were not read, and why.
    skipped: Mapping[str, str] = field(default_factory=dict)
    modules: int = 0
    #: The ids of findings that a baseline accepts.
    known_ids: frozenset[str] = frozenset()
    #: By the id of a finding: whether a fix holds, and in the other case why not.
    mended_ids: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def bugs(self) -> tuple[Finding, ...]:
        """What was proven and is not known yet, the worst first."""
        new = [one for one in self._proven if one.candidate.id not in self.known_ids]
        return tuple(sorted(new, key=lambda one: severity_of(one).order))

    @property
    def known(self) -> tuple[Finding, ...]:
        """What was proven and stands in the baseline."""
        return tuple(one for one in self._proven if one.candidate.id in self.known_ids)

    @property
    def suspicions(self) -> tuple[Finding, ...]:
        """What looks like a race and is not proven; those that came out silent are not told."""
        quiet = {Verdict.SILENT}
        return tuple(
            one for one in self.findings if not one.verdict.is_bug and one.verdict not in quiet
        )

    @property
    def silent(self) -> tuple[Finding, ...]:
        """What was tried, and came out as in some order of whole calls every time."""
        return tuple(one for one in self.findings if one.verdict is Verdict.SILENT)

    @property
    def _proven(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.verdict.is_bug)

    def record(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {
            "kind": "hunt",
            "plan": self.plan_id,
            "modules": self.modules,
            "candidates": len(self.findings) + self.untried,
            "untried": self.untried,
            "skipped": dict(self.skipped),
            "bugs": [self._told(one) for one in self.bugs],
            "known": [self._told(one) for one in self.known],
            "suspicions": [self._told(one) for one in self.suspicions],
            "silent": [one.candidate.name for one in self.silent],
        }

    def fix_of(self, finding: Finding) -> str:
        """Say what became of its fix: empty where none was asked for."""
        if finding.candidate.id in self.mended_ids:
            return "a fix holds"
        why = self.refused.get(finding.candidate.id)
        return f"no fix holds: {why}" if why else ""

    def _told(self, finding: Finding) -> dict[str, Any]:
        return {
            "id": finding.candidate.id,
            "name": finding.candidate.name,
            "severity": severity_of(finding),
            "suggestion": suggestion_for(finding.candidate),
            "fix": self.fix_of(finding) or None,
            **to_record(finding),
        }
