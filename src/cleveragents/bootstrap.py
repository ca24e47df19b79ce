"""The container: wires the shared services once; the only place that names concrete classes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cleveragents.application.memory_changesets import InMemoryChangesetStore
from cleveragents.application.services.acms_pipeline import (
    CircuitBreaker,
    ContextPipeline,
    ContextRequest,
    ExecutionLimits,
    ParallelStrategyExecutor,
)
from cleveragents.application.services.error_recovery_service import (
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.plan_execution_context import PlanExecutionContext
from cleveragents.application.services.recovery_policy import RecoveryPolicy
from cleveragents.domain.budget import Limit
from cleveragents.infrastructure.code_index.opening import index_of
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.exact_tokens import TokenCounter
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.providers.model_access.rate_limiter import RateLimiter
from cleveragents.providers.pricing import PriceTable
from cleveragents.settings import Settings, load
from cleveragents.strategies.embeddings import Embeddings
from cleveragents.strategies.explicit_files import ExplicitFiles
from cleveragents.strategies.history import History
from cleveragents.strategies.identifier_match import IdentifierMatch
from cleveragents.strategies.lexical import Lexical
from cleveragents.strategies.names import Names
from cleveragents.strategies.references import References
from cleveragents.strategies.shared_view import SharedView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cleveragents.application.code_index import ChunkSearch, CodeIndex
    from cleveragents.application.ports import ChangesetStore
    from cleveragents.application.services.circuit_breaker import StateChange
    from cleveragents.domain.error_record import Decision, ErrorRecord
    from cleveragents.domain.event import Notice
    from cleveragents.domain.strategy import Strategy
    from cleveragents.infrastructure.code_index.opening import LazyCodeIndex
    from cleveragents.infrastructure.embeddings.chunk_vectors import ChunkVectors
    from cleveragents.infrastructure.store import Store


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who is told what happens; a listener that raises is logged and hurts nobody."""

    on_notice: Callable[[Notice], object] | None = None
    on_breaker: Callable[[StateChange], object] | None = None
    on_error: Callable[[ErrorRecord | Decision], object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What may be put in place of the usual parts; None means the usual one.

    With a `store`, money, errors and changes are durable; without one they live in memory.
    """

    store: Store | None = None
    strategies: Sequence[Strategy] | None = None
    changesets: ChangesetStore | None = None
    prices: PriceTable | None = None
    recovery: RecoveryPolicy | None = None


class Container:
    """One of each service, shared by every plan, actor and thread of a process.

    Without `settings` it takes those in force: environment, then file, then defaults.

    Every service is thread-safe by its own guarantee, and so is `plan_context`:
    all callers that name one plan get one and the same context, whoever comes first.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        parts: Parts | None = None,
        listeners: Listeners | None = None,
    ) -> None:
        self.settings = load()[0] if settings is None else settings
        given, told = parts or Parts(), listeners or Listeners()
        self.changesets = _given(given.changesets, lambda: _changesets(given.store))
        self.prices = _given(given.prices, lambda: PriceTable(dict(self.settings.prices)))
        self.limiter = RateLimiter(dict(self.settings.rate_limits))
        self.cost_tracker = _cost_tracker(self.settings, given.store, told)
        self.breaker = CircuitBreaker(
            self.settings.breaker_failures_max,
            pause_s=self.settings.breaker_pause_s,
            pause_s_max=self.settings.breaker_pause_s_max,
            on_change=told.on_breaker,
        )
        self.executor = ParallelStrategyExecutor(
            self.settings.context_workers_max,
            breaker=self.breaker,
            limits=ExecutionLimits(
                timeout_s=self.settings.context_timeout_s,
                deadline_s=self.settings.context_deadline_s,
            ),
        )
        #: None when it is switched off.
        self.index = index_of(self.settings.context_index_folder)
        #: None unless a model is named, and there is an index.
        self.vectors = _vectors(self.settings, self.index)
        self.count_tokens = TokenCounter(self.settings.context_token_count)
        self.pipeline = ContextPipeline(
            self.executor,
            _given(given.strategies, lambda: usual_strategies(self.index, self.vectors)),
            count_tokens=self.count_tokens,
        )
        self.errors = ErrorRecoveryService(
            RecoverySettings(
                policy=_given(given.recovery, RecoveryPolicy),
                kept_max=self.settings.error_records_kept_max,
            ),
            journal=None if given.store is None else SqliteErrorJournal(given.store),
            listener=told.on_error,
        )
        self._plan_contexts_lock = threading.Lock()  # guards: _plan_contexts
        self._plan_contexts: dict[str, PlanExecutionContext] = {}

    def plan_context(self, plan_id: str) -> PlanExecutionContext:
        """Return the one execution context of a plan, made by whoever asks first."""
        fresh = PlanExecutionContext(plan_id=plan_id, changeset_store=self.changesets)
        with self._plan_contexts_lock:
            known = self._plan_contexts.get(plan_id)
            if known is None:
                known = self._plan_contexts[plan_id] = fresh
            return known

    def request(self, task: str, root: Path, files: tuple[str, ...] = ()) -> ContextRequest:
        """Return a request for context with the room that the settings give."""
        return ContextRequest(task, root, files, self.settings.context_tokens_max)

    def close(self) -> tuple[str, ...]:
        """Stop the threads; return the names of those that could not be joined.

        A store that was given stays open: whoever opened it closes it.
        """
        if isinstance(self.cost_tracker, DurableCostTracker):
            self.cost_tracker.close()
        left = self.executor.close()
        if self.vectors is not None:
            self.vectors.close()
        if self.index is not None:
            self.index.close()
        return left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def usual_strategies(
    index: CodeIndex | None, search: ChunkSearch | None = None
) -> tuple[Strategy, ...]:
    """Return the strategies that look for context; without an index, those that need none."""
    if index is None:
        return ExplicitFiles(), IdentifierMatch()
    shared = SharedView(index)
    return (
        ExplicitFiles(shared),
        Lexical(shared),
        Names(shared),
        References(shared),
        History(shared),
        IdentifierMatch(shared),
        *(() if search is None else (Embeddings(shared, search),)),
    )


def _given(part: T | None, usual: Callable[[], T]) -> T:
    # Not `part or usual()`: an empty store is falsy, and still the one that was given.
    return usual() if part is None else part


def _vectors(settings: Settings, index: LazyCodeIndex | None) -> ChunkVectors | None:
    if index is None or settings.context_embeddings == "off":
        return None
    # Its packages are large, and most users have no model.
    from cleveragents.infrastructure.embeddings.chunk_vectors import ChunkVectors

    return ChunkVectors(Path(settings.context_embeddings), index.folder)


def _changesets(store: Store | None) -> ChangesetStore:
    return InMemoryChangesetStore() if store is None else SqliteChangesetStore(store)


def _cost_tracker(settings: Settings, store: Store | None, told: Listeners) -> CostTracker:
    month = settings.monthly_budget_usd
    options: dict[str, Any] = {
        "daily_budget": settings.daily_budget_usd,
        "limits": () if month is None else (Limit("month", month),),
        "zone": settings.zone,
        "reservation_ttl_s": settings.reservation_ttl_s,
        "on_notice": told.on_notice,
    }
    return CostTracker(**options) if store is None else DurableCostTracker(store, **options)
