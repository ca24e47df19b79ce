from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import PLAN
from cleveragents.domain.plan_records import specs_of
from cleveragents.domain.plan_rules import Findings
from cleveragents.infrastructure.plan_files import dump, parse_plan, reference, schema
from cleveragents.infrastructure.plan_files.description import _records
from cleveragents.infrastructure.plan_files.yaml_source import read_yaml
from unit.infrastructure.plan_files.plan_strategies import plans

VALIDATOR = Draft202012Validator(schema())
NODE = {"actor": {"command": "ls"}}


def is_valid(data):
    return VALIDATOR.is_valid(data)


def is_accepted(data):
    found = Findings()
    PLAN.read(data, (), found)
    return not found.mistakes


def test_schema_is_itself_valid():
    Draft202012Validator.check_schema(schema())


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans())
def test_schema_accepts_every_plan(plan):
    VALIDATOR.validate(read_yaml(dump(plan)).data)


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"for_each": "${nodes.b.output}"},
        {"for_each": {"over": {"k": 1}, "as": "part"}},
        {"check": "pytest -q"},
        {"check": ["pytest"]},
        {"check": {"command": "a | b", "shell": True}},
        {"outputs": ["a"]},
        {"when": False},
        {"budget": {"max_usd": "0.10"}},
        {"actor": {"scripted": [{"print": "x"}, {"fail": "x", "category": "tool.crash"}]}},
        {"actor": {"llm": {"model": "m", "prompt": "p"}}},
    ],
)
def test_schema_and_rules_accept_the_same_forms(node):
    data = {"goal": "x", "nodes": {"a": {**NODE, "needs": ["b"], **node}, "b": JSON_NODE}}
    assert is_accepted(data)
    VALIDATOR.validate(data)
    listed = [{"name": name, **one} for name, one in data["nodes"].items()]
    VALIDATOR.validate({**data, "nodes": listed})


JSON_NODE = {**NODE, "outputs": "json"}


@pytest.mark.parametrize(
    "change",
    [
        {"goal": ""},
        {"goal": 7},
        {"goal": None},
        {"goall": "x"},
        {"at_once": 0},
        {"at_once": 257},
        {"at_once": True},
        {"deadline_s": -1},
        {"on_failure": "halt"},
        {"apply": True},
        {"name": "Bad Name"},
        {"budget": {"max_usd": -1}},
        {"budget": {"max_eur": 1}},
        {"budget": {"limits": [{"kind": "week", "max_usd": 1}]}},
        {"defaults": {"timeout_s": 0}},
        {"nodes": {}},
        {"nodes": []},
        {"nodes": 7},
        {"nodes": {"A": NODE}},
        {"nodes": [NODE]},
        {"nodes": {"a": {**NODE, "name": "a"}}},
        {"nodes": {"a": {"actor": {}}}},
        {"nodes": {"a": {"actor": {"command": "ls", "python": "a:b"}}}},
        {"nodes": {"a": {"actor": {"magic": 1}}}},
        {"nodes": {"a": {"actor": {"llm": {"model": "m"}}}}},
        {"nodes": {"a": {"actor": {"scripted": [{"print": 1}]}}}},
        {"nodes": {"a": {"actor": {"python": "nonsense"}}}},
        {"nodes": {"a": {**NODE, "needs": "b"}}},
        {"nodes": {"a": {**NODE, "needs": ["B"]}}},
        {"nodes": {"a": {**NODE, "outputs": "xml"}}},
        {"nodes": {"a": {**NODE, "writes": ["/etc"]}}},
        {"nodes": {"a": {**NODE, "writes": ["a/../b"]}}},
        {"nodes": {"a": {**NODE, "folder": ".."}}},
        {"nodes": {"a": {**NODE, "env": {"A": 1}}}},
        {"nodes": {"a": {**NODE, "env": {"A-B": "x"}}}},
        {"nodes": {"a": {**NODE, "inputs": {"a-b": 1}}}},
        {"nodes": {"a": {**NODE, "for_each": 7}}},
        {"nodes": {"a": {**NODE, "for_each": {"over": [1], "as": "nodes"}}}},
        {"nodes": {"a": {**NODE, "when": 7}}},
        {"nodes": {"a": {**NODE, "network": "no"}}},
        {"nodes": {"a": {**NODE, "attempts_max": 0}}},
        {"nodes": {"a": {**NODE, "recovery": {"cures": {"boom": []}}}}},
        {"nodes": {"a": {**NODE, "recovery": {"times_max": {"retry": -1}}}}},
        {"nodes": {"a": {**NODE, "check": {}}}},
        {"nodes": {"a": {**NODE, "check": 7}}},
        {"nodes": {"a": {**NODE, "tools": ["x", "x"]}}},
    ],
)
def test_schema_and_rules_refuse_the_same_mistakes(change):
    data = {"goal": "x", "nodes": {"a": NODE}, **change}
    assert not is_accepted(data)
    assert not is_valid(data)


def test_example_of_the_reference_is_a_plan():
    example = re.search(r"```yaml\n(.*?)```", reference(), re.DOTALL)[1]
    plan = parse_plan(example)
    assert plan.graph.order() == ("scan", "tidy", "report")


def test_reference_describes_every_field_with_rule_and_default():
    page = reference()
    for kind in _records():
        section = page.split(f"## {kind.__name__}\n")[1].split("\n## ")[0]
        for one in specs_of(kind):
            row = next(line for line in section.splitlines() if line.startswith(f"| `{one.key}` |"))
            assert one.about in row
            assert one.rule.says in row
            assert row.count(" | ") == 3
    assert "| `at_once` | how many nodes run at once |" in page
    assert page.endswith("|\n")


def test_schema_tells_editors_what_each_field_is():
    plan = schema()["$defs"]["Plan"]
    assert plan["required"] == ["goal", "nodes"]
    assert plan["properties"]["at_once"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 256,
        "description": "how many nodes run at once",
        "default": 8,
    }
    assert "name" not in schema()["$defs"]["Node"].get("required", [])


def test_what_only_a_whole_plan_shows_is_left_to_the_rules():
    data = {"goal": "x", "nodes": {"a": {**NODE, "needs": ["a"]}}}
    assert is_valid(data)
    with pytest.raises(RequestError, match="a → a"):
        parse_plan("goal: x\nnodes: {a: {actor: {command: ls}, needs: [a]}}")
