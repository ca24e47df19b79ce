"""Servers of further tools, as a plan names them."""

from __future__ import annotations

import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.domain.plan import PLAN, McpServer, Node, Plan, PrintStep, ScriptedActor

WEB = McpServer(command=("serve", "--web"), env={"KEY": "x"}, tools=("fetch",))
BOX = McpServer(url="http://127.0.0.1:8000/mcp", timeout_s=5, permission="read")


def plan(**values) -> Plan:
    node = Node(name="a", actor=ScriptedActor((PrintStep("x"),)), mcp=values.pop("of_node", {}))
    return Plan(goal="x", nodes=(node,), **values)


def test_a_node_has_the_servers_of_its_plan_and_its_own():
    other = McpServer(command=("serve", "--other"))
    made = plan(mcp={"web": WEB, "box": BOX}, of_node={"web": other})
    assert dict(made.resolved()["a"].mcp) == {"web": other, "box": BOX}
    assert dict(plan().resolved()["a"].mcp) == {}


def test_servers_are_written_as_they_are_read():
    told = PLAN.plain(plan(mcp={"web": WEB, "box": BOX}))
    assert told["mcp"] == {
        "web": {"command": ["serve", "--web"], "env": {"KEY": "x"}, "tools": ["fetch"]},
        "box": {"url": "http://127.0.0.1:8000/mcp", "timeout_s": 5.0, "permission": "read"},
    }


def test_a_server_may_run_by_default_and_no_less():
    assert WEB.permission == "run"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "must have one of `command` and `url`, got none"),
        ({"command": ["a"], "url": "http://b"}, "must have one of `command` and `url`, got both"),
        ({"command": []}, "`command` must start with the name of a program"),
        ({"command": [" "]}, "`command` must start with the name of a program"),
        ({"url": "http://b", "env": {"A": "x"}}, "`env` must stand beside a `command`"),
        ({"url": "ftp://b"}, "the address of a server"),
        ({"command": ["a"], "permission": "all"}, "one of `read`, `write`, `run`"),
        ({"command": ["a"], "timeout_s": 0}, "seconds"),
        ({"command": ["a"], "env": {"A": 7}}, "text"),
    ],
    ids=["none", "both", "empty", "blank", "env", "address", "permission", "time", "value"],
)
def test_a_server_that_breaks_a_rule_is_refused(values, says):
    with pytest.raises(RequestError, match=says) as error:
        McpServer(**values)
    assert error.value.code == "CA1101"


@pytest.mark.parametrize("name", ["Web", "a-b", "", "1", "x" * 21])
def test_the_name_of_a_server_must_fit_into_the_names_of_tools(name):
    with pytest.raises(RequestError, match="small letters"):
        plan(mcp={name: WEB})
