from __future__ import annotations

import pickle

import pytest

from cleveragents.domain import errors
from cleveragents.domain.errors import BudgetExceeded, CircuitOpen, CleverAgentsError, PlanError
from cleveragents.domain.money import Money


def every_class() -> list[type[CleverAgentsError]]:
    return [
        one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, CleverAgentsError)
    ]


@pytest.mark.parametrize("kind", every_class(), ids=lambda kind: kind.__name__)
def test_error_survives_pickling_with_all_it_knows(kind):
    error = kind("It happened", code="CA1005", facts={"limit": Money(5)}, hint="Do that")
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is kind
    assert twin.to_dict() == error.to_dict()
    assert str(twin) == "It happened"


def test_error_shows_the_record_that_is_printed_and_stored():
    error = BudgetExceeded("No more", facts={"limit": Money.of(5)}, hint="Raise it")
    assert error.to_dict() == {
        "kind": "error",
        "code": "CA2103",
        "message": "No more",
        "facts": {"limit": "5.00 USD"},
        "hint": "Raise it",
    }


def test_plan_error_takes_a_message_alone():
    assert str(PlanError("No active changeset. Call start_changeset() first.")) == (
        "No active changeset. Call start_changeset() first."
    )


def test_open_circuit_says_how_long_it_stays_open():
    assert CircuitOpen("Paused", facts={"retry_after_s": 2.5}).retry_after_s == 2.5


@pytest.mark.parametrize("kind", every_class(), ids=lambda kind: kind.__name__)
def test_every_class_has_a_registered_code_and_a_known_exit_code(kind):
    assert kind.code in errors.CODES
    assert kind.exit_code in {1, 2, 3, 4, 5, 70}
