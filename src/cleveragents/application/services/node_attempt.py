"""One attempt at a node, from its start to the moment when its result is durable and merged.

The order of the steps is what makes a crash harmless:
the changes are sealed, then the result is kept together with their id, then they are merged, and
then the node is done. Whoever finds a result that is kept and not done merges its changes, which
are merged already or not, and goes on; what is sealed and belongs to no result is rejected.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.attempts import AttemptContext, Payer
from cleveragents.application.services.attempt_order import Outcome
from cleveragents.application.services.attempt_recovery import (
    FEEDBACK_MAX,
    conflict_of,
    failed_check,
    feedback_of,
    forbidden_writes,
    kept_error,
    out_of_time,
    recovered,
)
from cleveragents.application.services.node_rendering import rendered, rendered_inputs
from cleveragents.application.write_patterns import forbidden
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.context_request import Written
from cleveragents.domain.error_record import Action, ErrorCategory
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.domain.plan_graph import NodeState
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.run_events import LogLine, SpendChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.attempts import Actor, Bench, Recorded
    from cleveragents.application.run_journal import NodeRecord, RunBook
    from cleveragents.application.services.attempt_order import Crew, Order
    from cleveragents.domain.context_request import ContextRequest
    from cleveragents.domain.money import Money
    from cleveragents.domain.plan import Node
    from cleveragents.domain.plan_actors import Check
    from cleveragents.domain.run_events import RunEvent

_log = logging.getLogger(__name__)

OUTPUT_BYTES_MAX: Final = 10_000_000
_LOG_CHARS_MAX: Final = 2_000
_REJECTED: Final = "A person rejected the changes of the attempt before"


class NodeAttempt:
    """Carries out one order, in the thread of a worker.

    Whatever the actor does, the order gets an outcome, unless the runner gave it up before;
    only a store or a tree that cannot be written raises.
    """

    def __init__(
        self, crew: Crew, book: RunBook, order: Order, on_event: Callable[[RunEvent], object]
    ) -> None:
        self._crew = crew
        self._book = book
        self._order = order
        self._on_event = on_event
        self._actor: Actor | None = None
        self._recorded: Recorded | None = None
        self._is_ours = False

    def run(self) -> Outcome | None:
        """Run the attempt; None when the runner gave it up meanwhile."""
        order = self._order
        if order.record.state is not NodeState.RUNNING:
            return self._landed(order.record)
        bench = self._crew.workbench.open(
            order.plan_id, order.record.id, order.record.attempt, actor=order.record.actor
        )
        try:
            made = self._made(bench)
        except BaseException as error:  # noqa: BLE001  # an actor may raise anything, and it is recorded
            self._throw_away(bench)
            if self._claimed():
                return self._failed(error)
            self._let_go(error)
            return None
        finally:
            _closed(bench)
        return self._landed(made)

    def give_up(self) -> Outcome:
        """Say what becomes of an attempt whose worker hangs; the runner has claimed it."""
        return self._failed(out_of_time(self._order, left=True))

    # -- working ---------------------------------------------------------------------------

    def _made(self, bench: Bench) -> NodeRecord:
        """Let the actor work, and check what it made."""
        order = self._order
        if order.fault is not None:
            raise order.fault
        inputs = rendered_inputs(order.node, order.scope)
        node = rendered(order.node, order.scope, inputs)
        assert node.actor is not None, "a plan gives each node an actor"
        self._actor = _actor_of(self._crew.build_actor(node.actor), order.fall_backs)
        result = self._actor.run(self._context(node, inputs, bench))
        if not self._claimed() or order.stop.stopped:
            raise _Stopped
        output = _kept_output(order, result.output)
        changeset = bench.seal()
        self._check_writes(changeset)
        if node.check is not None:
            self._check(node, node.check, bench)
        return replace(
            order.record,
            state=NodeState.MERGING,
            output=output,
            changeset=changeset,
            feedback=(),
            error=None,
        )

    def _context(self, node: Node, inputs: dict[str, Any], bench: Bench) -> AttemptContext:
        order = self._order
        payer = Payer(
            plan_id=order.plan_id,
            node=order.node.name,
            actor=order.record.actor or "",
            session=order.session,
        )
        return AttemptContext(
            plan_id=order.plan_id,
            goal=order.goal,
            node=node,
            instance=order.record.id,
            attempt=order.record.attempt,
            inputs=inputs,
            feedback=order.record.feedback,
            bench=bench,
            purse=self._crew.purses.open(payer, self._tell_spend),
            stop=order.stop,
            log=self._tell_line,
            find_context=self._finder(bench),
            hand_over=self._take_over,
        )

    def _finder(self, bench: Bench) -> Callable[[ContextRequest], Any] | None:
        """Return what finds context in the files as this attempt sees them."""
        find = self._crew.find_context
        if find is None:
            return None
        # Looked at once for each request: what is written meanwhile is for the next one.
        return lambda request: find(replace(request, overlay=Written(bench.changed())))

    def _check_writes(self, changeset: str | None) -> None:
        patterns = self._order.node.writes
        if patterns is None or changeset is None:
            return
        paths = forbidden(self._crew.workbench.paths(changeset), patterns)
        if paths:
            raise forbidden_writes(self._order, paths)

    def _check(self, node: Node, check: Check, bench: Bench) -> None:
        argv = ("sh", "-c", check.command) if isinstance(check.command, str) else check.command
        command = Command(
            argv,
            env=node.env,
            folder=node.folder,
            limits=CommandLimits(time_s=check.timeout_s),
            network=bool(node.network),
        )
        finished = bench.run(command, stop=self._order.stop)
        if finished.stopped is not None or finished.exit_code != 0:
            raise failed_check(self._order, finished)

    # -- ending ----------------------------------------------------------------------------

    def _landed(self, made: NodeRecord) -> Outcome:
        """Keep the result, merge its changes, and only then call the node done."""
        done = replace(made, state=NodeState.DONE)
        if made.changeset is not None:
            if self._order.record.state is NodeState.RUNNING:
                self._book.put(made)
            try:
                merged = self._crew.workbench.merge(made.changeset)
            except PlanError as error:
                if error.code != "CA4108":
                    raise
                # A person rejected the changes meanwhile: the node is to be run once more.
                return self._once_more()
            if merged.conflicts and made.state is NodeState.CONFLICTED:
                # Nobody has chosen yet.
                return Outcome(self._order, made)
            if merged.conflicts:
                return self._failed(conflict_of(self._order, merged), made)
        if self._order.troubled:
            self._crew.errors.record_success(self._order.plan_id, node=done.id)
        return Outcome(self._order, done, is_kept=False)

    def _failed(self, error: BaseException, made: NodeRecord | None = None) -> Outcome:
        """Record a failure and decide about it; `made` is a result that cannot be merged."""
        order = self._order
        if order.stop.stopped and made is None:
            self._let_go(error)
            if order.stop.reason != order.time_is_up:
                return self._interrupted()
            if not _is_out_of_time(error):
                error = out_of_time(order)
        has_other = getattr(self._actor, "fall_back", None) is not None
        record, decision = recovered(
            self._crew, order, error, other_actor=has_other, recorded=self._recorded_as(error)
        )
        kept = replace(
            made or order.record,
            state=_state_after(decision.action),
            feedback=feedback_of(error, record, order.record.feedback),
            error=kept_error(error, record, decision),
        )
        if made is not None and decision.action is Action.ASK:
            kept = replace(kept, state=NodeState.CONFLICTED)
        elif kept.changeset is not None:
            self._crew.workbench.reject(kept.changeset)
            kept = replace(kept, output=None, changeset=None)
        self._book.put(kept, wait=False)
        return Outcome(order, kept, record, decision)

    def _interrupted(self) -> Outcome:
        """Leave the node to the next run: it was stopped because this one ends."""
        record = replace(self._order.record, state=NodeState.WAITING)
        self._book.put(record, wait=False)
        return Outcome(self._order, record)

    def _once_more(self) -> Outcome:
        record = replace(
            self._order.record,
            state=NodeState.WAITING,
            output=None,
            changeset=None,
            # An actor that remembers its work must hear that it is to be done otherwise.
            feedback=(*self._order.record.feedback, _REJECTED)[-FEEDBACK_MAX:],
        )
        self._book.put(record, wait=False)
        return Outcome(self._order, record)

    def _throw_away(self, bench: Bench) -> None:
        """Keep on record what a failed attempt did, and out of the plan's tree."""
        try:
            changeset = bench.seal()
            if changeset is not None:
                self._crew.workbench.reject(changeset)
        except Exception:  # noqa: BLE001  # the attempt failed already, and that is what counts
            # Its sandbox stays until the next collection of garbage, which salvages it.
            _log.exception("The changes of `%s` are not sealed yet", self._order.record.id)

    def _take_over(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def _recorded_as(self, error: BaseException) -> Recorded | None:
        """Return what the actor has put on record about the error that it raised."""
        found = self._recorded
        return found if found is not None and found.error is error else None

    def _let_go(self, error: BaseException) -> None:
        """Decide about a fault that came to nothing, because the attempt was to end anyway."""
        recorded = self._recorded_as(error)
        if recorded is not None:
            self._crew.errors.keep_decision(
                recorded.record, Action.RETRY, "the attempt was stopped meanwhile"
            )

    def _claimed(self) -> bool:
        self._is_ours = self._is_ours or self._order.claim.take()
        return self._is_ours

    # -- telling ---------------------------------------------------------------------------

    def _tell_line(self, text: str) -> None:
        order = self._order
        line = redact_to(str(text), _LOG_CHARS_MAX)
        self._book.log(order.record, line)
        self._on_event(
            LogLine(
                plan_id=order.plan_id,
                node=order.record.id,
                attempt=order.record.attempt,
                text=line,
            )
        )

    def _tell_spend(self, amount: Money) -> None:
        order = self._order
        self._on_event(
            SpendChanged(
                plan_id=order.plan_id,
                node=order.record.id,
                attempt=order.record.attempt,
                amount=amount,
            )
        )


class _Stopped(Exception):  # noqa: N818  # never leaves this module
    """The actor came back after it was asked to stop: what it made does not count."""


def _actor_of(actor: Actor, fall_backs: int) -> Actor:
    for _ in range(fall_backs):
        actor = getattr(actor, "fall_back", None) or actor
    return actor


def _state_after(action: Action) -> NodeState:
    match action:
        case Action.SKIP:
            return NodeState.SKIPPED
        case Action.ASK | Action.ABORT | Action.REPLAN:
            return NodeState.FAILED
        case _:
            return NodeState.WAITING


def _is_out_of_time(error: BaseException) -> bool:
    return getattr(error, "code", None) == "CA2201"


def _kept_output(order: Order, output: Any) -> Any:
    """Return an output as the journal keeps it, so that a resumed run sees the same."""
    try:
        text = json.dumps(output, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    else:
        if len(text) <= OUTPUT_BYTES_MAX:
            return json.loads(text)
        why = f"it has {len(text):,} bytes of at most {OUTPUT_BYTES_MAX:,}"
    raise RequestError(
        f"The output of node `{order.record.id}` cannot be kept: {why}",
        code="CA4202",
        facts={"node": order.record.id, "category": ErrorCategory.BAD_OUTPUT},
        hint="Return texts, numbers, lists and mappings; put what is large into a file",
    )


def _closed(bench: Bench) -> None:
    try:
        bench.close()
    except Exception:  # noqa: BLE001  # what counts is in the store already
        # What a sandbox leaves behind is found by the next collection of garbage.
        _log.exception("A sandbox is not given back yet")
