from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from cleveragents.cli.grammar import parser
from cleveragents.infrastructure.plan_files import load_plan, schema

TEMPLATES = sorted(
    one.name.removesuffix(".yaml") for one in (files("cleveragents.cli") / "templates").iterdir()
)


def test_grammar_offers_exactly_the_templates_that_are_there():
    chosen = [parser().parse_args(["init", "--template", name]).template for name in TEMPLATES]
    assert chosen == TEMPLATES
    with pytest.raises(SystemExit):
        parser().parse_args(["init", "--template", "other"])


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_is_a_plan_that_loads_and_that_its_schema_allows(terminal, name):
    answer = terminal.run("init", "--template", name)
    plan = Path.cwd() / "plan.yaml"
    assert (answer.code, answer.out) == (0, f"{plan}\n")
    assert load_plan(plan).plan.nodes
    first = plan.read_text().splitlines()[0]
    told = first.removeprefix("# yaml-language-server: $schema=")
    assert told == "../../.cleveragents/plan.schema.json"
    described = json.loads((plan.parent / told).read_text())
    assert described == schema()
    jsonschema.Draft202012Validator.check_schema(described)


def test_next_command_works_when_pasted(terminal):
    answer = terminal.run("init")
    (command,) = [part for part in answer.err.split("`") if part.startswith("cleveragents ")]
    assert terminal.run(*command.split()[1:]).code == 0
    assert not Path("REPORT.md").exists()


def test_state_folder_is_made_and_kept_out_of_git(terminal):
    terminal.run("init")
    assert (terminal.path.parent / ".gitignore").read_text() == "*\n"
    assert not terminal.path.exists()


def test_record_tells_what_was_written(terminal):
    (record,) = terminal.run("init", "--json").records
    assert record == {
        "kind": "plan_file",
        "file": str(Path.cwd() / "plan.yaml"),
        "schema": str(terminal.path.parent / "plan.schema.json"),
        "next": "cleveragents run plan.yaml",
    }


@pytest.mark.parametrize("link", [False, True], ids=["file", "dangling-link"])
def test_plan_that_is_there_is_not_overwritten_without_force(terminal, link):
    plan = Path("plan.yaml")
    plan.symlink_to("nowhere") if link else plan.write_text("mine\n")
    answer = terminal.run("init", "--template", "model")
    assert (answer.code, answer.out) == (2, "")
    assert "is there already; nothing was written" in answer.err
    assert "`cleveragents init --force --template=model`" in answer.err
    assert link or plan.read_text() == "mine\n"
    assert not terminal.path.parent.exists()


def test_force_replaces_the_plan(terminal):
    Path("plan.yaml").write_text("mine\n")
    assert terminal.run("init", "--force").code == 0
    assert load_plan("plan.yaml").plan.nodes


def test_plan_that_somebody_made_at_that_moment_is_not_overwritten(terminal, monkeypatch):
    Path("plan.yaml").write_text("mine\n")
    monkeypatch.setattr(os.path, "lexists", lambda _: False)
    answer = terminal.run("init")
    assert answer.code == 3
    assert "cannot be written: File exists" in answer.err
    assert Path("plan.yaml").read_text() == "mine\n"


def test_schema_is_printed_and_nothing_is_written(terminal):
    answer = terminal.run("init", "--schema")
    assert json.loads(answer.out) == schema()
    assert not Path("plan.yaml").exists()
    assert not terminal.path.parent.exists()
