from __future__ import annotations

import json
import os

import pytest

from cleveragents.cli import live_view
from cleveragents.cli.live_view import LiveView, clipped, frame
from cleveragents.cli.plain_view import JsonView, PlainView
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.error_record import Action
from cleveragents.domain.event import Notice
from cleveragents.domain.plan_graph import NodeState
from unit.cli.plankit import ID, begun, failed, finished, nodes, over, said, spent, started
from unit.cli.screen import Screen

NOTICE = Notice("CA2104", "Most of the budget is spent", {"spent": "4 USD"})


def live(capsys, columns: int = 60, lines: int = 24, **environment: str):
    model = RunModel(ID, nodes("a", "b"))
    size = [columns, lines]
    view = LiveView(model, size=lambda: tuple(size), environment=environment)
    screen = Screen()

    def shown() -> str:
        screen.write(capsys.readouterr().err)
        return screen.text

    return view, shown, size


def test_run_is_drawn_in_place(capsys):
    view, shown, _ = live(capsys, NO_COLOR="1")
    view.take(begun(), 0.0, None)
    view.tick(0.0)
    assert shown() == (
        "  · a              waits for its turn\n"
        "  · b              waits for its turn\n"
        "  0 of 2 nodes done   2 waiting   0.0 s"
    )
    view.take(started("a"), 0.0, None)
    view.take(finished("a"), 2.0, 3)
    view.tick(2.0)
    assert shown() == (
        "  ✓ a      2.0 s   3 files\n"
        "  · b              waits for its turn\n"
        "  1 of 2 nodes done   1 waiting   2.0 s"
    )


def test_view_draws_at_most_ten_times_a_second_and_only_what_changed(capsys):
    view, shown, _ = live(capsys)
    view.tick(0.0)
    shown()
    view.take(started("a"), 0.0, None)
    view.tick(0.09)
    assert capsys.readouterr().err == ""
    view.take(finished("a"), 0.09, None)
    view.tick(0.2)
    assert capsys.readouterr().err != ""
    view.tick(0.4)
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_plan_of_thousands_is_drawn_less_often(capsys):
    view = LiveView(RunModel(ID, nodes(*(f"n{number}" for number in range(1001)))))
    view.tick(0.0)
    view.take(started("n0"), 0.0, None)
    capsys.readouterr()
    view.tick(0.4)
    assert capsys.readouterr().err == ""
    view.tick(0.5)
    assert capsys.readouterr().err != ""


def test_words_and_warnings_stay_above_what_is_drawn(capsys):
    view, shown, _ = live(capsys, NO_COLOR="1")
    view.tick(0.0)
    shown()
    view.say("stopping")
    view.warn(NOTICE)
    view.close(1.0)
    assert shown().splitlines()[:4] == [
        "stopping",
        "warning[CA2104]: Most of the budget is spent",
        "  spent  4 USD",
        "  · a              waits for its turn",
    ]


def test_terminal_that_became_narrower_is_redrawn_without_leftovers(capsys):
    """It has wrapped the old lines, so the way back up over them is longer."""
    view, _, size = live(capsys)
    view.tick(0.0)
    capsys.readouterr()
    size[0] = 20
    view.tick(1.0)
    assert capsys.readouterr().err.startswith("\r\x1b[6A")


def test_colours_are_left_out_where_nobody_wants_them(capsys):
    for environment, expected in (({"NO_COLOR": "1"}, "  ✓ a"), ({}, "  \x1b[32m✓\x1b[0m a")):
        view, _, _ = live(capsys, **environment)
        view.take(finished("a"), 0.0, None)
        view.tick(0.0)
        assert capsys.readouterr().err.startswith(f"\r{expected}")


@pytest.mark.long
def test_thousands_of_nodes_are_told_as_sums_with_what_runs_and_what_failed_last():
    model = RunModel(ID, nodes(*(f"n{number}" for number in range(2500))))
    model.take(begun(), 0.0)
    for number in range(1000):
        model.take(finished(f"n{number}"), 1.0)
    for number in range(1000, 1007):
        model.take(failed(f"n{number}", f"broken {number}", Action.ABORT), 1.0)
        model.take(finished(f"n{number}", NodeState.FAILED), 1.0)
    for number in range(2000, 2064):
        model.take(started(f"n{number}"), 1.0)
    lines = [one.text for one in frame(model, 2.0, (80, 14))]
    assert lines[:2] == ["  ▸ n2000      1.0 s", "  ▸ n2001      1.0 s"]
    assert lines[6:] == [
        "    and 58 more that run",
        "  ✗ n1002              broken 1002",
        "  ✗ n1003              broken 1003",
        "  ✗ n1004              broken 1004",
        "  ✗ n1005              broken 1005",
        "  ✗ n1006              broken 1006",
        "  1,000 of 2,500 nodes done   64 running, 1,429 waiting, 7 failed   2.0 s",
    ]


def test_few_that_run_of_many_leave_nothing_to_count():
    model = RunModel(ID, nodes(*(f"n{number}" for number in range(30))))
    model.take(started("n7"), 0.0)
    assert [one.text for one in frame(model, 0.0, (60, 10))][:-1] == ["  ▸ n7       0.0 s"]


def test_lines_are_cut_by_the_columns_they_take():
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdefg", 6) == "abcde…"
    assert clipped("日本語", 6) == "日本語"
    assert clipped("日本語x", 6) == "日本…"
    assert clipped("e\u0301e\u0301e\u0301", 3) == "e\u0301e\u0301e\u0301"


def test_size_of_no_terminal_is_the_usual_one(monkeypatch):
    def refuse(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", refuse)
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("LINES", "20")
    assert live_view._terminal_size() == (70, 20)


def test_plain_view_prints_one_line_for_each_fact(capsys):
    view = PlainView(RunModel(ID, nodes("a", "b")))
    for at, event in enumerate(
        [
            begun(),
            started("a"),
            said("a", "hello"),
            spent("a", "0.31"),
            failed("a", "overloaded"),
            started("a", 2),
            failed("a", "still", Action.ASK, attempt=2),
            finished("a", NodeState.FAILED, attempt=2),
            over("failed", 1),
        ]
    ):
        view.take(event, float(at), None)
        view.tick(float(at))
    view.say("stopping")
    view.warn(Notice("CA2104", "Most of the budget is spent"))
    view.close(9.0)
    assert capsys.readouterr().err.splitlines() == [
        "  ↻ a      3.0 s   0.31 USD   attempt 1 of 3 failed: overloaded",
        "  ✗ a      1.0 s   0.31 USD   still",
        "stopping",
        "warning[CA2104]: Most of the budget is spent",
    ]


def test_json_view_prints_each_event_as_a_record(capsys):
    view = JsonView(RunModel(ID, nodes("a")))
    view.take(spent("a", "0.5"), 0.0, None)
    view.take(finished("a", changeset="c-1"), 0.0, 2)
    view.warn(NOTICE)
    view.say("nothing")
    view.tick(1.0)
    view.close(1.0)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {
            "kind": "spend.changed",
            "plan": ID,
            "node": "a",
            "attempt": 1,
            "amount_usd": "0.50",
        },
        {
            "kind": "node.finished",
            "plan": ID,
            "node": "a",
            "state": "done",
            "attempt": 1,
            "duration_s": 1.0,
            "changeset": "c-1",
            "files": 2,
        },
        {
            "kind": "warning",
            "code": "CA2104",
            "message": "Most of the budget is spent",
            "facts": {"spent": "4 USD"},
        },
    ]
