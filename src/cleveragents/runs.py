"""Runs of plans on a workspace: the plan runner with everything that it needs, wired once.

Like `bootstrap`, it names concrete classes:

    with Workspace(root) as workspace, Runs(workspace) as runs:
        result = runs.run(plan)
"""

from __future__ import annotations

import logging
import queue
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from cleveragents.actors.building import ActorParts, build_actor
from cleveragents.application.run_journal import PlanState
from cleveragents.application.services.attempt_order import Claim, Crew
from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.application.services.plan_runner import PlanRunner
from cleveragents.domain.budget import Limit
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import CleverAgentsError, PlanError
from cleveragents.infrastructure.changes.attempt_changes import merged_changes, own_changes
from cleveragents.infrastructure.changes.harvest import Harvest
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.plan_jobs import LEASE_S
from cleveragents.infrastructure.plan_journal import SqliteRunJournal
from cleveragents.infrastructure.purses import TrackerPurses
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.tool_journal import StoredToolJournal
from cleveragents.providers.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from cleveragents.actors.llm.parts import Line, LlmParts
    from cleveragents.application.attempts import Actor, Files
    from cleveragents.application.run_journal import NodeRecord, PlanRecord
    from cleveragents.application.services.run_options import RunOptions
    from cleveragents.application.services.run_result import RunResult
    from cleveragents.domain import plan_actors
    from cleveragents.domain.command import Command, Finished
    from cleveragents.domain.conflict import MergeOutcome
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.money import Money
    from cleveragents.domain.plan import Plan
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.providers.cost_tracker import CostTracker
    from cleveragents.providers.model_access.rate_limiter import RateLimiter
    from cleveragents.workspace import Attempt, Workspace

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """What may be put in place of the usual parts; None means the usual one, on the same store."""

    build_actor: Callable[[plan_actors.Actor], Actor] | None = None
    #: What the usual actors are made of; how to ask models is added where it is missing.
    actors: ActorParts = field(default_factory=ActorParts)
    prices: PriceTable | None = None
    #: Carries calls to models; whoever gives one closes it.
    line: Line | None = None
    #: Pauses models that keep failing.
    breaker: CircuitBreaker | None = None
    limiter: RateLimiter | None = None
    tracker: CostTracker | None = None
    errors: ErrorRecoveryService | None = None
    find_context: Callable[[ContextRequest], Any] | None = None
    #: A process that was silent for so long loses the plans that it runs.
    lease_s: float = LEASE_S


