"""One run of a plan: a loop in one thread decides, and workers do what takes time."""

from __future__ import annotations

import queue
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cleveragents.application.run_journal import Lost, NodeRecord, PlanState, StopRequest
from cleveragents.application.services.attempt_order import Order, Outcome, actor_name
from cleveragents.application.services.attempt_workers import AttemptWorkers
from cleveragents.application.services.consultation import Consultant, Consulted
from cleveragents.application.services.narrator import Narrator
from cleveragents.application.services.node_attempt import NodeAttempt
from cleveragents.application.services.node_rendering import rendered_inputs
from cleveragents.application.services.plan_progress import PlanProgress
from cleveragents.application.services.result_keeper import ResultKeeper
from cleveragents.application.services.run_result import RunResult, end_of, past_deadline, stops_all
from cleveragents.application.services.timers import Timers
from cleveragents.domain.error_record import Action
from cleveragents.domain.errors import CleverAgentsError
from cleveragents.domain.plan import OnFailure
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.run_journal import RunBook
    from cleveragents.application.services.attempt_order import Crew
    from cleveragents.application.services.run_options import RunOptions
    from cleveragents.domain.plan import Node, Plan
    from cleveragents.domain.plan_graph import Instance
    from cleveragents.domain.run_events import RunEvent


@dataclass(frozen=True, slots=True)
class _Flight:
    """An order that a worker carries out now."""

    order: Order
    began: float


@dataclass(frozen=True, slots=True)
class _Broken:
    """The work of a worker raised what it never should: the store or the tree is not there."""

    error: BaseException
    node: str | None = None


#: So many messages are heard before a look at the clock.
_TOGETHER_MAX: Final = 1_000
#: Who asks twice waits for no actor that hangs: what it did not finish is run again.
_NOW_S: Final = 0.4
_Message: TypeAlias = "Outcome | Consulted | StopRequest | Lost | RunEvent | _Broken"


