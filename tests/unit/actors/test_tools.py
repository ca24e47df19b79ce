"""What a tool takes and refuses, which tools there are, and what is kept of calls."""

from __future__ import annotations

import json

import pytest

from cleveragents.actors.standard_tools import standard_tools
from cleveragents.actors.tool import Parameter, Tool
from cleveragents.actors.tool_journal import MemoryToolJournal, ToolRecord
from cleveragents.actors.tool_registry import ToolRegistry
from cleveragents.domain.errors import RequestError
from cleveragents.infrastructure.audit import Filter, events, verify_chain
from cleveragents.infrastructure.store import Store
from cleveragents.infrastructure.tool_journal import StoredToolJournal


def make_tool(name="echo", *parameters, **options):
    return Tool(name=name, description="…", run=lambda _: "", parameters=parameters, **options)


TEXT = Parameter(name="text", about="what to say", least=1, most=5)
TIMES = Parameter(name="times", about="how often", kind="whole", required=False, default=1, least=1)
LOUD = Parameter(name="loud", about="shout", kind="flag", required=False, default=False)
ECHO = make_tool("echo", TEXT, TIMES, LOUD)


def test_arguments_come_with_their_defaults():
    assert ECHO.accepted({"text": "hi", "loud": None}) == {"text": "hi", "times": 1, "loud": False}


def test_all_mistakes_are_told_together():
    with pytest.raises(RequestError) as caught:
        ECHO.accepted({"text": "too long", "tims": 2, "times": 0, "loud": "yes"})
    assert caught.value.code == "CA5203"
    assert caught.value.facts["mistakes"] == (
        "`tims` is not known; did you mean `times`?",
        "`text` must be text of 1 to 5 characters, got 8 characters",
        "`times` must be a whole number from 1, got 0",
        "`loud` must be true or false, got 'yes'",
    )
    assert caught.value.hint == "Call it as `echo(text, times=1, loud=False)`"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "`text` is missing: what to say"),
        ({"text": 3}, "`text` must be text of 1 to 5 characters, got 3"),
        ({"text": "a", "times": True}, "`times` must be a whole number from 1, got True"),
        (["text"], "The arguments must be a mapping of names to values, got ['text']"),
        (None, "got None"),
        ({"text": "a\ud800"}, "`text` must be text that UTF-8 can hold, got a lone surrogate"),
    ],
)
def test_each_mistake_says_rule_and_value(arguments, says):
    with pytest.raises(RequestError) as caught:
        ECHO.accepted(arguments)
    assert says in caught.value.message


def test_schema_says_the_same_rules():
    assert ECHO.schema() == {
        "type": "object",
        "properties": {
            "text": {
                "type": "string",
                "description": "what to say",
                "minLength": 1,
                "maxLength": 5,
            },
            "times": {"type": "integer", "description": "how often", "minimum": 1},
            "loud": {"type": "boolean", "description": "shout"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_tool("Bad Name"),
        lambda: make_tool("echo", TEXT, TEXT),
        lambda: make_tool("echo", timeout_s=0),
        lambda: ToolRegistry((ECHO, make_tool("echo"))),
    ],
    ids=["name", "twice", "timeout", "registered-twice"],
)
def test_tool_that_breaks_a_rule_is_refused_at_birth(make):
    with pytest.raises(RequestError):
        make()


def test_registry_gives_tools_by_name():
    other = make_tool("other")
    registry = ToolRegistry((ECHO,)).with_tools(other)
    assert registry.get("echo") is ECHO
    assert registry.tools() == (ECHO, other)
    assert registry.tools(("other", "unknown")) == (other,)


def test_unknown_tool_is_refused_with_the_one_that_may_be_meant():
    with pytest.raises(RequestError) as caught:
        standard_tools().get("read_fil")
    assert caught.value.code == "CA5203"
    assert "did you mean `read_file`?" in caught.value.message


def test_standard_tools_have_schemas_that_json_can_hold():
    names = [tool.name for tool in standard_tools().tools() if json.dumps(tool.schema())]
    assert names == [
        "read_file",
        "list_files",
        "search_text",
        "write_file",
        "edit_file",
        "apply_patch",
        "run_command",
    ]


def kept(plan="p-1", **values):
    known = {
        "call_id": "t-1",
        "plan_id": plan,
        "node": "work",
        "attempt": 1,
        "actor": "llm",
        "tool": "echo",
        "arguments": "{}",
        "at": 5.0,
        "duration_s": 0.5,
    }
    return ToolRecord(**{**known, **values})


def test_journal_in_memory_gives_the_calls_of_a_plan():
    journal = MemoryToolJournal()
    for plan in ("p-1", "p-2"):
        journal.record(kept(plan))
    assert len(journal.calls()) == 2
    assert journal.calls("p-2") == (kept("p-2"),)


def test_stored_journal_keeps_calls_in_the_audit_trail(tmp_path):
    with Store(tmp_path / "state.db") as store:
        StoredToolJournal(store).record(kept(error="caf\udce9"))
        with store.read() as connection:
            (event,) = events(connection, Filter(kind="tool"))
            assert verify_chain(connection).holds
    assert (event["kind"], event["plan"], event["actor"]) == ("tool.called", "p-1", "llm")
    assert event["body"] == kept(error="caf\udce9").to_dict()


def test_stored_journal_refuses_names_that_cannot_be_stored(tmp_path):
    with Store(tmp_path / "state.db") as store, pytest.raises(RequestError):
        StoredToolJournal(store).record(kept("p-\udce9"))