class Runs:
    """Runs plans on one tree, for any number of threads; several processes may have one each.

    One plan is run by one process at a time, and goes on in another one when that died.
    """

    def __init__(
        self,
        workspace: Workspace,
        parts: RunParts | None = None,
        options: RunOptions | None = None,
    ) -> None:
        given = parts or RunParts()
        store = workspace.changes.store
        with ExitStack() as opened:
            tracker = given.tracker or opened.enter_context(DurableCostTracker(store))
            self.tracker = tracker
            self.errors = given.errors or ErrorRecoveryService(journal=SqliteErrorJournal(store))
            self.journal = SqliteRunJournal(store, lease_s=given.lease_s)
            llm = given.actors.llm or self._model_actors(workspace, given)
            self.actors = replace(given.actors, llm=llm)
            benches = WorkspaceBenches(workspace)
            crew = Crew(
                workbench=benches,
                purses=TrackerPurses(tracker),
                errors=self.errors,
                build_actor=given.build_actor or partial(build_actor, parts=self.actors),
                find_context=given.find_context,
            )
            self._benches = benches
            self._runner = PlanRunner(crew, self.journal, options)
            self._opened = opened.pop_all()

    def add(
        self,
        plan: Plan,
        plan_id: str | None = None,
        *,
        session: str | None = None,
        folder: str | None = None,
        draft: bool = False,
    ) -> str:
        """Keep a plan, with the folder of its file, to be run later; return its id."""
        state = PlanState.DRAFT if draft else PlanState.READY
        return self._runner.add(plan, plan_id, session=session, folder=folder, state=state)

    def run(
        self, plan: Plan, plan_id: str | None = None, *, session: str | None = None
    ) -> RunResult:
        """Keep a plan and run it to its end, in this thread."""
        return self._runner.run(plan, plan_id, session=session)

    def resume(self, plan_id: str, *, budget_usd_max: Money | float | None = None) -> RunResult:
        """Go on with a plan where it stands, with a budget of its own if one is given."""
        if budget_usd_max is not None:
            self.journal.get(plan_id)
            self.tracker.set_limit(Limit("plan", budget_usd_max, name=plan_id))
        return self._runner.resume(plan_id)

    def pause(self, plan_id: str) -> None:
        """Let whoever runs the plan finish what runs and stop; asked twice, stop at once."""
        self.journal.ask_to_stop(plan_id, PlanState.PAUSED)

    def cancel(self, plan_id: str) -> None:
        """Cancel a plan, run by whichever process or by none; asked twice, stop at once.

        What a dead process left of it is settled: work is in the store, promised money is charged.
        """
        try:
            self.journal.ask_to_stop(plan_id, PlanState.CANCELLED)
        except PlanError as error:
            if error.code != "CA6203":
                raise
            self.journal.move(plan_id, PlanState.CANCELLED)
            for record in self.errors.history(plan_id).undecided:
                self.errors.keep_decision(record, Action.ABORT, "the plan was cancelled")
            self._benches.collect()

    def move(self, plan_id: str, state: PlanState) -> None:
        """Move a plan that nobody runs to another state, such as from `done` to `applied`."""
        self.journal.move(plan_id, state)

    def plans(self) -> tuple[PlanRecord, ...]:
        """Return all plans, the oldest first."""
        return self.journal.plans()

    def nodes(self, plan_id: str) -> tuple[NodeRecord, ...]:
        """Return what is known of the nodes of a plan."""
        return self.journal.nodes(plan_id)

    def _model_actors(
        self, workspace: Workspace, given: RunParts
    ) -> Callable[[plan_actors.LlmActor], Actor]:
        """Return what makes actors that ask models; all that they need is loaded for the first."""

        def parts() -> LlmParts:
            from cleveragents.actors.llm.building import llm_tools
            from cleveragents.actors.llm.parts import LlmParts
            from cleveragents.providers.model_access.line import ModelLine
            from cleveragents.providers.model_access.rate_limiter import RateLimiter

            store, root = workspace.changes.store, workspace.changes.root
            return LlmParts(
                line=given.line or self._opened.enter_context(ModelLine()),
                prices=given.prices or PriceTable(),
                errors=self.errors,
                conversations=SqliteConversations(store),
                tools=llm_tools(StoredToolJournal(store), root),
                breaker=given.breaker or CircuitBreaker(),
                limiter=given.limiter or RateLimiter(),
                root=root,
            )

        def actor(value: plan_actors.LlmActor) -> Actor:
            from cleveragents.actors.llm.building import llm_actor

            return llm_actor(value, shared.value())

        shared = _Once(parts)
        return actor

    def close(self) -> None:
        """Stop the threads; the workspace stays open."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Once(Generic[T]):
    """A value that the first caller makes, and for which all others wait."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._first = Claim()
        # Set once, before the token is there; read as one reference.
        self._made: T | None = None
        self._error: BaseException | None = None
        # Holds one token once it was tried; whoever takes it puts it back.
        self._tried: queue.SimpleQueue[None] = queue.SimpleQueue()

    def peek(self) -> T | None:
        """Return the value if it is made."""
        return self._made

    def value(self) -> T:
        """Return the value, or raise what its making raised."""
        if self._first.take():
            try:
                self._made = self._make()
            except BaseException as error:  # noqa: BLE001  # whoever waits must hear of it too
                self._error = error
            self._tried.put(None)
        if self._made is None:
            self._tried.put(self._tried.get())
        if self._error is not None:
            raise self._error
        assert self._made is not None, "it was made, or there is an error"
        return self._made


