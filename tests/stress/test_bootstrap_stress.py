"""Real threads on the container: one context per plan, whoever comes first."""

from __future__ import annotations

import pytest

from cleveragents.bootstrap import Container
from cleveragents.settings import Settings
from cleveragents.testing import run_together


@pytest.mark.stress
@pytest.mark.usefixtures("frequent_switches")
def test_first_callers_of_a_plan_all_get_one_context():
    with Container(Settings()) as services:
        for number in range(200):
            plan = f"p-{number}"
            asked = run_together([lambda plan=plan: services.plan_context(plan)] * 8)
            assert len({id(one) for one in asked}) == 1
