"""A model actor looks for context in its own files, in a plan that really runs."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai")

from cleveragents.application.run_journal import PlanState
from cleveragents.bootstrap import Container
from cleveragents.domain.plan import LlmActor, Node, Plan
from cleveragents.domain.plan_options import ContextWish
from cleveragents.runs import RunParts, Runs
from cleveragents.settings import Settings
from unit.actors.llm.llmkit import MODEL, PRICES, ScriptedLine, say, use


def test_model_is_told_of_the_tree_and_finds_what_it_has_just_written(workspace, tmp_path):
    (workspace.changes.root / "deposits.py").write_text("def take_deposit(amount): ...\n")
    refund = "def refund_deposit(amount):\n    return amount\n"
    line = ScriptedLine(
        use(("write_file", {"path": "refunds.py", "text": refund})),
        use(("context", {"task": "refund the deposit"})),
        say("Done"),
    )
    wish = ContextWish(task="take the deposit")
    node = Node(name="work", actor=LlmActor(MODEL, "Do it"), context=wish)
    settings = Settings(context_index_folder=str(tmp_path / "index"))
    with Container(settings) as services:
        parts = RunParts(line=line, prices=PRICES, find_context=services.pipeline.build)
        with Runs(workspace, parts) as runs:
            result = runs.run(Plan(goal="Try it", nodes=(node,)), "p-1")
    assert result.state is PlanState.DONE, result.error
    assert "def take_deposit" in str(line.calls[0])
    assert "refund_deposit" not in str(line.calls[0])
    (found,) = line.results()
    assert refund in found
