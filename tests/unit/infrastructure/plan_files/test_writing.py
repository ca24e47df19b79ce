from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from cleveragents.domain.plan import Budget, CommandActor, Node, Plan
from cleveragents.infrastructure.plan_files import dump, parse_plan
from unit.infrastructure.plan_files.plan_strategies import plans


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(plans())
def test_what_is_written_reads_back_as_an_equal_plan(plan):
    assert parse_plan(dump(plan)) == plan


def test_only_what_differs_from_the_defaults_is_written():
    plan = Plan(goal="x", nodes=(Node(name="no", actor=CommandActor(("ls", "010")), timeout_s=5),))
    assert dump(plan) == (
        "goal: x\n"
        "nodes:\n"
        "  no:\n"
        "    actor:\n"
        "      command:\n"
        "      - ls\n"
        "      - '010'\n"
        "    timeout_s: 5\n"
    )


def test_equal_values_are_written_out():
    """Aliases would make a reader jump, and a diff lie."""
    actor = CommandActor(("ls",))
    plan = Plan(goal="x", nodes=(Node(name="a", actor=actor), Node(name="b", actor=actor)))
    assert "&" not in dump(plan)


def test_lines_stay_readable():
    actor = CommandActor("one\ntwo\n", shell=True)
    text = dump(Plan(goal="odd\x85end", nodes=(Node(name="a", actor=actor),)))
    assert "command: |\n        one\n        two\n" in text
    assert '"odd\\Nend"' in text


def test_amount_that_no_float_means_is_written_as_text():
    budget = Budget(max_usd="999999.000000000001")
    plan = Plan(goal="x", budget=budget, nodes=(Node(name="a", actor=CommandActor(("ls",))),))
    assert "max_usd: '999999.000000000001'" in dump(plan)
    assert parse_plan(dump(plan)) == plan
