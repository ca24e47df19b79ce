from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from cleveragents.cli.audit import Progress
from cleveragents.cli.main import main
from cleveragents.domain.budget import Scopes
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON_S = FrozenClock()()
HOUR_S = 3600


@pytest.fixture
def busy(terminal):
    """A store with one event of each hour from 10:00 to 14:00 on 2026-11-15."""
    told = [
        ("money.reserved", "p", "a"),
        ("money.settled", "p", "b"),
        ("moneyless", "p", "a"),
        ("error.recorded", "q", "a"),
        ("limit.set", None, None),
    ]
    with terminal.store() as store:
        for hours, (kind, plan, actor) in enumerate(told, -2):
            at = NOON_S + hours * HOUR_S
            body = {"n": hours}
            store.write(
                lambda tx, kind=kind, body=body, at=at, plan=plan, actor=actor: tx.event(
                    kind, body, at=at, plan=plan, actor=actor
                )
            )
    return terminal


def numbers(terminal, *arguments: str) -> list[int]:
    return [one["seq"] for one in terminal.run("audit", "show", "--json", *arguments).records]


class TestShow:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ((), [1, 2, 3, 4, 5]),
            (("--plan", "p"), [1, 2, 3]),
            (("--plan", "p", "--actor", "a"), [1, 3]),
            (("--kind", "money"), [1, 2]),
            (("--kind", "money.settled"), [2]),
            (("--since", "2026-11-15T12:00"), [3, 4, 5]),
            (("--since", "2026-11-15T13:00+02:00"), [2, 3, 4, 5]),
            (("--until", "2026-11-15T12:00"), [1, 2]),
            (("--since", "2026-11-15", "--until", "2026-11-15"), [1, 2, 3, 4, 5]),
            (("--since", "2026-11-16"), []),
            (("--until", "2026-11-14"), []),
            (("--limit", "2"), [4, 5]),
            (("--limit", "9", "--kind", "money"), [1, 2]),
        ],
        ids=lambda value: " ".join(map(str, value)) or "all",
    )
    def test_filters_leave_out_what_does_not_pass(self, busy, arguments, expected):
        assert numbers(busy, *arguments) == expected

    def test_times_without_a_zone_are_those_of_the_setting(self, busy, monkeypatch):
        monkeypatch.setenv("CLEVERAGENTS_ZONE", "Asia/Tokyo")
        assert numbers(busy, "--since", "2026-11-15T21:00") == [3, 4, 5]
        assert numbers(busy, "--since", "2026-11-16") == []
        assert "2026-11-15 19:00:00+09:00" in busy.run("audit", "show").out

    def test_event_is_a_line_with_money_as_people_read_it(self, terminal):
        with (
            terminal.store() as store,
            DurableCostTracker(store, clock=FrozenClock()) as tracker,
        ):
            tracker.reserve("0.5", Scopes(plan="p\x1b[2J")).settle("0.02")
            store.write(lambda tx: tx.event("note", {"at": 1, "text": "x"}, at=NOON_S))
        reserved, settled, note = terminal.run("audit", "show").out.splitlines()
        keys = r"keys day:2026-11-15 month:2026-11 plan:p\x1b[2J"
        assert reserved.startswith(
            f"     1  2026-11-15 12:00:00+00:00  money.reserved      held 0.50 USD  {keys}"
        )
        assert "held -0.50 USD" in settled
        assert settled.endswith("spent 0.02 USD")
        assert note == "     3  2026-11-15 12:00:00+00:00  note                text x"

    def test_nothing_that_passes_is_an_empty_answer(self, busy):
        answer = busy.run("audit", "show", "--plan", "other")
        assert (answer.code, answer.out) == (0, "")
        assert answer.err.startswith("No event passes\n\nhint:")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--since", "yesterday"), "`--since` must be a date, or a date and a time"),
            (("--until", "9999-12-31"), "`--until` must be a date, or a date and a time"),
            (("--limit", "0"), "`--limit` must be a whole number from 1, got 0"),
        ],
        ids=["no-time", "too-late", "no-number"],
    )
    def test_what_breaks_its_rule_is_refused(self, terminal, arguments, message):
        answer = terminal.run("audit", "show", *arguments)
        assert answer.code == 2
        assert f"error[CA1005]: {message}" in answer.err

    def test_record_that_cannot_be_read_is_damage_not_our_bug(self, busy):
        tamper(busy, "UPDATE events SET body = '{' WHERE seq = 3")
        answer = busy.run("audit", "show")
        assert answer.code == 1
        assert "error[CA6004]" in answer.err
        assert "hint: Run `cleveragents audit verify`" in answer.err


def tamper(terminal, sql: str) -> None:
    with terminal.store() as store:
        store.write(lambda tx: tx.execute(sql))


