from __future__ import annotations

import sqlite3

import pytest

from cleveragents.cli import costs
from cleveragents.cli.grammar import parser
from cleveragents.domain.budget import Limit, Scopes
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.testing import FrozenClock, Gate, run_together

NOON = FrozenClock()
TODAY, MONTH = "2026-11-15", "2026-11"


def spend(terminal, *bills: tuple[str, Scopes | None], limits: tuple[Limit, ...] = ()) -> None:
    with (
        terminal.store() as store,
        DurableCostTracker(store, limits=limits, clock=NOON) as tracker,
    ):
        for amount, scopes in bills:
            tracker.record_usage(amount, scopes)


def leave_unconfirmed(terminal, amount: str = "0.30") -> str:
    with terminal.store() as store, DurableCostTracker(store, clock=NOON) as tracker:
        reservation = tracker.reserve(amount, Scopes(plan="p"))
        reservation.abandon()
        return reservation.id


def shown(capsys, *arguments: str) -> str:
    assert costs.show_costs(parser().parse_args(["costs", *arguments]), NOON) == 0
    return capsys.readouterr().out


def test_costs_without_a_store_are_empty_and_make_no_file(terminal):
    answer = terminal.run("costs")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == (
        "No costs by day yet\n"
        f"  store  {terminal.path} is not there yet\n"
        "\nhint: Run `cleveragents budget set day 5` to limit each day\n"
    )
    assert not terminal.path.parent.exists()


def test_costs_are_aligned_with_the_limit_and_what_is_left(terminal, capsys):
    bills = [("0.00075", None), ("12.5", None)]
    spend(terminal, *bills, limits=(Limit("day", 20),))
    assert shown(capsys) == (
        "day                spent  promised      limit         left\n"
        "2026-11-15  12.50075 USD  0.00 USD  20.00 USD  7.49925 USD\n"
        "total       12.50075 USD  0.00 USD\n"
    )


def test_costs_by_plan_are_sorted_by_spending_and_name_what_has_no_plan(terminal, capsys):
    bills = [("1", Scopes(plan="small")), ("2", Scopes(plan="large")), ("3", None)]
    spend(terminal, *bills)
    assert [line.split("  ")[0] for line in shown(capsys, "--by", "plan").splitlines()] == [
        "plan",
        "large",
        "small",
        "(no plan)",
        "total",
    ]


def test_costs_by_label_count_a_call_under_each_of_its_labels_but_once_in_the_total(
    terminal, capsys
):
    spend(terminal, ("1", Scopes(labels=("team=a", "stage=b"))))
    assert shown(capsys, "--by", "label").splitlines()[1:] == [
        "stage=b  1.00 USD  0.00 USD   none     -",
        "team=a   1.00 USD  0.00 USD   none     -",
        "total    1.00 USD  0.00 USD",
    ]
    assert terminal.run("costs", "--by", "session").out.startswith("session")


def test_costs_by_a_kind_nobody_used_are_empty(terminal):
    spend(terminal, ("1", None))
    assert terminal.run("costs", "--by", "label").err.startswith("No costs by label yet\n\nhint:")


@pytest.mark.parametrize(
    ("kind", "limit", "name"),
    [
        ("day", Limit("day", 5), TODAY),
        ("month", Limit("month", 5), MONTH),
        ("plan", Limit("plan", 5, name="p"), "p"),
    ],
    ids=["day", "month", "plan"],
)
def test_scope_under_a_budget_is_shown_before_it_spends(terminal, capsys, kind, limit, name):
    spend(terminal, limits=(limit,))
    row = shown(capsys, "--by", kind).splitlines()[1]
    assert row.split() == [name, "0.00", "USD", "0.00", "USD", "5.00", "USD", "5.00", "USD"]


