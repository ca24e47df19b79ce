"""All that the steps of one scenario know."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cleveragents import (
    CircuitBreaker,
    Container,
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
    Settings,
)
from cleveragents.testing import FrozenClock, run_together
from tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = "p-7f3a"
#: How many jobs "at the same moment" takes in all: few actors meet rarely, so they try more often.
JOBS = 160


class NoLock:
    """What the racy twin holds instead of a lock."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


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
    #: The same beginning, for each time that something happens at the same moment.
    rounds: list[World] = field(default_factory=list)
    beginnings: list[Callable[[World], object]] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)
    folder: TemporaryDirectory[str] = field(default_factory=TemporaryDirectory)
    tracker: CostTracker = field(init=False)
    recovery: ErrorRecoveryService = field(init=False)
    plan: PlanExecutionContext = field(init=False)
    breaker: CircuitBreaker = field(init=False)
    executor: ParallelStrategyExecutor = field(init=False)
    container: Container = field(init=False)
    #: Made by the first step that speaks of files.
    opened_tree: Tree | None = None

    def __post_init__(self) -> None:
        self.tracker = CostTracker(clock=self.clock, on_notice=self.notices.append)
        self.recovery = ErrorRecoveryService(clock=self.clock, chance=lambda: 0.5)
        self.plan = PlanExecutionContext(plan_id=PLAN)
        self.breaker = CircuitBreaker(3, pause_s=30.0, clock=self.clock)
        self.executor = ParallelStrategyExecutor(breaker=self.breaker)
        self.container = Container(Settings())
        if os.environ.get("CLEVERAGENTS_TWIN") == "racy":
            self.lose_the_locks()

    def lose_the_locks(self) -> None:
        """Become the twin that every scenario about the same moment must catch."""
        self.tracker._daily_costs_lock = NoLock()
        self.recovery._lock = NoLock()
        self.plan._changeset_lock = NoLock()
        self.plan._changeset_store._lock = NoLock()
        self.breaker._lock = NoLock()
        self.container._plan_contexts_lock = NoLock()

    def begin(self, beginning: Callable[[World], object]) -> None:
        """Put this world, and every round of it, into a state."""
        beginning(self)
        self.beginnings.append(beginning)

    def at_the_same_moment(
        self,
        jobs: Callable[[World], list[Callable[[], Any]]],
        restless: tuple[str, ...] = ("cleveragents.",),
    ) -> None:
        """Let all jobs start at once, in many rounds, giving way to each other as they run."""
        while len(self.rounds) * len(jobs(self)) < JOBS:
            world = World()
            for beginning in self.beginnings:
                world.begin(beginning)
            world.outcomes = run_together(jobs(world), restless=restless, seed=len(self.rounds))
            self.rounds.append(world)

    @property
    def root(self) -> Path:
        return Path(self.folder.name)

    @property
    def tree(self) -> Tree:
        """The files of a user, with a workspace on them."""
        if self.opened_tree is None:
            self.opened_tree = Tree(self.root)
        return self.opened_tree

    def give_budget(self, amount: Any) -> None:
        self.tracker.set_limit(Limit("plan", amount, name=PLAN))

    def ask_for_context(self) -> Any:
        request = ContextRequest("change x", self.root, ("app.py",))
        return ContextPipeline(self.executor, self.helpers).build(request)

    def close(self) -> None:
        for world in self.rounds:
            world.close()
        if self.opened_tree is not None:
            self.opened_tree.close()
        self.container.close()
        self.executor.close()
        self.folder.cleanup()
