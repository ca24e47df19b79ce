from __future__ import annotations

import shlex

import pytest

from cleveragents.domain.budget import Limit
from cleveragents.domain.errors import BudgetExceeded
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.limits import limits_of, set_limit


def in_force(terminal) -> tuple[Limit, ...]:
    with terminal.store() as store, store.read() as connection:
        return limits_of(connection)


def test_budget_holds_for_every_process_on_the_store(terminal):
    assert terminal.run("budget", "set", "day", "0.5").code == 0
    with terminal.store() as store, DurableCostTracker(store) as tracker:
        with pytest.raises(BudgetExceeded):
            tracker.reserve("0.51")
        tracker.reserve("0.5").release()


def test_set_says_what_is_in_force_now_and_before_and_how_to_undo_it(terminal):
    first = terminal.run("budget", "set", "day", "5")
    assert first.out == "hard budget of each day\n  now     5.00 USD\n  before  none\n"
    assert first.err == "\nhint: Run `cleveragents budget clear day` to undo this\n"
    second = terminal.run("budget", "set", "day", "3", "--warn-at", "0.8,0.5")
    assert "now     3.00 USD, warns at 0.5 0.8\n  before  5.00 USD" in second.out
    assert "`cleveragents budget set day 5.00`" in second.err


WARNS = Limit("plan", "0.1234567", name="it's one", warn_at=(0.123456789, 1.0))
SILENT = Limit("plan", 1, name="it's one")


@pytest.mark.parametrize(
    ("action", "before"),
    [("set", None), ("set", WARNS), ("set", SILENT), ("clear", WARNS), ("clear", SILENT)],
    ids=["set-none", "set-warns", "set-silent", "clear-warns", "clear-silent"],
)
def test_undo_brings_back_what_was_in_force(terminal, action, before):
    if before is not None:
        with terminal.store() as store:
            store.write(set_limit(before, 1.0))
    amount = ["9"] if action == "set" else []
    answer = terminal.run("budget", action, "plan", *amount, "--name", "it's one", "--json")
    program, *undo = shlex.split(answer.records[0]["undo"])
    assert program == "cleveragents"
    assert terminal.run(*undo).code == 0
    assert in_force(terminal) == (() if before is None else (before,))


def test_soft_budget_without_warnings_can_be_brought_back(terminal):
    quiet = Limit("day", 1, hard=False, warn_at=())
    with terminal.store() as store:
        store.write(set_limit(quiet, 1.0))
    undo = terminal.run("budget", "clear", "day", "--soft", "--json").records[0]["undo"]
    terminal.run(*shlex.split(undo)[1:])
    assert in_force(terminal) == (quiet,)


def test_hard_and_soft_budgets_of_one_scope_stand_side_by_side(terminal):
    terminal.run("budget", "set", "day", "5")
    terminal.run("budget", "set", "day", "3", "--soft")
    terminal.run("budget", "set", "plan", "12.345", "--name", "p-1")
    assert terminal.run("budget", "list").out == (
        "kind  name      amount        warns at\n"
        "day   each   3.000 USD  soft  0.8 1.0\n"
        "day   each   5.000 USD  hard\n"
        "plan  p-1   12.345 USD  hard\n"
    )
    assert terminal.run("budget", "list", "--json").records[0] == {
        "kind": "budget",
        "of": "day",
        "name": None,
        "amount_usd": "3.00",
        "hard": False,
        "warn_at": [0.8, 1.0],
    }


def test_list_without_budgets_is_empty_and_makes_no_file(terminal):
    answer = terminal.run("budget", "list")
    assert (answer.code, answer.out) == (0, "")
    assert "No budgets yet" in answer.err
    assert not terminal.path.parent.exists()


def test_clear_lifts_one_budget_and_says_what_it_was(terminal):
    terminal.run("budget", "set", "day", "5")
    terminal.run("budget", "set", "day", "3", "--soft")
    answer = terminal.run("budget", "clear", "day")
    assert answer.out == "hard budget of each day\n  now     none\n  before  5.00 USD\n"
    assert [one.hard for one in in_force(terminal)] == [False]


@pytest.mark.parametrize("there", [True, False], ids=["store", "no-store"])
def test_clear_of_what_is_not_set_changes_nothing(terminal, there):
    if there:
        terminal.run("budget", "set", "day", "5")
    answer = terminal.run("budget", "clear", "plan", "--name", "p", "--soft")
    assert (answer.code, answer.out) == (0, "")
    assert "There is no soft budget of plan `p`; nothing was changed" in answer.err
    assert terminal.path.exists() == there


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("weekly", "5"), "KIND must be one of day, month"),
        (("day", "five"), "An amount must be a number of USD from 0 to 1,000,000, got 'five'"),
        (("day", "-5"), "An amount must be a number of USD"),
        (("day", "5", "--name", "monday"), "The name of a day must be a date such as 2026-11-15"),
        (("day", "5", "--name", "20261115"), "The name of a day must be a date"),
        (("month", "5", "--name", "2026-13"), "The name of a month must be a date such as 2026-11"),
        (("plan", "5", "--name", " "), "The name of a plan must be text that is not blank"),
        (("day", "5", "--warn-at", "half"), "`--warn-at` must be shares above 0 up to 1"),
        (("day", "5", "--warn-at", "0.5,80"), "`--warn-at` must be shares above 0 up to 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_breaks_its_rule_is_refused_and_makes_no_store(terminal, arguments, message):
    answer = terminal.run("budget", "set", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert not terminal.path.exists()


def test_one_month_and_one_day_can_have_a_budget(terminal):
    assert terminal.run("budget", "set", "month", "5", "--name", "2026-11").code == 0
    assert terminal.run("budget", "set", "day", "5", "--name", "2026-11-15").code == 0
    assert [one.name for one in in_force(terminal)] == ["2026-11-15", "2026-11"]


class TestFolder:
    def test_new_folder_is_kept_out_of_git(self, terminal):
        terminal.run("budget", "set", "day", "5")
        assert (terminal.path.parent / ".gitignore").read_text() == "*\n"
        assert terminal.path.parent.stat().st_mode & 0o777 == 0o700

    def test_folder_that_was_there_stays_as_it_is(self, terminal):
        terminal.path.parent.mkdir()
        terminal.run("budget", "set", "day", "5")
        assert terminal.path.exists()
        assert not (terminal.path.parent / ".gitignore").exists()

    def test_folder_that_cannot_be_made_is_refused(self, terminal):
        terminal.path.parent.write_text("in the way")
        answer = terminal.run("budget", "set", "day", "5")
        assert answer.code == 1
        assert "error[CA6007]" in answer.err