class TestVerify:
    def test_honest_store_holds_with_its_counts(self, busy):
        assert busy.run("audit", "verify").out.startswith("5 events hold")

    def test_money_that_adds_up_is_said(self, terminal):
        with terminal.store() as store, DurableCostTracker(store) as tracker:
            tracker.reserve("0.5").settle("0.02")
        assert terminal.run("audit", "verify", "--json").records == [
            {"kind": "verdict", "events": 2, "entries": 2}
        ]

    @pytest.mark.parametrize(
        ("sql", "first", "said"),
        [
            ("UPDATE events SET actor = 'b' WHERE seq = 3", 3, "event 3 or its place was changed"),
            ("DELETE FROM events WHERE seq = 2", 2, "event 2 is missing"),
            ("DELETE FROM events WHERE seq > 3", 4, "events from 4 to 5 are missing"),
            ("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE seq = 4", 4, "event 4 or its"),
        ],
        ids=["edited", "removed", "cut-off", "no-text"],
    )
    def test_break_is_named_by_its_first_event_and_ends_with_1(self, busy, sql, first, said):
        tamper(busy, sql)
        answer = busy.run("audit", "verify")
        assert (answer.code, answer.out) == (1, "")
        assert f"error[CA6004]: The audit trail does not hold: {said}" in answer.err
        assert f"  first broken event  {first}\n" in answer.err

    def test_balance_that_is_not_the_sum_of_its_entries_ends_with_1(self, terminal):
        with terminal.store() as store, DurableCostTracker(store) as tracker:
            tracker.record_usage("0.5", Scopes(plan="p"))
        tamper(terminal, "UPDATE accounts SET spent = spent - 1 WHERE key = 'plan:p'")
        answer = terminal.run("audit", "verify", "--json")
        assert answer.code == 1
        assert answer.records[0]["message"].startswith("The ledger does not hold: `plan:p` keeps")

    def test_no_store_holds_nothing_and_is_not_made(self, terminal):
        for action in ("verify", "show"):
            answer = terminal.run("audit", action)
            assert (answer.code, answer.out) == (0, "")
            assert answer.err.startswith("No events yet\n  store  ")
        assert not terminal.path.parent.exists()

    def test_progress_is_told_after_a_second_and_ever_more_rarely(self, capsys):
        clock = FrozenClock()
        progress = Progress("checked {:,} of 9,000 events", clock)
        for seconds in (0.9, 0.1, 0.5, 0.5, 1.0, 1.0):
            clock.advance(seconds)
            for _ in range(1000):
                assert progress(None, ("row",)) == ("row",)
        assert capsys.readouterr().err == (
            "checked 2,000 of 9,000 events\nchecked 4,000 of 9,000 events\n"
            "checked 6,000 of 9,000 events\n"
        )

    def test_progress_is_watched_on_a_terminal_only(self, busy, monkeypatch):
        made = []
        monkeypatch.setattr(
            "cleveragents.cli.audit.Progress",
            lambda text: made.append(text) or (lambda _, row: row),
        )
        busy.run("audit", "verify")
        assert made == []
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        assert busy.run("audit", "verify").code == 0
        assert made == ["checked {:,} of 5 events", "added up {:,} entries"]


@contextmanager
def no_reader(monkeypatch) -> Iterator[None]:
    """Make stdout a pipe without a reader; inside of a test, because capsys resets it before."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        yield
        stdout.write("whatever is said later is dropped\n")


class TestReaderThatWentAway:
    """`cleveragents audit show | head` is no failure, and leaves no complaint behind."""

    def test_long_answer_stops_early(self, terminal, monkeypatch):
        long = {"text": "x" * 100_000}
        with terminal.store() as store:
            store.write(lambda tx: tx.event("note", long, at=NOON_S))
        with no_reader(monkeypatch):
            assert main(["audit", "show"]) == 0
        assert terminal.run("audit", "verify").code == 0

    def test_short_answer_is_dropped_at_the_end(self, busy, monkeypatch):
        with no_reader(monkeypatch):
            assert main(["audit", "show", "--limit", "1"]) == 0
        assert busy.run("audit", "verify").code == 0

    def test_broken_pipe_of_something_else_is_our_bug(self, terminal, monkeypatch):
        def broken(_: object) -> int:
            raise BrokenPipeError

        monkeypatch.setattr("cleveragents.cli.settings.show_settings", broken)
        assert terminal.run("settings").code == 70


class TestRebuild:
    def test_balances_that_were_changed_are_made_anew(self, terminal):
        with terminal.store() as store, DurableCostTracker(store) as tracker:
            tracker.record_usage(1, Scopes(plan="p"))
            store.write(lambda tx: tx.execute("UPDATE accounts SET spent = 7"))
        assert terminal.run("audit", "verify").code == 1
        assert "hint: Run `cleveragents audit rebuild`" in terminal.run("audit", "verify").err
        assert terminal.run("audit", "rebuild").out == (
            "3 balances are made anew from the entries of money\n"
        )
        assert terminal.run("audit", "verify").code == 0
        assert terminal.run("audit", "rebuild", "--json").records == [
            {"kind": "rebuilt", "accounts": 3}
        ]

    def test_broken_trail_is_not_built_upon(self, busy):
        with busy.store() as store:
            store.write(lambda tx: tx.execute("UPDATE events SET actor = 'x' WHERE seq = 1"))
        assert busy.run("audit", "rebuild").code == 1

    def test_no_store_is_no_failure_and_makes_none(self, terminal):
        assert terminal.run("audit", "rebuild").code == 0
