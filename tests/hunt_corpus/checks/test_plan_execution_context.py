from __future__ import annotations

import pytest
from plan_execution_context import ChangeEntry, PlanError, PlanExecutionContext


def test_change_goes_to_the_open_changeset():
    context = PlanExecutionContext("p")
    first = context.start_changeset()
    assert context.record_change(ChangeEntry("a.py")) == first
    assert context.changeset_store.changesets == {first: [ChangeEntry("a.py")]}
    assert context.finish_changeset() == first
    assert context.finish_changeset() is None


def test_no_changeset_no_change():
    with pytest.raises(PlanError):
        PlanExecutionContext("p").record_change(ChangeEntry("a.py"))
