"""What became of a candidate: a replayed interleaving, silence, or the reason why nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cleveragents.hunt.candidate import Candidate
    from cleveragents.hunt.trial import Trial

__all__ = ["Finding", "Outcome", "Step", "Strikes", "Verdict"]


class Verdict(StrEnum):
    """How the proof of a candidate ended."""

    #: An interleaving was replayed whose outcome no order of whole calls can have.
    PROVEN = "proven"
    #: Everything that was tried came out as in some order of whole calls.
    SILENT = "silent"
    #: Calls waited for one another and none could go on.
    DEADLOCK = "deadlock"
    #: What differs may be harmless: only the order inside a list, for example.
    BENIGN = "benign"
    #: The object cannot be built, copied or called by what is known of it.
    UNBUILDABLE = "unbuildable"
    #: The module cannot be imported.
    UNIMPORTABLE = "unimportable"
    #: It hung, crashed, or ran out of its time or memory.
    GAVE_UP = "gave-up"
    #: It does not behave the same twice even in one thread.
    UNSTEADY = "unsteady"
    #: Only reading can judge it: nothing of it can be tried.
    NOT_TRIABLE = "not-triable"

    @property
    def is_bug(self) -> bool:
        """Say whether this is reported as a bug, and not as a suspicion."""
        return self in {self.PROVEN, self.DEADLOCK}


class Strikes(StrEnum):
    """Where a proven interleaving can happen."""

    #: The interpreter may switch threads at every point where the interleaving does.
    TODAY = "today"
    #: Some switch is at a point where an interpreter with its lock never switches.
    FREE_THREADED = "free-threaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line that one of the threads ran."""

    thread: int
    path: str
    line: int
    function: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What each call gave, and what state was left: as text, normalised."""

    #: `returned 3` or `raised KeyError`, one for each call.
    calls: tuple[str, ...]
    #: What the object holds afterwards.
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A candidate with its verdict; the fields after `reason` are set where something was tried."""

    candidate: Candidate
    verdict: Verdict
    #: One sentence without a period: what is lost and when, or why nothing is known.
    reason: str
    trial: Trial | None = None
    observed: Outcome | None = None
    #: What every order of whole calls gives, each once.
    sequential: tuple[Outcome, ...] = ()
    steps: tuple[Step, ...] = ()
    #: How often the interleaving was replayed, and how often its outcome came out again.
    replays: int = 0
    reproduced: int = 0
    strikes: Strikes | None = None
    #: `sweep` or `random`, and how many interleavings were seen in all.
    strategy: str = ""
    explored: int = 0
    trials: int = 0
    elapsed_s: float = 0.0
    #: The schedule as the explorer needs it to replay it, as JSON.
    schedule: str = ""
