from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.domain.error_record import Action, Decision, ErrorCategory, ErrorRecord
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.testing import FrozenClock

if TYPE_CHECKING:
    from cleveragents.infrastructure.store import Store

NOON_S = FrozenClock()()


def fail(store: Store, message: str, action: Action | None = None, **about) -> ErrorRecord:
    journal = SqliteErrorJournal(store)
    draft = ErrorRecord(
        **{"plan_id": "p", "fingerprint": message, "message": message, "at": NOON_S, **about}
    )
    record = journal.add(draft, loop_after=None)
    if action is not None:
        decision = Decision(
            action=action, reason="r", plan_id=record.plan_id, record_seq=record.seq
        )
        journal.decide(record, lambda *_: decision, buckets=(), at=NOON_S)
    return record


def test_errors_are_grouped_and_counted_with_their_decisions_newest_last(terminal):
    with terminal.store() as store:
        slow = {"node": "draft", "category": ErrorCategory.RATE_LIMIT}
        fail(store, "slow down", Action.RETRY, **slow)
        fail(store, "no such file", actor="reader", category=ErrorCategory.TOOL_ARGS)
        fail(store, "slow down", Action.RETRY, **slow)
        fail(store, "slow down", Action.ASK, **slow)
    assert terminal.run("errors").out == (
        "last (UTC)           plan  where   category        times  decided         message\n"
        "2026-11-15 12:00:00  p     reader  tool.args           1  nothing         no such file\n"
        "2026-11-15 12:00:00  p     draft   llm.rate_limit      3  2 retry, 1 ask  slow down\n"
        "\n4 errors: 3 llm.rate_limit, 1 tool.args\n"
    )


def test_one_error_is_counted_as_one(terminal):
    with terminal.store() as store:
        fail(store, "no such file", category=ErrorCategory.TOOL_ARGS)
    assert terminal.run("errors").out.endswith("\n1 error: 1 tool.args\n")


def test_errors_of_one_plan_leave_the_others_out(terminal):
    with terminal.store() as store:
        fail(store, "a", Action.ABORT, plan_id="p-1")
        fail(store, "b", plan_id="p-2")
    (fault,) = terminal.run("errors", "--plan", "p-1", "--json").records
    assert (fault["kind"], fault["times"], fault["decided"]) == ("fault", 1, {"abort": 1})
    assert (fault["last"]["plan_id"], fault["last"]["message"]) == ("p-1", "a")


def test_message_is_one_short_line_that_cannot_steer_the_terminal(terminal):
    with terminal.store() as store:
        fail(store, "red \x1b[31m\nand then " + "x" * 100)
        fail(store, "", exception_type="KeyError")
    _, long, short, *_ = terminal.run("errors").out.splitlines()
    assert long.endswith(r"red \x1b[31m and then " + "x" * 40 + "…")
    assert short.endswith("-      unknown       1  nothing  KeyError")


def test_decision_about_a_record_that_was_removed_is_left_out(terminal):
    with terminal.store() as store:
        fail(store, "gone", Action.RETRY)
        fail(store, "here")
        store.write(lambda tx: tx.execute("DELETE FROM events WHERE seq = 1"))
    (fault,) = terminal.run("errors", "--json").records
    assert (fault["last"]["message"], fault["decided"]) == ("here", {})


def test_no_errors_are_an_empty_answer(terminal):
    answer = terminal.run("errors")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("No errors\n  store  ")
    assert not terminal.path.parent.exists()
    terminal.store().close()
    assert terminal.run("errors", "--plan", "p").err.startswith("No errors of plan `p`\n\nhint:")
