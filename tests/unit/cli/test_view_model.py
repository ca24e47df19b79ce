from __future__ import annotations

import pytest

from cleveragents.application.run_journal import NodeRecord
from cleveragents.cli.run_lines import duration, ending, header, name_width, node_line, status
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.error_record import Action
from cleveragents.domain.money import Money
from cleveragents.domain.plan_graph import NodeState
from unit.cli.plankit import (
    ID,
    begun,
    failed,
    finished,
    nodes,
    over,
    plan,
    said,
    spent,
    started,
)

CHAIN = "{needs: [a], actor: {scripted: [{print: x}]}}"
FAN_OUT = "{needs: [a], for_each: [1, 2], actor: {scripted: [{print: x}]}}"


def told(model: RunModel, now: float) -> list[str]:
    return [node_line(model, one, now, name_width(model)).text for one in model.rows()]


def test_nodes_are_told_with_state_time_money_and_files():
    model = RunModel(ID, nodes("a", b=CHAIN))
    model.take(begun(), 0.0)
    assert told(model, 0.0) == [
        "  · a              waits for its turn",
        "  · b              waits for a",
    ]
    model.take(started("a"), 0.0)
    model.take(spent("a", "0.02"), 1.0)
    assert told(model, 4.2)[0] == "  ▸ a      4.2 s   0.02 USD"
    model.take(finished("a"), 38.0, files=7)
    assert told(model, 99.0) == [
        "  ✓ a       38 s   0.02 USD   7 files",
        "  · b              waits for its turn",
    ]


def test_last_line_of_an_actor_is_its_note_and_cannot_steer_the_terminal():
    model = RunModel(ID, nodes("a"))
    model.take(started("a", 2), 0.0)
    model.take(said("a", "\x1b[2Jreading\n"), 0.0)
    assert told(model, 0.0) == ["  ▸ a      0.0 s   attempt 2 of 3: \\x1b[2Jreading"]


def test_failed_attempt_tells_why_and_when_it_is_tried_again():
    model = RunModel(ID, nodes("a"))
    model.take(started("a"), 0.0)
    model.take(failed("a", "provider was\noverloaded", delay_s=4.0), 12.0)
    again = "  ↻ a       12 s   attempt 1 of 3 failed"
    assert told(model, 12.0) == [f"{again}, again in 4.0 s: provider was overloaded"]
    assert told(model, 16.0) == [f"{again}: provider was overloaded"]
    model.take(started("a", 2), 16.0)
    assert told(model, 17.0) == ["  ▸ a      1.0 s   attempt 2 of 3"]


def test_attempts_of_a_resumed_plan_may_be_more_than_one_run_allows():
    model = RunModel(ID, nodes("a"))
    model.take(started("a", 5), 0.0)
    assert told(model, 1.0) == ["  ▸ a      1.0 s   attempt 5"]


def test_failure_stops_what_needs_it_and_says_so():
    model = RunModel(ID, nodes("a", b=CHAIN))
    model.take(started("a"), 0.0)
    model.take(failed("a", "it is broken", Action.ASK), 1.0)
    assert told(model, 1.0)[0] == "  ✗ a      1.0 s   it is broken"
    model.take(finished("a", NodeState.FAILED), 1.0)
    assert told(model, 9.0)[1] == "  · b              cannot start: a failed"
    assert list(model.failed) == ["a"]


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (NodeState.SKIPPED, "  - a              skipped"),
        (NodeState.CONFLICTED, "  ! a              conflicted"),
        (NodeState.CANCELLED, "  ■ a              cancelled"),
        (NodeState.DONE, "  ✓ a"),
    ],
)
def test_ends_are_told_in_words(state, line):
    model = RunModel(ID, nodes("a"))
    model.take(finished("a", state), 1.0)
    assert told(model, 1.0) == [line]


