"""Model actors are made lazily: no SDK is loaded before the first one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cleveragents.actors.building import build_actor, check_actor
from cleveragents.actors.llm.building import llm_actor
from cleveragents.domain.errors import SetupError
from cleveragents.domain.plan import LlmActor
from cleveragents.runs import RunParts, Runs
from unit.actors.llm.llmkit import MODEL, PRICES, ScriptedLine

VALUE = LlmActor("test:m", "Do it")


def test_runs_know_how_to_ask_models(workspace):
    line, value = ScriptedLine(), LlmActor(MODEL, "Do it")
    with Runs(workspace, RunParts(line=line, prices=PRICES)) as runs:
        assert build_actor(value, runs.actors).value is value
        check_actor(value, runs.actors)
    assert line.checked == [(MODEL, None)]


def test_line_of_its_own_is_closed_with_the_runs(workspace):
    with Runs(workspace) as runs:
        line = build_actor(VALUE, runs.actors).parts.line
    assert line._closed


def test_missing_packages_are_named(desk, monkeypatch):
    monkeypatch.setitem(sys.modules, "cleveragents.actors.llm.actor", None)
    with pytest.raises(SetupError, match="not installed") as caught:
        llm_actor(VALUE, desk.parts())
    assert caught.value.code == "CA1007"


def test_everyday_imports_load_no_sdk():
    """Also not what makes model actors, until one is made."""
    code = (
        "import sys, cleveragents, cleveragents.runs, cleveragents.cli.main,"
        " cleveragents.actors.llm.building, cleveragents.actors.llm.parts;"
        " print([one for one in sys.modules if one.split('.')[0] in"
        " {'pydantic', 'pydantic_ai', 'openai', 'anthropic'}])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
