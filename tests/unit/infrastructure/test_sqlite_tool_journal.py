from __future__ import annotations

import json

from cleveragents.actors.tool_journal import ToolRecord
from cleveragents.infrastructure.sqlite_tool_journal import SqliteToolJournal
from cleveragents.infrastructure.store import Store


def test_call_of_a_tool_is_an_event_that_is_kept_when_record_returns(tmp_path):
    call = ToolRecord(
        call_id="t-1",
        plan_id="p",
        node="n",
        attempt=1,
        actor="llm",
        tool="read_file",
        arguments='{"path": "caf\udce9"}',
        at=3.0,
        duration_s=0.5,
        result_chars=7,
    )
    with Store(tmp_path / "state.db") as store:
        SqliteToolJournal(store).record(call)
        with store.read() as connection:
            ((at, plan, actor, body),) = connection.execute(
                "SELECT at, plan, actor, body FROM events WHERE kind = 'tool.called'"
            ).fetchall()
    assert (at, plan, actor) == (3.0, "p", "llm")
    assert json.loads(body)["arguments"] == '{"path": "caf\\udce9"}'
    assert json.loads(body)["result_chars"] == 7
