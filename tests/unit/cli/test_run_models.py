"""`run` with models: prices and rates of the settings file are in force."""

from __future__ import annotations

import re
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
from cleveragents.testing import ModelServer, Refusal, Refuse, Reply, Wait
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
        assert refused.code == 3
        assert "No price is known for model `ollama:qwen3`" in refused.err
        assert len(server.asked) == 0
        (price,) = re.findall("`([^`]+)`", refused.err.splitlines()[-1])
        subprocess.run(["sh", "-c", price], check=True, cwd=tree.root)
        answer = tree.run_plan(text)
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


ASKING = (
    "goal: Look\nnodes:\n  look:\n    actor: {{llm: {{model: 'openai:gpt-5.2', prompt: Look,"
    " base_url: '{url}'{more}}}}}\n"
)


def test_fault_that_no_model_actor_cures_is_one_error_with_one_decision(tree):
    with ModelServer([Refuse(Refusal.INVALID_KEY)]) as server:
        answer = tree.run_plan(ASKING.format(url=server.openai_url, more=""))
    assert answer.code == 1
    assert "node `look` needs a person: `openai:gpt-5.2` refused: HTTP 401" in answer.err
    (fault,) = tree.run("errors", "--json").records
    assert (fault["times"], fault["decided"]) == (1, {"ask": 1})
    assert (fault["last"]["provider"], fault["last"]["node"]) == ("openai", "look")


def test_call_that_takes_longer_than_the_plan_allows_is_ended(tree):
    slow = Reply(steps=("well", Wait(30)))
    with ModelServer([slow] * 2) as server:
        more = ", call_timeout_s: 0.3"
        answer = tree.run_plan(ASKING.format(url=server.openai_url, more=more))
    assert answer.code == 1
    told = "The call of `openai:gpt-5.2` was lost: Request to model 'gpt-5.2' timed out after 0.3 s"
    assert told in answer.err
    assert "Cancel" not in answer.err
    assert "hint: Raise `call_timeout_s` of the actor: change the plan file" in answer.err


def test_resume_tells_before_it_begins_that_a_key_is_gone(tree, monkeypatch):
    with ModelServer([Refuse(Refusal.INVALID_KEY)]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        assert tree.run_plan(ASKING.format(url=server.openai_url, more="")).code == 1
        monkeypatch.delenv("OPENAI_API_KEY")
        answer = tree.run("resume")
    assert answer.code == 3
    assert answer.err.startswith("error[CA1002]")
