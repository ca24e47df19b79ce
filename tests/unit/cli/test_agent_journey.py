"""Agents from a plan file to the user's tree: real processes, the real SDK, a scripted model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cleveragents.testing import CallTool
from unit.cli.agentkit import READ, RIGHT, RIGHTED, WRONG, agent_tree, plan_file

pytest.importorskip("pydantic_ai")

pytestmark = pytest.mark.long


def test_agent_reads_errs_is_told_and_puts_it_right(tmp_path):
    with agent_tree(tmp_path, READ, WRONG, "Done", RIGHTED, "Now it is right") as tree:
        (tmp_path / "plan.yaml").write_text(plan_file(tree.server.openai_url))
        ran = tree.run("run", "plan.yaml", "--yes", "--json")
        assert ran.code == 0, ran.err
        records = [json.loads(line) for line in ran.out.splitlines()]
        (end,) = [one for one in records if one["kind"] == "run"]
        assert tree.read("sums.py") == "def add(a, b):\n    return a + b\n"
        assert end["spent_usd"] == f"{tree.billed.usd:f}"
        told = tree.server.asked[3].text
        assert "2 + 3 is 5, got 6" in told, "the model was not told what the check said"
        assert "write_file" in tree.server.asked[0].tools
        assert tree.run("verify").code == 0
        assert tree.run("undo").code == 0
        assert tree.read("sums.py") == "def add(a, b):\n    return a - b\n"


def test_budget_that_is_too_small_sends_nothing_and_goes_on_with_a_larger_one(tmp_path):
    with agent_tree(tmp_path, RIGHT, "Done") as tree:
        (tmp_path / "plan.yaml").write_text(plan_file(tree.server.openai_url, "0.000001"))
        ran = tree.run("run", "plan.yaml")
        assert ran.code == 4, ran.err
        assert "error[CA2103]" in ran.err
        assert tree.server.asked == ()
        assert tree.run("resume", "--budget", "1", "--yes").code == 0
        assert "a + b" in tree.read("sums.py")


def test_answers_that_were_paid_are_not_paid_again_after_a_stop(tmp_path):
    """Each run ends at its limit of answers; the next one goes on with what was said."""
    with agent_tree(tmp_path, READ, RIGHT, "Done") as tree:
        text = plan_file(tree.server.openai_url).replace("prompt:", "turns_max: 1, prompt:")
        (tmp_path / "plan.yaml").write_text(text)
        codes = [tree.run("run", "plan.yaml").code]
        codes += [tree.run("resume", "--yes").code for _ in range(2)]
        assert codes == [5, 5, 0]
        assert len(tree.server.asked) == len(tree.server.bills) == 3
        assert "a + b" in tree.read("sums.py")
        assert str(tree.billed) in tree.run("list").out


def test_server_that_is_not_there_is_told_with_the_way_on(tmp_path):
    with agent_tree(tmp_path, RIGHT, "Done") as tree:
        (tmp_path / "plan.yaml").write_text(
            plan_file("http://127.0.0.1:9/v1").replace(
                "    writes", "    recovery: {times_max: {retry: 0}}\n    writes"
            )
        )
        ran = tree.run("run", "plan.yaml")
        assert ran.code == 1, ran.err
        assert "error[CA" in ran.err
        assert "cleveragents resume" in ran.err


def test_example_of_an_agent_runs_with_the_server_that_is_named(tmp_path):
    example = Path(__file__).parents[3] / "examples" / "llm"
    edit = {"path": "discount.py", "old": "price - percent", "new": "price * (100 - percent) / 100"}
    with agent_tree(tmp_path, CallTool("edit_file", edit), "Done") as tree:
        shutil.copytree(example, tmp_path, dirs_exist_ok=True)
        url = f"nodes.fix.actor.llm.base_url={tree.server.anthropic_url}"
        ran = tree.run("run", "plan.yaml", "--yes", "--set", url)
        assert ran.code == 0, ran.err
        assert "(100 - percent)" in tree.read("discount.py")
        assert tree.server.asked[0].protocol == "anthropic"
