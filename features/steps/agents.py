"""Agents that ask models: the real protocol, and a script in place of the model."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from behave import given, then, when

from cleveragents import Money, PriceTable
from cleveragents.infrastructure.plan_files import parse_plan
from cleveragents.runs import Runs
from cleveragents.testing import CallTool, ModelServer
from cleveragents.workspace import Workspace

if TYPE_CHECKING:
    from cleveragents.application.services.run_result import RunResult

MODEL = "openai:gpt-5.2"
TEST = "from sums import add\n\nassert add(2, 3) == 5\n"
WRONG = CallTool("edit_file", {"path": "sums.py", "old": "a - b", "new": "a * b"})
RIGHT = CallTool("edit_file", {"path": "sums.py", "old": "a * b", "new": "a + b"})


@dataclass
class AgentWorld:
    """A repository, a model server, and what came of the agent's plan."""

    opened: ExitStack = field(default_factory=ExitStack)
    root: Path = field(init=False)
    server: ModelServer = field(init=False)
    spent: Money = field(default_factory=lambda: Money(0))
    content: bytes = b""
    result: RunResult | None = None

    def __post_init__(self) -> None:
        self.root = Path(self.opened.enter_context(TemporaryDirectory()))

    def go(self, budget: str) -> None:
        check = [sys.executable, "-B", "test_sums.py"]
        actor = {"model": MODEL, "base_url": self.server.openai_url, "prompt": "Make it pass"}
        text = (
            f"goal: Make the test pass\nbudget: {{max_usd: {budget}}}\n"
            f"nodes: {{fix: {{actor: {{llm: {actor!r}}}, check: {check!r}}}}}"
        )
        with Workspace(self.root) as workspace, Runs(workspace) as runs:
            self.result = runs.run(parse_plan(text), "p-7f3a")
            self.spent = runs.tracker.balance("plan", "p-7f3a").spent
            if self.result.state == "done":
                self.content = workspace.changes.difference("p-7f3a").patch()


@given("a repository with a failing test")
def a_failing_test(context):
    context.agents = AgentWorld()
    context.add_cleanup(context.agents.opened.close)
    (context.agents.root / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    (context.agents.root / "test_sums.py").write_text(TEST)


@given("a model that edits wrongly first and rightly when it is told")
def a_model(context):
    script = [WRONG, "Done", RIGHT, "Now it is right"]
    context.agents.server = context.agents.opened.enter_context(ModelServer(script))


@when("an agent is asked to make the test pass")
def is_asked(context):
    context.agents.go("1")


@when("an agent is asked to make the test pass for at most {budget} USD")
def is_asked_for_at_most(context, budget):
    context.agents.go(budget)


@then('the plan of the agent is "{state}"')
def plan_of_agent_is(context, state):
    assert context.agents.result.state == state, context.agents.result


@then("the test passes with its changes")
def test_passes(context):
    assert b"+    return a + b" in context.agents.content, context.agents.content


@then("the books say what the model billed")
def books_say(context):
    prices, agents = PriceTable(), context.agents
    billed = sum(prices.cost_of(MODEL, one.usage).pico for one in agents.server.bills)
    assert agents.spent.pico == billed > 0, agents.spent


@then("the model was asked nothing")
def asked_nothing(context):
    assert context.agents.server.asked == ()


@then("nothing is paid")
def nothing_paid(context):
    assert context.agents.spent == Money(0)
