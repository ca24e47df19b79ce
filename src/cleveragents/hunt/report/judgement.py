"""How bad a finding is, and what would mend it: rules about values, nothing is run."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.candidate import EvidenceKind
from cleveragents.hunt.verdict import Strikes, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.verdict import Finding

__all__ = ["Severity", "listed", "severity_of", "suggestion_for"]

#: Evidence that threads really share the object, and not only that they could.
_SHARED: Final = frozenset(EvidenceKind) - {EvidenceKind.STATEFUL, EvidenceKind.USES_THREADS}


class Severity(StrEnum):
    """How soon somebody should look at it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def order(self) -> int:
        """The place in a list, the worst first."""
        return list(Severity).index(self)


def severity_of(finding: Finding) -> Severity:
    """High strikes shared objects today; low needs both another interpreter and sharing."""
    is_shared = any(one.kind in _SHARED for one in finding.candidate.evidence)
    today = finding.strikes is not Strikes.FREE_THREADED or finding.verdict is Verdict.DEADLOCK
    if today and is_shared:
        return Severity.HIGH
    return Severity.MEDIUM if today or is_shared else Severity.LOW


def suggestion_for(candidate: Candidate) -> str:
    """Return the change that would mend it, as a sentence without a period."""
    state = listed([f"`{name}`" for name in candidate.state])
    unguarded = sorted({one.call for one in candidate.accesses if not one.guarded})
    calls = listed([f"`{name}`" for name in unguarded or candidate.calls])
    owner = "self." if candidate.owner else ""
    if candidate.lock is not None:
        return f"Hold `{owner}{candidate.lock}` in {calls} around every use of {state}"
    where = "`__init__`" if candidate.owner else "the module"
    return f"Make one lock beside {state} in {where}, and hold it in {calls}"


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