@pytest.mark.parametrize(
    "limit",
    [Limit("plan", 5), Limit("plan", 5, name="p", hard=False), Limit("model", 5, name="m")],
    ids=["each", "soft", "other-kind"],
)
def test_budget_that_holds_no_named_scope_adds_no_row(terminal, limit):
    spend(terminal, limits=(limit,))
    assert terminal.run("costs", "--by", "plan").err.startswith("No costs by plan yet")


def test_costs_as_json_are_exact_text_amounts(terminal):
    with (
        terminal.store() as store,
        DurableCostTracker(store, limits=(Limit("plan", 2, name="p"),)) as tracker,
    ):
        tracker.record_usage("0.00075", Scopes(plan="p"))
        tracker.record_usage("1")
        tracker.reserve("0.5", Scopes(plan="p"))
        balance, rest, total = terminal.run("costs", "--by", "plan", "--json").records
    assert balance == {
        "kind": "balance",
        "by": "plan",
        "name": "p",
        "spent_usd": "0.00075",
        "promised_usd": "0.50",
        "limit_usd": "2.00",
        "left_usd": "1.49925",
    }
    assert (rest["name"], rest["spent_usd"], rest["limit_usd"]) == (None, "1.00", None)
    assert (total["kind"], total["spent_usd"], total["promised_usd"]) == (
        "total",
        "1.00075",
        "0.50",
    )


def test_call_without_a_bill_is_listed_below_with_its_upper_bound_and_scopes(terminal):
    name = leave_unconfirmed(terminal)
    answer = terminal.run("costs", "--by", "plan")
    assert answer.out.splitlines()[-1] == (
        f"{name}     0.30 USD  spent       day:{TODAY} month:{MONTH} plan:p"
    )
    assert f"`cleveragents costs settle {name} 0.30`" in answer.err
    assert terminal.run("costs", "--json").records[-1] == {
        "kind": "unconfirmed",
        "id": name,
        "upper_bound_usd": "0.30",
        "counted_as": "spent",
        "scopes": [f"day:{TODAY}", f"month:{MONTH}", "plan:p"],
    }


def test_call_of_a_dead_process_is_listed_before_anybody_charged_it(terminal):
    with terminal.store() as store, DurableCostTracker(store) as tracker:
        tracker.reserve("0.2")
        assert len(terminal.run("costs", "--json").records) == 2
    listed = terminal.run("costs", "--json").records[-1]
    assert (listed["kind"], listed["counted_as"]) == ("unconfirmed", "promised")


def test_costs_can_be_read_while_another_process_writes(terminal):
    spend(terminal, ("1", None))
    gate = Gate()
    with terminal.store() as store:
        held = store.submit(lambda _: gate.pass_through())
        gate.wait_for(1)
        assert terminal.run("costs", "--by", "month").out.startswith("month")
        gate.open()
        held.result()


def test_unknown_kind_is_refused_with_the_kinds(terminal):
    answer = terminal.run("costs", "--by", "daily")
    assert answer.code == 2
    assert answer.err == (
        "error[CA1005]: KIND must be one of day, month, plan, session, actor, model, label, "
        "got 'daily'\n\nhint: Did you mean `day`?\n"
    )