class WorkspaceBenches:
    """The `Workbench` of a workspace; a sandbox is made when an attempt looks at files."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        changes = workspace.changes
        self._harvest = Harvest(
            changes.repository, changes.changesets, changes.trees, clock=changes.clock
        )

    def begin(self, plan_id: str) -> None:
        """Take the user's tree as it stands now as the plan's base, unless it has one."""
        self._workspace.begin(plan_id)

    def check_commands(self) -> None:
        """Refuse, with CA5006, where commands must be confined and cannot be."""
        self._workspace.check_commands()

    def open(self, plan_id: str, node: str, attempt: int, *, actor: str | None) -> WorkspaceBench:
        """Return the bench of one attempt; it costs nothing until it is used."""

        def make(opened: ExitStack) -> Attempt:
            self.begin(plan_id)
            return opened.enter_context(
                self._workspace.attempt(plan_id, node, attempt, actor=actor)
            )

        return WorkspaceBench(self._workspace, self._harvest, plan_id, make)

    def paths(self, changeset_id: str) -> tuple[str, ...]:
        """Return the paths that a changeset touches, sorted."""
        entries = self._workspace.changes.changesets.get(changeset_id).entries
        return tuple(sorted({path for one in entries for path in (one.path, one.old_path) if path}))

    def merge(self, changeset_id: str) -> MergeOutcome:
        """Merge a sealed changeset into the plan's tree, or tell the conflicts."""
        return self._workspace.merge(changeset_id)

    def reject(self, changeset_id: str) -> None:
        """Leave a sealed changeset out for good."""
        self._workspace.changes.trees.reject(changeset_id)

    def salvage(self, plan_id: str, kept: Container[str]) -> None:
        """Put what dead processes left into the store, and reject what belongs to no result."""
        self.collect()
        for row in self._workspace.changes.trees.merges(plan_id):
            if row.state == "sealed" and row.changeset_id not in kept:
                self.reject(row.changeset_id)

    def collect(self) -> None:
        """Put what dead processes left into the store, and take their sandboxes away."""
        try:
            self._workspace.collect_garbage()
        except CleverAgentsError:
            # One that cannot be salvaged now is kept for the next time, and merged by nobody.
            _log.exception("A sandbox of a dead process is not salvaged yet")


class WorkspaceBench:
    """The `Bench` of one attempt; its tools may use it from several threads at once."""

    def __init__(
        self,
        workspace: Workspace,
        harvest: Harvest,
        plan_id: str,
        make: Callable[[ExitStack], Attempt],
    ) -> None:
        self._workspace = workspace
        self._harvest = harvest
        self._plan_id = plan_id
        self._opened = ExitStack()
        self._attempt: _Once[Attempt] = _Once(lambda: make(self._opened))
        self._sealed: str | None = None

    @property
    def files(self) -> Files:
        """The files of the plan as they were when the bench was first used, and own writes."""
        return self._attempt.value().files

    def run(
        self,
        command: Command,
        *,
        stop: StopSignal | None = None,
        on_output: Callable[[bytes], object] | None = None,
    ) -> Finished:
        """Run a command in the sandbox."""
        attempt = self._attempt.value()
        return attempt.run_command(command, stop=stop, on_output=on_output)

    def changed(self) -> Mapping[str, bytes | None]:
        """Return what differs here from the user's tree; a sandbox is not made for it."""
        changes = self._workspace.changes
        plan, attempt = changes.trees.begin(self._plan_id), self._attempt.peek()
        if attempt is None:
            return merged_changes(changes.repository, plan.base, plan.head)
        merged = merged_changes(changes.repository, plan.base, attempt.sandbox.commit)
        return {**merged, **own_changes(changes.repository, attempt.sandbox, attempt.files.tree)}

    def seal(self) -> str | None:
        """Put what was changed into the store, and return the changeset's id."""
        attempt = self._attempt.peek()
        if self._sealed is None and attempt is not None:
            self._harvest.seal(attempt.sandbox, attempt.changeset_id)
            self._workspace.sandboxes.mark_sealed(attempt.sandbox.id, attempt.changeset_id)
            self._sealed = attempt.changeset_id
        return self._sealed

    def close(self) -> None:
        """Give the sandbox back."""
        self._opened.close()
        attempt = self._attempt.peek()
        if self._sealed is None and attempt is not None:
            # A check that was the first to look at the files changes nothing.
            self._workspace.changes.trees.reject(attempt.changeset_id)
