"""ACMS, the context pipeline: run strategies, rank what they find, pack it into a token budget.

This module is the door: what belongs to the pipeline can be imported from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.application.services.context_assembly import (
    Origin,
    Outline,
    Passage,
    approximate_tokens,
    pack,
    render,
)
from cleveragents.application.services.context_ranking import Finding, rank
from cleveragents.application.services.strategy_executor import (
    ExecutionLimits,
    ParallelStrategyExecutor,
)
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import Fragment
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.domain.strategy import Strategy, StrategyReport, StrategyStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "CircuitBreaker",
    "Context",
    "ContextPipeline",
    "ContextRequest",
    "ExecutionLimits",
    "Fragment",
    "Origin",
    "Outline",
    "ParallelStrategyExecutor",
    "Passage",
    "StopSignal",
    "Stopped",
    "Strategy",
    "StrategyReport",
    "StrategyStatus",
    "approximate_tokens",
]


@dataclass(frozen=True, slots=True)
class Context:
    """What a model gets to read for a task, and how each strategy contributed."""

    #: In the order of the text: the best file first, and each file from top to bottom.
    fragments: tuple[Passage, ...]
    reports: tuple[StrategyReport, ...]
    #: Of exactly the text that `render` returns.
    tokens: int
    #: How many found fragments have no line in it.
    omitted: int
    #: The next best files, which have no line in it.
    outlines: tuple[Outline, ...] = ()
    #: All files in which something was found, the best first.
    files: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the text for the model."""
        return render(self.fragments, self.outlines)


class ContextPipeline:
    """Builds contexts; it keeps no state of a request, so threads may share one.

    The same answers of the strategies give the same context, byte for byte,
    in whatever order they finish; what a strategy could not give, its report says.
    """

    def __init__(
        self,
        executor: ParallelStrategyExecutor,
        strategies: Iterable[Strategy],
        *,
        count_tokens: Callable[[str], int] = approximate_tokens,
    ) -> None:
        self._executor = executor
        self._strategies = tuple(strategies)
        self._weights = tuple(map(_weight_of, self._strategies))
        self._count_tokens = count_tokens

    def build(
        self,
        request: ContextRequest,
        *,
        deadline_s: float | None = None,
        stop: StopSignal | None = None,
    ) -> Context:
        """Find, rank and pack what the request needs; bad strategies cost only their own part.

        `deadline_s` holds for finding. To rank and pack comes on top: it takes time in
        proportion to what was found, and about as long as `count_tokens` takes for all of it.
        """
        # A request object of its own: strategies share by it what they look at once per build.
        asked = replace(request)
        reports = self._executor.run(self._strategies, asked, deadline_s=deadline_s, stop=stop)
        findings = [
            Finding(report.fragments, weight)
            for report, weight in zip(reports, self._weights, strict=True)
        ]
        ranked = rank(findings)
        packed = pack(ranked, request.tokens_max, self._count_tokens)
        return Context(
            packed.passages,
            reports,
            packed.tokens,
            packed.omitted,
            packed.outlines,
            ranked.files,
        )


def _weight_of(strategy: Strategy) -> int:
    weight = getattr(strategy, "weight", 1)
    if type(weight) is not int or weight < 1:
        raise RequestError(
            f"The weight of strategy `{strategy.name}` must be a whole number from 1,"
            f" got {weight!r}"
        )
    return weight