class TestCorrections:
    def test_settle_puts_the_bill_in_place_of_the_upper_bound(self, terminal):
        name = leave_unconfirmed(terminal)
        answer = terminal.run("costs", "settle", name, "0.02")
        assert answer.code == 0
        assert answer.out == (
            f"reservation `{name}`\n  now     0.02 USD, settled\n  before  0.30 USD, unconfirmed\n"
        )
        balance, total = terminal.run("costs", "--by", "plan", "--json").records
        assert balance["spent_usd"] == total["spent_usd"] == "0.02"

    def test_release_takes_the_charge_back_and_a_bill_may_still_follow(self, terminal):
        name = leave_unconfirmed(terminal)
        released = terminal.run("costs", "release", name, "--json").records
        assert released == [
            {
                "kind": "correction",
                "id": name,
                "now": "0.00 USD, released",
                "before": "0.30 USD, unconfirmed",
            }
        ]
        assert terminal.run("costs", "--json", "settle", name, "0.1").records[0]["now"] == (
            "0.10 USD, settled"
        )

    def test_second_correction_is_refused_with_what_stands(self, terminal):
        name = leave_unconfirmed(terminal)
        terminal.run("costs", "settle", name, "0.02")
        answer = terminal.run("costs", "release", name)
        assert answer.code == 2
        assert f"Reservation `{name}` is settled already, at 0.02 USD\n" in answer.err

    def test_two_corrections_at_once_leave_one_bill(self, terminal):
        name = leave_unconfirmed(terminal)
        run_together([lambda: terminal.run("costs", "settle", name, "0.02")] * 2)
        assert terminal.run("costs", "--json").records[-1]["spent_usd"] == "0.02"

    def test_call_that_is_still_running_is_not_corrected(self, terminal):
        with terminal.store() as store, DurableCostTracker(store) as tracker:
            reservation = tracker.reserve(1)
            answer = terminal.run("costs", "settle", reservation.id, "0.02")
        assert answer.code == 2
        assert "is still open: the process that made it" in answer.err

    def test_warning_that_a_correction_causes_is_shown(self, terminal):
        """It is reported once for all processes, so it must not be lost here."""
        name = leave_unconfirmed(terminal)
        terminal.run("budget", "set", "plan", "1", "--soft")
        answer = terminal.run("costs", "settle", name, "0.9")
        assert "warning[CA2104]: Spending of plan `p` reached 80% of its soft" in answer.err

    def test_others_found_dead_meanwhile_are_left_to_the_list(self, terminal):
        name = leave_unconfirmed(terminal)
        with terminal.store() as store, DurableCostTracker(store, clock=NOON) as tracker:
            other = tracker.reserve("0.2")
        assert terminal.run("costs", "release", name).err == ""
        listed = terminal.run("costs", "--json").records[-1]
        assert (listed["id"], listed["counted_as"]) == (other.id, "spent")

    @pytest.mark.parametrize("there", [True, False], ids=["store", "no-store"])
    def test_unknown_reservation_is_refused_and_makes_no_store(self, terminal, there):
        if there:
            spend(terminal)
        answer = terminal.run("costs", "release", "r-1")
        assert answer.code == 2
        assert "error[CA1005]: The store knows no reservation 'r-1'" in answer.err
        assert terminal.path.exists() == there

    def test_amount_that_is_none_is_refused_with_the_way_out(self, terminal):
        answer = terminal.run("costs", "settle", "r-1", "much")
        assert answer.code == 2
        assert answer.err.startswith("error[CA1003]: An amount must be a number of USD")
        assert answer.err.endswith("hint: Write a number of USD such as 5 or 0.25\n")


class TestStoreThatIsOdd:
    def test_older_store_is_brought_up_to_date_before_it_is_read(self, terminal):
        terminal.path.parent.mkdir()
        terminal.path.touch()
        assert terminal.run("costs").err == (
            "No costs by day yet\n\nhint: Run `cleveragents budget set day 5` to limit each day\n"
        )

    def test_database_of_another_program_is_refused(self, terminal):
        terminal.path.parent.mkdir()
        other = sqlite3.connect(terminal.path)
        other.execute("CREATE TABLE songs (title)")
        other.close()
        answer = terminal.run("costs")
        assert answer.code == 1
        assert "error[CA6002]" in answer.err

    def test_file_that_is_no_database_is_refused(self, terminal):
        terminal.path.parent.mkdir()
        terminal.path.write_bytes(b"x" * 4096)
        assert "error[CA6004]" in terminal.run("costs").err

    def test_folder_in_place_of_the_file_is_refused(self, terminal):
        terminal.path.mkdir(parents=True)
        assert "error[CA6007]" in terminal.run("costs").err

    def test_file_in_place_of_the_folder_is_refused(self, terminal):
        terminal.path.parent.write_text("in the way")
        assert "error[CA6007]" in terminal.run("costs").err
