from __future__ import annotations

import sqlite3

import pytest

from cleveragents.infrastructure.audit import (
    Filter,
    events,
    rebuild_balances,
    verify_balances,
    verify_chain,
)
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "state.db"
    with Store(path) as store, DurableCostTracker(store) as tracker:
        for _ in range(5):
            tracker.reserve(1).settle("0.5")
    return path


def tamper(path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statements", "broken_at"),
    [
        (["UPDATE events SET body = replace(body, '0', '1') WHERE seq = 4"], 4),
        (["UPDATE events SET at = at + 1 WHERE seq = 7"], 7),
        (["UPDATE events SET actor = 'somebody' WHERE seq = 2"], 2),
        (["UPDATE events SET body = x'ff' WHERE seq = 3"], 3),
        (["DELETE FROM events WHERE seq = 5"], 5),
        (["DELETE FROM events WHERE seq >= 9"], 9),
        (
            [
                "UPDATE events SET seq = -1 WHERE seq = 3",
                "UPDATE events SET seq = 3 WHERE seq = 6",
                "UPDATE events SET seq = 6 WHERE seq = -1",
            ],
            3,
        ),
        (["DELETE FROM chain"], 11),
        (["UPDATE chain SET hash = zeroblob(32)"], 11),
    ],
    ids=["body", "time", "actor", "type", "removed", "tail", "reordered", "no end", "other end"],
)
def test_first_event_that_was_touched_is_named(path, statements, broken_at):
    tamper(path, *statements)
    connection = sqlite3.connect(path)
    verdict = verify_chain(connection)
    connection.close()
    assert (verdict.holds, verdict.broken_at) == (False, broken_at)


def test_balance_that_differs_from_its_entries_is_found_and_can_be_rebuilt(path):
    tamper(path, "UPDATE accounts SET spent = spent + 1 WHERE key LIKE 'day:%'")
    with Store(path) as store:
        with store.read() as connection:
            assert verify_chain(connection).holds
            verdict = verify_balances(connection)
        assert not verdict.holds
        assert "its entries add up to [2500000000000, 0]" in verdict.reason
        assert store.write(rebuild_balances(1.0)) == 2
        with store.read() as connection:
            assert verify_balances(connection).holds
            assert verify_chain(connection).holds


def test_only_the_last_events_are_read_when_asked_so(path):
    with Store(path) as store, store.read() as connection:
        assert [one["seq"] for one in events(connection, Filter(kind="money"), 2)] == [9, 10]
        assert len(list(events(connection, Filter(kind="money.settled")))) == 5
        assert list(events(connection, Filter(kind="mon"))) == []
