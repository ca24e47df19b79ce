"""Many actors call tools at once: every call is on record, in order, and on its own account."""

from __future__ import annotations

from collections import Counter

import pytest

from cleveragents.actors.standard_tools import standard_tools
from cleveragents.actors.tool_journal import MemoryToolJournal
from cleveragents.actors.tool_service import ToolService
from cleveragents.domain.plan import Node
from cleveragents.infrastructure.audit import Filter, events, verify_chain
from cleveragents.infrastructure.tool_journal import StoredToolJournal
from cleveragents.testing import run_together
from unit.actors.attemptkit import IDLE, RealBench, World, planted
from unit.actors.test_tools import kept

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

ACTORS = 16
CALLS = 6


@pytest.fixture
def world(tmp_path):
    with planted(tmp_path / "tree") as workspace:
        yield World(workspace)


@pytest.fixture(params=["memory", "store"])
def journal(request, world):
    if request.param == "memory":
        return MemoryToolJournal()
    return StoredToolJournal(world.workspace.changes.store)


def recorded(journal, world):
    """The calls as both journals tell them: node, id, tool."""
    if isinstance(journal, MemoryToolJournal):
        bodies = [call.to_dict() for call in journal.calls()]
    else:
        with world.workspace.changes.store.read() as connection:
            assert verify_chain(connection).holds
            bodies = [one["body"] for one in events(connection, Filter(kind="tool"))]
    return [(one["node"], one["call_id"], one["tool"]) for one in bodies]


def test_sixteen_actors_at_once_lose_and_cross_no_record(world, journal):
    service = ToolService(standard_tools(), journal)

    def work(number):
        made = []
        with world.workspace.attempt("p-1", f"work-{number}") as opened:
            node = Node(name=f"work-{number}", actor=IDLE)
            attempt = world.context(RealBench(opened), node)
            for turn in range(CALLS):
                text = f"{number}/{turn}"
                answer = service.call(attempt, "write_file", {"path": "same.txt", "text": text})
                made.append(answer.call_id)
                assert text in service.call(attempt, "read_file", {"path": "same.txt"}).text
        return opened.changeset_id, made

    done = run_together([lambda n=n: work(n) for n in range(ACTORS)])
    calls = recorded(journal, world)
    assert Counter(tool for _, _, tool in calls) == {
        "write_file": ACTORS * CALLS,
        "read_file": ACTORS * CALLS,
    }
    for number, (changeset_id, made) in enumerate(done):
        mine = [(call, tool) for node, call, tool in calls if node == f"work-{number}"]
        assert [call for call, tool in mine if tool == "write_file"] == made
        assert [tool for _, tool in mine] == ["write_file", "read_file"] * CALLS
        entries = world.workspace.changes.changesets.get(changeset_id).entries
        assert [entry.tool_call for entry in entries] == made


def test_two_hundred_threads_lose_no_record():
    journal = MemoryToolJournal()
    run_together([lambda n=n: journal.record(kept(call_id=str(n))) for n in range(200)])
    assert sorted(int(call.call_id) for call in journal.calls()) == list(range(200))
