"""`run` with models: prices and rates of the settings file are in force."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

from cleveragents.actors.building import build_actor
from cleveragents.cli.run_desk import RunDesk
from cleveragents.domain.plan import LlmActor
from cleveragents.infrastructure.plan_files import parse_plan
from cleveragents.providers.model_access.rate_bucket import RateLimits
from cleveragents.settings import SETTINGS_FILE
from cleveragents.testing import ModelServer
from unit.cli.plankit import PlanTree

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def tree(tmp_path, monkeypatch, capsys):
    return PlanTree(tmp_path, monkeypatch, capsys)


def test_local_model_runs_once_it_has_a_price_as_the_hint_says(tree):
    with ModelServer(lambda _: "All is well") as server:
        text = (
            "goal: Look\nnodes:\n  look:\n    actor: {llm: {model: 'ollama:qwen3',"
            f" prompt: Look, base_url: '{server.openai_url}'}}}}\n"
        )
        refused = tree.run_plan(text)
        assert refused.code != 0
        assert "No price is known for model `ollama:qwen3`" in refused.err
        assert len(server.asked) == 0
        price, resume = re.findall("`([^`]+)`", refused.err.splitlines()[-1])
        subprocess.run(["sh", "-c", price], check=True, cwd=tree.root)
        answer = tree.run(*shlex.split(resume)[1:])
        assert answer.code == 0, answer.err
        assert len(server.asked) == 1


def test_rates_of_the_settings_file_are_those_of_the_run(tree):
    (tree.root / SETTINGS_FILE).write_text("[rate_limits.openai]\nrequests_per_min = 7\n")
    with RunDesk(tree.root, with_person=False) as desk:
        actor = build_actor(LlmActor("openai:m", "Look"), desk.runs.actors)
        assert actor.parts.limiter._limits == {"openai": RateLimits(7)}


def test_plan_of_the_document_is_one():
    (text,) = re.findall(r"```yaml\n(.+?)```", (DOCS / "actors.md").read_text(), re.DOTALL)
    (node,) = parse_plan(text).nodes
    assert isinstance(node.actor, LlmActor)
