"""A strategy finds fragments; a report says how that went."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.fragment import Fragment
    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Strategy", "StrategyReport", "StrategyStatus"]


class Strategy(Protocol):
    """Finds fragments for a request; called from many threads at once.

    It may declare `timeout_s`, its own time limit for one run,
    and `weight`, a whole number that says how much its ranking counts (1 unless it says so).
    """

    @property
    def name(self) -> str:
        """The name that reports, the breaker and fragments know it by."""
        ...

    def find(self, request: ContextRequest, stop: StopSignal) -> Iterable[Fragment]:
        """Return or yield fragments; check `stop` regularly, because nobody can end a thread."""
        ...


class StrategyStatus(StrEnum):
    """How one strategy's part of one request ended."""

    OK = "ok"
    #: It raised.
    FAILED = "failed"
    #: It gave something other than fragments, or too many of them.
    RUBBISH = "rubbish"
    #: It ran longer than its own time limit.
    TIMED_OUT = "timed_out"
    #: It is paused after failures.
    SKIPPED = "skipped"
    #: No worker was free before the request's time was up.
    NOT_STARTED = "not_started"
    #: The caller stopped the request, or the executor was closed.
    CANCELLED = "cancelled"
    #: It was running, within its own limit, when the request's time was up.
    OUT_OF_TIME = "out_of_time"

    @property
    def is_fault(self) -> bool:
        """Say whether the strategy is to blame, so that its breaker counts it."""
        return self in {self.FAILED, self.RUBBISH, self.TIMED_OUT}


@dataclass(frozen=True, slots=True)
class StrategyReport:
    """What one strategy gave, or a sentence that says why it gave nothing."""

    name: str
    status: StrategyStatus
    fragments: tuple[Fragment, ...]
    #: From its start to its end, or until it was given up; 0.0 when it never started.
    elapsed_s: float
    reason: str
    #: How long a skipped strategy stays paused.
    retry_after_s: float = 0.0