class PlanRun:
    """Runs one plan to its end; `go` is the coordinating thread, and owns all that is here.

    Any thread, and a signal handler, may call `request_stop`. At most `at_once` attempts run at
    the same time. A node starts when what it needs is durable, and never before.
    """

    def __init__(self, crew: Crew, options: RunOptions) -> None:
        self._crew = crew
        self._listener = options.listener
        self._grace_s = options.grace_s
        self._clock = options.clock
        self._consultant = Consultant(options.ask, options.replan)
        # What others tell the coordinating thread: the one thing that threads share here.
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._workers = AttemptWorkers()
        self._keeper: ResultKeeper
        self._narrator: Narrator
        self._timers = Timers(options.clock)
        self._flights: dict[str, _Flight] = {}
        self._consulting = self._delayed = 0
        self._tries: dict[str, int] = {}
        self._fall_backs: dict[str, int] = {}
        self._stopping: PlanState | None = None
        self._was_asked = self._hurries = self._troubled = False
        self._limit: CleverAgentsError | None = None
        self._lost: BaseException | None = None
        self._book: RunBook
        self._plan: Plan
        self._progress: PlanProgress
        self._records: dict[str, NodeRecord] = {}

    def request_stop(self, state: PlanState = PlanState.CANCELLED) -> None:
        """Ask the run to end: the first time attempts finish, the second time they are stopped."""
        self._inbox.put(StopRequest(state))

    def hear(self, news: StopRequest | Lost) -> None:
        """Take a wish of others, or the loss of the plan; safe from any thread."""
        self._inbox.put(news)

    def go(self, book: RunBook, plan: Plan) -> RunResult:
        """Run all that can be run, and return how the plan stands then."""
        self._book, self._plan = book, plan
        self._records = {one.id: one for one in book.nodes}
        self._troubled = any(one.attempt > 1 or one.error for one in book.nodes)
        self._progress = PlanProgress(self._plan, self._records)
        self._narrator = Narrator(book.plan.id, self._listener)
        self._narrator.plan_started(len(plan.nodes), self._progress.settled)
        if self._plan.deadline_s is not None:
            self._timers.after(self._plan.deadline_s, self._reach_deadline)
        self._keeper = ResultKeeper(self._keep, self._inbox.put, self._refuse)
        try:
            while self._is_busy():
                self._start_what_may()
                self._hear()
        except BaseException:
            # Ctrl-C, or our bug: attempts are asked to stop, and the next run goes on.
            self._stop_attempts("the run was broken off")
            raise
        finally:
            self._workers.leave(self._consulting)
            left = self._workers.close()
            self._keeper.close()
        if self._lost is not None:
            raise self._lost
        return self._ended(left)

    # -- starting --------------------------------------------------------------------------

    def _is_busy(self) -> bool:
        # A person who is asked may take long: who is in a hurry does not wait for the answer.
        if self._flights or (self._consulting and not self._hurries):
            return True
        return self._stopping is None and bool(self._progress.ready or self._delayed)

    def _start_what_may(self) -> None:
        ready, orders = self._progress.ready, list[Order]()
        free = self._plan.at_once - len(self._flights)
        while ready and self._stopping is None and len(orders) < free:
            one = ready.popleft()
            if one.kept is not None:
                orders.append(self._order(one.instance, one.kept))
            elif (order := self._begun(one.instance, one.fault)) is not None:
                orders.append(order)
        # Written before any of them does anything, and not waited for: the store keeps the order.
        starting = [one.record for one in orders if one.record.state is NodeState.RUNNING]
        if starting:
            self._book.put(*starting, wait=False)
        for order in orders:
            self._launch(order)

    def _begun(self, instance: Instance, fault: CleverAgentsError | None) -> Order | None:
        """Return the order for an attempt; None when the node is to be skipped."""
        node = self._progress.nodes[instance.node]
        known = self._records.get(instance.id) or NodeRecord(id=instance.id, node=node.name)
        scope: dict[str, Any] = {}
        if fault is None:
            scope = self._progress.scope_of(instance)
            try:
                if not _is_wanted(node, scope):
                    skipped = replace(known, state=NodeState.SKIPPED)
                    self._book.put(skipped, wait=False)
                    self._finish(skipped)
                    return None
            except CleverAgentsError as error:
                fault = error
        actor = actor_name(node.actor)
        record = replace(known, state=NodeState.RUNNING, attempt=known.attempt + 1, actor=actor)
        self._tries[instance.id] = self._tries.get(instance.id, 0) + 1
        return self._order(instance, record, scope, fault)

    def _order(
        self,
        instance: Instance,
        record: NodeRecord,
        scope: dict[str, Any] | None = None,
        fault: CleverAgentsError | None = None,
    ) -> Order:
        node = self._progress.nodes[instance.node]
        tries, most = self._tries.get(record.id, 0), node.attempts_max or 1
        return Order(
            plan_id=self._book.plan.id,
            goal=self._plan.goal,
            node=node,
            instance=instance,
            record=record,
            stop=StopSignal(),
            scope=scope or {},
            session=self._book.plan.session,
            fault=fault,
            fall_backs=self._fall_backs.get(record.id, 0),
            no_attempt=f"all {most} attempts are used" if tries >= most else None,
            can_replan=self._consultant.can_replan,
            troubled=self._troubled,
        )

    def _launch(self, order: Order) -> None:
        name, number = order.record.id, order.record.attempt
        self._records[name] = order.record
        self._flights[name] = _Flight(order, self._clock())
        if order.record.state is NodeState.RUNNING:
            assert order.node.timeout_s is not None, "a plan gives each node a timeout"
            self._timers.after(order.node.timeout_s, lambda: self._time_out(name, number))
            self._narrator.started(order.record, self._progress.size_of(order.node.name) or 0)
        self._work_on(order, NodeAttempt.run)

    def _work_on(self, order: Order, part: Callable[[NodeAttempt], Outcome | None]) -> None:
        """Let a worker do its part of an attempt; no two workers share what it is done with."""
        attempt = NodeAttempt(self._crew, self._book, order, self._inbox.put)
        self._workers.start(lambda: self._carry_out(lambda: part(attempt), order.record.id))

    def _carry_out(self, work: Callable[[], _Message | None], node: str | None = None) -> None:
        """Do work in a worker's thread, and tell the coordinating thread what came of it."""
        try:
            message = work()
        except BaseException as error:  # noqa: BLE001  # nobody else would hear of it
            message = _Broken(error, node)
        if isinstance(message, Outcome) and not message.is_kept:
            self._keeper.keep(message)
        elif message is not None:
            self._inbox.put(message)

    def _keep(self, outcomes: list[Outcome]) -> None:
        self._book.put(*(one.record for one in outcomes))

    def _refuse(self, outcome: Outcome, error: BaseException) -> None:
        self._inbox.put(_Broken(error, outcome.record.id))

    # -- hearing ---------------------------------------------------------------------------

    def _hear(self) -> None:
        """Take what came, or wait for it until the next timer is due."""
        if self._is_busy():
            with suppress(queue.Empty):
                self._heard(self._inbox.get(timeout=self._timers.next_s()))
                # What came meanwhile is heard too, so that nodes that start now start together.
                for _ in range(_TOGETHER_MAX):
                    self._heard(self._inbox.get_nowait())
        self._timers.run()

    def _heard(self, message: _Message) -> None:
        match message:
            case Outcome():
                self._came(message)
            case Consulted():
                self._consulted(message)
            case StopRequest():
                self._stop(message)
            case Lost():
                self._lose(message.error)
            case _Broken(error=error, node=node):
                self._flights.pop(node or "", None)
                self._lose(error)
            case _:
                self._narrator.tell(message)

    def _came(self, outcome: Outcome) -> None:
        record = outcome.record
        flight = self._flights.pop(record.id)
        self._records[record.id] = record
        if outcome.decision is not None:
            self._failed(outcome)
        elif record.state is NodeState.WAITING:
            # Stopped by us, or to be run once more because its changes were rejected.
            self._progress.run_again(outcome.order.instance)
        else:
            self._finish(record, self._clock() - flight.began)

    def _failed(self, outcome: Outcome) -> None:
        record, decision = outcome.record, outcome.decision
        assert decision is not None, "a failure has a decision"
        self._troubled = True
        self._narrator.failed(outcome)
        if stops_all(record):
            # More attempts would only be refused more often.
            self._stopping = self._stopping or PlanState.FAILED
            self._finish(record)
        elif outcome.again:
            if decision.action is Action.FALL_BACK:
                self._fall_backs[record.id] = self._fall_backs.get(record.id, 0) + 1
            self._run_again(outcome.order.instance, decision.delay_s)
        elif self._stopping is None and self._consultant.knows(outcome):
            self._consulting += 1
            consult = self._consultant.consult
            self._workers.start(lambda: self._carry_out(lambda: consult(outcome)))
        else:
            self._finish(record)

    def _run_again(self, instance: Instance, delay_s: float) -> None:
        def ready() -> None:
            self._delayed -= 1
            self._progress.run_again(instance)

        self._delayed += 1
        self._timers.after(delay_s, ready)

    def _consulted(self, said: Consulted) -> None:
        self._consulting -= 1
        record, instance = said.record, said.outcome.order.instance
        self._records[record.id] = record
        if said.node is not None:
            self._plan = self._consultant.revised(self._plan, said.node, self._book)
            self._progress.replace_plan(self._plan)
        self._book.put(record, wait=False)
        if record.state is NodeState.WAITING:
            self._tries[record.id] = 0
            self._progress.run_again(instance)
        else:
            self._finish(record)

    def _finish(self, record: NodeRecord, duration_s: float = 0.0) -> None:
        """Take a node that came to its end into account."""
        self._records[record.id] = record
        if record.state in {NodeState.DONE, NodeState.SKIPPED}:
            self._progress.settle(record.id, record.node, record.state, record.output)
        elif self._progress.nodes[record.node].on_failure is OnFailure.STOP:
            self._stopping = self._stopping or PlanState.FAILED
        self._narrator.finished(record, duration_s)

    # -- stopping --------------------------------------------------------------------------

    def _stop(self, request: StopRequest) -> None:
        if self._was_asked or request.hard:
            self._stop_attempts("the run was asked to stop at once", min(_NOW_S, self._grace_s))
        self._was_asked = True
        self._stopping = self._stopping or request.state

    def _stop_attempts(self, reason: str, grace_s: float | None = None) -> None:
        self._hurries = True
        for name, flight in self._flights.items():
            flight.order.stop.stop(reason)
            self._give_up_later(name, flight.order.record.attempt, grace_s)

    def _time_out(self, name: str, number: int) -> None:
        flight = self._flights.get(name)
        if flight is not None and flight.order.record.attempt == number:
            flight.order.stop.stop(flight.order.time_is_up)
            self._give_up_later(name, number)

    def _give_up_later(self, name: str, number: int, grace_s: float | None = None) -> None:
        def give_up() -> None:
            flight = self._flights.get(name)
            if flight is None or flight.order.record.attempt != number:
                return
            # A result that is kept already is being merged, by us, and that comes to an end.
            is_running = flight.order.record.state is NodeState.RUNNING
            if is_running and flight.order.claim.take():
                self._workers.leave()
                self._work_on(flight.order, NodeAttempt.give_up)

        self._timers.after(self._grace_s if grace_s is None else grace_s, give_up)

    def _lose(self, error: BaseException) -> None:
        self._lost = self._lost or error
        self._stopping = self._stopping or PlanState.FAILED
        self._stop_attempts("the plan is lost to this process")

    def _reach_deadline(self) -> None:
        self._limit = past_deadline(self._book.plan.id, self._plan.deadline_s or 0.0)
        self._stopping = self._stopping or PlanState.FAILED
        self._stop_attempts("the plan reached its deadline")

    # -- ending ----------------------------------------------------------------------------

    def _ended(self, left_behind: int) -> RunResult:
        plan_id = self._book.plan.id
        state, exit_code, error = end_of(plan_id, self._records)
        if not self._progress.is_complete:
            if self._limit is not None:
                state, exit_code, error = PlanState.FAILED, 4, self._limit.to_dict()
            elif self._stopping in {PlanState.PAUSED, PlanState.CANCELLED}:
                state, exit_code, error = self._stopping, 130, None
        self._book.end(state, error)
        self._narrator.plan_ended(state, exit_code)
        return RunResult(
            plan_id=plan_id,
            state=state,
            exit_code=exit_code,
            error=error,
            nodes=dict(self._records),
            outputs=dict(self._progress.outputs),
            blocked=self._progress.blocked(),
            left_behind=left_behind,
        )


def _is_wanted(node: Node, scope: dict[str, Any]) -> bool:
    """Ask the condition of a node, which may look at its inputs."""
    if node.when is None:
        return True
    return node.when.holds({**scope, "inputs": rendered_inputs(node, scope)})
