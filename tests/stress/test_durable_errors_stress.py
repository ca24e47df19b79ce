"""Real threads on two stores of one file: no record is lost, no number and no retry is shared."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from cleveragents.application.services.error_recovery_service import (
    ErrorRecoveryService,
    RecoverySettings,
)
from cleveragents.application.services.recovery_policy import Remedies
from cleveragents.application.services.retry_budget import RetryTerms
from cleveragents.domain.error_record import Action
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]


class Overloaded(Exception):  # noqa: N818  # what an HTTP client might raise
    status_code = 503


@pytest.fixture
def services(tmp_path):
    """As two processes would have them."""
    path = tmp_path / "state.db"
    settings = RecoverySettings(retries=RetryTerms(tokens=100, cost=10))
    with Store(path) as one, Store(path) as other:
        yield [
            ErrorRecoveryService(settings, journal=SqliteErrorJournal(store))
            for store in (one, other)
        ]


def test_two_processes_lose_no_record_of_any_plan(services):
    def work(n):
        service = services[n % 2]
        return [service.record_error(f"p-{(n + turn) % 4}", ValueError()) for turn in range(4)]

    returned = [
        record
        for records in run_together([partial(work, n) for n in range(60)])
        for record in records
    ]
    for plan in range(4):
        snapshot = services[0].history(f"p-{plan}")
        mine = sorted((r for r in returned if r.plan_id == f"p-{plan}"), key=lambda r: r.seq)
        assert snapshot.records == tuple(mine)
        assert [record.seq for record in mine] == list(range(1, 61))
        assert snapshot.count == 60


def test_callers_in_two_processes_never_share_a_retry(services):
    models = Remedies(other_model=True)
    decisions = run_together(
        [partial(services[n % 2].handle, "p", Overloaded(), models, node="n") for n in range(24)]
    )
    actions = Counter(decision.action for decision in decisions)
    assert actions == {Action.RETRY: 2, Action.FALL_BACK: 3, Action.ABORT: 19}
    assert sorted(decision.seq for decision in decisions) == list(range(1, 25))


def test_retries_of_two_processes_and_many_nodes_spend_one_budget(services):
    decisions = run_together(
        [partial(services[n % 2].handle, "p", Overloaded(), node=str(n)) for n in range(30)]
    )
    assert Counter(decision.action for decision in decisions) == {
        Action.RETRY: 10,
        Action.ABORT: 20,
    }
