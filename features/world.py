"""All that the steps of one scenario know."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cleveragents import (
    CircuitBreaker,
    ContextPipeline,
    ContextRequest,
    CostTracker,
    ErrorRecoveryService,
    Fragment,
    Limit,
    Notice,
    ParallelStrategyExecutor,
    PlanExecutionContext,
    Scopes,
)
from cleveragents.testing import FrozenClock

PLAN = "p-7f3a"


@dataclass
class Helper:
    """A strategy whose health the scenario decides; `runs` counts its requests."""

    name: str
    sick: bool = False
    runs: int = 0

    def find(self, *_: object) -> list[Fragment]:
        self.runs += 1
        if self.sick:
            raise OSError("sick")
        return [Fragment("app.py", 1, 1, "x = 1", 1.0, self.name, "found")]


@dataclass
class World:
    """The services under test, and what the last event brought about."""

    clock: FrozenClock = field(default_factory=FrozenClock)
    scopes: Scopes = field(default_factory=lambda: Scopes(plan=PLAN))
    notices: list[Notice] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)
    folder: TemporaryDirectory[str] = field(default_factory=TemporaryDirectory)
    tracker: CostTracker = field(init=False)
    recovery: ErrorRecoveryService = field(init=False)
    plan: PlanExecutionContext = field(init=False)
    breaker: CircuitBreaker = field(init=False)
    executor: ParallelStrategyExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.tracker = CostTracker(clock=self.clock, on_notice=self.notices.append)
        self.recovery = ErrorRecoveryService(clock=self.clock, chance=lambda: 0.5)
        self.plan = PlanExecutionContext(plan_id=PLAN)
        self.breaker = CircuitBreaker(3, pause_s=30.0, clock=self.clock)
        self.executor = ParallelStrategyExecutor(breaker=self.breaker)

    @property
    def root(self) -> Path:
        return Path(self.folder.name)

    def give_budget(self, amount: Any) -> None:
        self.tracker.set_limit(Limit("plan", amount, name=PLAN))

    def ask_for_context(self) -> Any:
        request = ContextRequest("change x", self.root, ("app.py",))
        return ContextPipeline(self.executor, self.helpers).build(request)

    def close(self) -> None:
        self.executor.close()
        self.folder.cleanup()