def test_skipped_because_of_a_fault_keeps_the_fault():
    model = RunModel(ID, nodes("a"))
    model.take(failed("a", "no such file", Action.SKIP), 1.0)
    model.take(finished("a", NodeState.SKIPPED), 1.0)
    assert told(model, 1.0) == ["  - a              skipped: no such file"]


def test_fan_out_is_told_by_its_instances_and_holds_its_dependants_back():
    model = RunModel(ID, nodes("a", b=FAN_OUT, c="{needs: [a, b], actor: {python: 'm:f'}}"))
    model.take(begun(), 0.0)
    assert len(list(model.rows())) == 3
    model.take(finished("a"), 0.0)
    for node in ("b[0]", "b[1]"):
        model.take(started(node), 0.0)
        model.take(finished(node), 1.0)
    assert [one.id for one in model.rows()] == ["a", "b[0]", "b[1]", "c"]
    assert told(model, 1.0)[3] == "  · c                  waits for b"
    model.take(finished("b[1]", NodeState.FAILED), 1.0)
    assert told(model, 1.0)[3] == "  · c                  cannot start: b failed"


def test_fan_out_over_nothing_is_gone_when_the_plan_is_done():
    model = RunModel(ID, nodes("a", b=FAN_OUT.replace("[1, 2]", "[]")))
    model.take(begun(), 0.0)
    model.take(finished("a"), 1.0)
    assert model.counts().total() == 2
    model.take(over(), 1.0)
    assert ending(model, 0) == "done in 1.0 s: 1 of 1 node"


def test_earlier_runs_are_part_of_a_resumed_one():
    kept = (
        NodeRecord(id="a", node="a", state=NodeState.DONE, attempt=1),
        NodeRecord(id="b", node="b", state=NodeState.RUNNING, attempt=2),
        NodeRecord(id="c", node="c", state=NodeState.FAILED, error={"message": "broken"}),
    )
    model = RunModel(ID, nodes("a", "b", "c"), Money.of(5), kept, Money.of("0.25"))
    assert header(model) == f"plan {ID}  3 nodes, at most 8 at once, budget 5.00 USD, 1 done before"
    assert [one.state for one in model.rows()] == ["done", "waiting", "failed"]
    assert status(model, 0.0).text == (
        "  1 of 3 nodes done   1 waiting, 1 failed   0.25 of 5.00 USD   0.0 s"
    )


def test_what_ran_when_a_run_died_waits_again_in_the_next():
    model = RunModel(ID, nodes("a"))
    model.take(begun(), 0.0)
    model.take(started("a"), 0.0)
    model.take(begun(), 50.0)
    assert told(model, 51.0) == ["  · a              waits for its turn"]


def test_what_was_broken_off_waits_when_the_run_is_over():
    model = RunModel(ID, nodes("a"))
    model.take(begun(), 0.0)
    model.take(started("a"), 0.0)
    model.take(over("paused", 130), 1.0)
    assert told(model, 9.0) == ["  · a"]
    assert ending(model, 0) == "paused after 1.0 s: 0 of 1 node"


def test_ending_says_what_was_done_changed_and_spent():
    model = RunModel(
        ID, plan("goal: g\nbudget: {max_usd: 5}\nnodes: {a: {actor: {python: 'm:f'}}}")
    )
    model.take(begun(), 0.0)
    model.take(started("a"), 0.0)
    model.take(spent("a", "2.94"), 1.0)
    model.take(finished("a"), 192.0)
    model.take(over(), 192.0)
    assert ending(model, 31) == "done in 3 min 12 s: 1 of 1 node, 31 files, 2.94 USD"
    model.take(over("failed", 1), 192.0)
    assert ending(model, 0).startswith("failed after 3 min 12 s: ")


def test_waiting_for_many_names_the_first():
    model = RunModel(ID, nodes("a", "b", c="{needs: [a, b], actor: {python: 'm:f'}}"))
    assert told(model, 0.0)[2] == "  · c              waits for a and 1 more"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.6, "1 min 00 s"), (7500, "2 h 05 min")],
)
def test_durations_have_units(seconds, text):
    assert duration(seconds) == text
