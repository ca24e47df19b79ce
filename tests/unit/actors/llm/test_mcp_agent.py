"""A model actor with a live MCP server, in a plan that really runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from cleveragents.application.run_journal import PlanState
from cleveragents.domain.plan import LlmActor, McpServer, Node, Plan
from cleveragents.runs import RunParts, Runs
from unit.actors.llm.llmkit import COST, MODEL, PRICES, ScriptedLine, say, use

SERVER = str(Path(__file__).parents[1] / "mcp" / "mcp_server.py")


def test_model_calls_tools_of_a_server_and_is_told_when_it_died(workspace):
    line = ScriptedLine(
        use(("mcp_box_add", {"a": 1})),
        use(("mcp_box_die", {}), ("mcp_box_add", {"a": 1})),
        say("Done"),
    )
    node = Node(
        name="work",
        actor=LlmActor(MODEL, "Do it"),
        mcp={"box": McpServer(command=(sys.executable, SERVER), timeout_s=20)},
    )
    with Runs(workspace, RunParts(line=line, prices=PRICES)) as runs:
        result = runs.run(Plan(goal="Try it", nodes=(node,)), "p-1")
        spent = runs.tracker.balance("plan", "p-1").spent
    assert result.state is PlanState.DONE, result.error
    assert line.results(1) == ["3"]
    assert ["gave no answer" in one for one in line.results()] == [True, True]
    assert spent.pico == 3 * COST.pico
    assert "mcp_box_add" in {tool.name for tool in line.calls[0].tools}
