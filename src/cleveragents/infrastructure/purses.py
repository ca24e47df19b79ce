"""The money of attempts: purses on the books of a cost tracker."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from cleveragents.domain.budget import Limit, Scopes, scope_key
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker, DurableReservation
from cleveragents.providers.reservation import Outcome, State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from cleveragents.application.attempts import Payer
    from cleveragents.domain.plan import Plan
    from cleveragents.domain.usage import Usage
    from cleveragents.infrastructure.durable_cost_tracker import Settlement
    from cleveragents.infrastructure.ledger import Posted
    from cleveragents.infrastructure.store import Store
    from cleveragents.providers.cost_tracker import CostTracker
    from cleveragents.providers.reservation import Reservation


class TrackerPurses:
    """The `Purses` of a cost tracker: each attempt spends on its plan, node, actor and session."""

    def __init__(self, tracker: CostTracker) -> None:
        self._tracker = tracker
        # Of each plan that was begun here or resumed. Replaced as a whole; what two threads lose
        # of each other is looked up again, because all of it is in the books.
        self._limits: Mapping[str, tuple[Limit, ...]] = {}

    def set_budget(self, plan_id: str, plan: Plan) -> None:
        """Put the limits of a plan and of its nodes in force."""
        limits = [] if plan.budget is None else [*plan.budget.limits_of(plan_id)]
        limits += [
            Limit("label", node.budget.max_usd, name=_label(plan_id, node.name))
            for node in plan.nodes
            if node.budget is not None
        ]
        for limit in limits:
            self._tracker.set_limit(limit)
        self._limits = {**self._limits, plan_id: tuple(limits)}

    def open(self, payer: Payer, on_spend: Callable[[Money], object]) -> TrackerPurse:
        """Return the purse of one attempt, or refuse: bills without a promise ate the budget."""
        limits = self._limits.get(payer.plan_id)
        if limits is None:  # the plan was begun by another process
            limits = self._tracker.limits
            self._limits = {**self._limits, payer.plan_id: limits}
        for limit in limits:
            self._refuse_if_overspent(limit, payer)
        return TrackerPurse(self._tracker, payer, on_spend)

    def _refuse_if_overspent(self, limit: Limit, payer: Payer) -> None:
        own = {"plan": payer.plan_id, "label": _label(payer.plan_id, payer.node)}
        if not limit.hard or limit.name is None or own.get(limit.kind) != limit.name:
            return
        # The limit in force: whoever resumes may have raised it.
        now = self._tracker.balance(limit.kind, limit.name)
        if now.limit is not None and now.spent > now.limit:
            of_plan = limit.kind == "plan"
            whose = f"plan `{payer.plan_id}`" if of_plan else f"node `{payer.node}`"
            raise BudgetExceeded(
                f"The budget of {whose} is overspent; no attempt is started",
                facts={
                    "scope": scope_key(limit.kind, limit.name),
                    "spent": now.spent,
                    "limit": now.limit,
                    "node": payer.node,
                },
                hint=(_more_for_the_plan if of_plan else _more_for_the_node)(payer, now.spent),
            )


class TrackerPurse:
    """The `Purse` of one attempt."""

    def __init__(
        self, tracker: CostTracker, payer: Payer, on_spend: Callable[[Money], object]
    ) -> None:
        self._tracker = tracker
        self._payer = payer
        self._on_spend = on_spend
        # Of each model. Replaced as a whole; what two threads lose of each other is made again.
        self._known: Mapping[str | None, Scopes] = {}

    def reserve(self, amount: Money | float, *, model: str | None = None) -> HeldMoney:
        """Promise money to a call, or refuse with BudgetExceeded before anything is spent."""
        try:
            reservation = self._tracker.reserve(amount, self._scopes(model))
        except BudgetExceeded as refused:
            name = _label(self._payer.plan_id, self._payer.node)
            if refused.facts.get("scope") == scope_key("label", name):
                # Only here it is known that this label is a node, and how its limit is raised.
                needed = sum(refused.facts[one].pico for one in ("spent", "promised", "asked"))
                refused.hint = _more_for_the_node(self._payer, Money(needed))
            raise
        return HeldMoney(reservation, self._on_spend)

    def record(
        self,
        amount: Money | float,
        *,
        usage: Usage | None = None,  # noqa: ARG002  # the books hold money; tokens are the actor's to tell
        model: str | None = None,
    ) -> None:
        """Record a bill that came without a promise; it is never refused."""
        self._tracker.record_usage(amount, self._scopes(model))
        self._on_spend(Money.of(amount))

    def correct(self, reservation: str, amount: Money | float) -> None:
        """Put a bill in place of what stands for a promise, whoever made it; twice is fine."""
        if not isinstance(self._tracker, DurableCostTracker):
            return  # what lives in memory has no bills of dead processes
        found = self._tracker.find(reservation)
        if found is not None:
            # Where nobody knew the bill, its upper bound stands there and was told.
            HeldMoney(found, self._on_spend).settle(amount)

    def _scopes(self, model: str | None) -> Scopes:
        scopes = self._known.get(model)
        if scopes is None:
            payer = self._payer
            scopes = Scopes(
                plan=payer.plan_id,
                session=payer.session,
                actor=payer.actor,
                model=model,
                labels=(_label(payer.plan_id, payer.node),),
            )
            self._known = {**self._known, model: scopes}
        return scopes


class HeldMoney:
    """Money that is promised to one call; a block that ends by an error keeps it charged.

    `on_spend` hears by how much each step changed what is charged, for the one thread that calls.
    """

    def __init__(self, reservation: Reservation, on_spend: Callable[[Money], object]) -> None:
        self._reservation = reservation
        self._on_spend = on_spend
        self._told = reservation.charged

    @property
    def id(self) -> str | None:
        """What the books call it; None where they live in memory."""
        ours = self._reservation
        return ours.id if isinstance(ours, DurableReservation) else None

    def settle(self, amount: Money | float) -> object:
        """Charge what was billed, and give the rest back."""
        outcome = self._reservation.settle(amount)
        self._tell()
        return outcome

    def settlement(self, amount: Money | float, store: Store) -> Settlement | None:
        """Return `settle` as a write of a store; None where the books are not in it."""
        ours = self._reservation
        if not isinstance(ours, DurableReservation) or not isinstance(
            ours.tracker, DurableCostTracker
        ):
            return None
        settled = ours.tracker.settlement(ours, amount)
        if settled.store is not store:
            return None

        def done(posted: Posted) -> Outcome:
            outcome = settled.done(posted)
            self._tell()
            return outcome

        return replace(settled, done=done)

    def release(self) -> object:
        """Give it all back: nothing was billed."""
        outcome = self._reservation.release()
        self._tell()
        return outcome

    def abandon(self) -> None:
        """Keep it charged as unconfirmed: nobody says what it cost."""
        self._reservation.abandon()
        self._tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What was abandoned on purpose stays so: only an open promise ends with its block.
        if self._reservation.state is State.OPEN:
            self._reservation.__exit__(kind, error, trace)
            self._tell()

    def _tell(self) -> None:
        change = self._reservation.charged - self._told
        if change:
            self._told += change
            self._on_spend(change)


def _more_for_the_plan(payer: Payer, needed: Money) -> str:
    command = ["cleveragents", "resume", payer.plan_id, "--budget-usd-max", _twice(needed)]
    return f"Run `{shlex.join(command)}`"


def _more_for_the_node(payer: Payer, needed: Money) -> str:
    # The plan is kept as it was when it was begun: neither its file nor the budget of the whole
    # plan changes what a node may spend.
    name = _label(payer.plan_id, payer.node)
    command = ["cleveragents", "budget", "set", "label", _twice(needed), "--name", name]
    return f"Run `{shlex.join(command)}`"


def _twice(needed: Money) -> str:
    """Return twice what is needed: enough to go on, and still a limit."""
    return f"{Money(2 * needed.pico).usd.normalize():f}"


def _label(plan_id: str, node: str) -> str:
    return f"node={plan_id}/{node}"
