"""Many model actors at once, a server that fails at random, and one dollar for all of them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

pytest.importorskip("pydantic_ai")

from cleveragents.application.services.circuit_breaker import CircuitBreaker
from cleveragents.application.services.error_recovery_service import (  # only with an SDK
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.provider_gate import GateTerms, ProviderGate
from cleveragents.application.services.recovery_policy import RecoveryPolicy
from cleveragents.domain.money import Money
from cleveragents.domain.plan import Budget, LlmActor, Node, Plan
from cleveragents.domain.plan_graph import NodeState
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.providers.pricing import Price, PriceTable
from cleveragents.runs import RunParts, Runs
from cleveragents.testing import (
    BreakOff,
    CallTool,
    Cut,
    Garble,
    ModelServer,
    Refusal,
    Refuse,
    Say,
)
from cleveragents.workspace import Workspace, WorkspaceOptions

pytestmark = pytest.mark.stress

ACTORS = 64
MODEL = "openai:cheap"
LIMIT = Money.of(1)
FAULTS = (
    Refuse(Refusal.RATE_LIMIT, retry_after_s=0.01),
    Refuse(Refusal.OVERLOADED),
    Refuse(Refusal.SERVER_ERROR),
    Cut(),
    Cut(after_events=1),
    BreakOff(),
    Garble(),
)


def script_of(chance, faults):
    """Read a file, look again, and be done; now and then a fault, of any kind."""

    def script(asked):
        fault = chance.choice(FAULTS) if chance.random() < faults else None
        if isinstance(fault, Refuse):
            return fault
        answer = Say("done") if asked.turns >= 2 else CallTool("read_file", {"path": "a.txt"})
        return answer if fault is None else [answer, fault]

    return script


def recovery(store):
    policy = RecoveryPolicy(backoff_s=0.001, backoff_s_max=0.01, rate_limit_backoff_s=0.01)
    return ErrorRecoveryService(
        RecoverySettings(policy=policy),
        gate=ProviderGate(GateTerms(pause_s=0.005, pause_s_max=0.02)),
        journal=SqliteErrorJournal(store),
    )


def run(root, server, prices):
    nodes = tuple(
        Node(
            name=f"n{number}",
            actor=LlmActor(MODEL, "Look", base_url=server.openai_url, tokens_max=400),
            on_failure="continue",
            tools=("read_file",),
        )
        for number in range(ACTORS)
    )
    plan = Plan(
        goal="Look", nodes=nodes, at_once=ACTORS, budget=Budget(max_usd=1), on_failure="continue"
    )
    options = WorkspaceOptions(sandbox_kind="copy", confinement="off")
    with Workspace(root, options=options) as workspace:
        store = workspace.changes.store
        with DurableCostTracker(store) as tracker:
            parts = RunParts(
                tracker=tracker,
                prices=prices,
                errors=recovery(store),
                breaker=CircuitBreaker(pause_s=0.02, pause_s_max=0.05),
            )
            with Runs(workspace, parts) as runs:
                result = runs.run(plan, "p")
            with store.read() as connection:
                rows = connection.execute("SELECT billed FROM reservations WHERE state = 'settled'")
                confirmed = Counter(billed for (billed,) in rows)
                ((kept,),) = connection.execute("SELECT count(*) FROM turns")
            assert kept <= confirmed.total()
            billed = Counter(prices.cost_of(MODEL, bill.usage).pico for bill in server.bills)
            judge_money(tracker, billed, confirmed)
        return result, recovery(store).history("p")


def judge_money(tracker, billed, confirmed):
    """The books hold every bill: what is unconfirmed is listed, and bounds its bill."""
    balance = tracker.balance("plan", "p")
    assert balance.spent <= LIMIT
    assert balance.promised == Money(0)
    unconfirmed = sorted(tracker.expire(), key=lambda one: one.upper_bound, reverse=True)
    bounds = [one.upper_bound.pico for one in unconfirmed]
    assert balance.spent.pico == sum(confirmed.elements()) + sum(bounds)
    assert confirmed <= billed
    strays = sorted((billed - confirmed).elements(), reverse=True)
    assert len(strays) <= len(bounds)
    assert all(stray <= bound for stray, bound in zip(strays, bounds, strict=False))
    for number, one in enumerate(unconfirmed):
        if number < len(strays):
            one.settle(Money(strays[number]))
        else:
            one.release()
    assert tracker.balance("plan", "p").spent.pico == sum(billed.elements())


@pytest.mark.parametrize("seed", range(1))
def test_one_dollar_is_never_exceeded_whatever_fails(tmp_path, seed):
    """64 actors, 192 questions, and money for a part of them."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_text("a\n")
    prices = PriceTable({MODEL: Price(input_mtok=5, output_mtok=40)})
    with ModelServer(script_of(random.Random(seed), 0.2)) as server:
        result, history = run(tmp_path / "tree", server, prices)
    assert history.count == history.decision_count
    states = Counter(one.state for one in result.nodes.values())
    assert sum(states.values()) == ACTORS
    assert states[NodeState.DONE] > 0
