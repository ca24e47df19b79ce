from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cleveragents.domain.budget import Limit, Scopes
from cleveragents.domain.errors import BudgetExceeded, RequestError, SetupError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.providers.cost_tracker import CostTracker
from cleveragents.providers.reservation import Outcome, State
from cleveragents.testing import FrozenClock


@pytest.fixture(autouse=True, params=["memory", "sqlite", "escrow"])
def kept_in(request, monkeypatch, tmp_path):
    """Run every test on all trackers: what is durable keeps all promises of what is not."""
    opened = []
    kind = {"sqlite": DurableCostTracker, "escrow": EscrowCostTracker}.get(request.param)

    def durable(*arguments, **options):
        store = Store(tmp_path / f"state-{len(opened)}.db")
        opened.append(store)
        tracker = kind(store, *arguments, **options)
        opened.append(tracker)
        return tracker

    if kind is not None:
        monkeypatch.setattr(request.module, "CostTracker", durable)
    yield request.param
    for one in reversed(opened):
        one.close()


ALL = Scopes(plan="p", session="s", actor="a", model="m", labels=("team=core",))


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


class TestRecordUsage:
    def test_records_add_up_to_today_exactly(self):
        tracker = CostTracker()
        for _ in range(20):
            tracker.record_usage(0.00075)
        assert tracker.get_daily_spend() == Decimal("0.015")

    @pytest.mark.long
    def test_random_charges_give_the_same_exact_total_in_any_order(self):
        chance = random.Random(3)
        costs = [round(chance.random() / 100, 9) for _ in range(2_000)]
        totals = []
        for _ in range(2):
            tracker = CostTracker()
            for cost in costs:
                tracker.record_usage(cost)
            totals.append(tracker.get_daily_spend())
            chance.shuffle(costs)
        assert totals[0] == totals[1]
        assert totals[0] == sum(Decimal(repr(cost)) for cost in costs)

    @pytest.mark.parametrize("cost", [float("nan"), float("inf"), -0.01, "much", None], ids=repr)
    def test_garbage_is_refused_and_changes_nothing(self, cost):
        tracker = CostTracker(5)
        with pytest.raises(RequestError):
            tracker.record_usage(cost, ALL, key="k")
        with pytest.raises(RequestError):
            tracker.reserve(cost, ALL)
        reservation = tracker.reserve(1)
        with pytest.raises(RequestError):
            reservation.settle(cost)
        assert reservation.state is State.OPEN
        assert tracker.get_daily_spend() == 0
        assert tracker.spend_by("plan") == {}

    def test_scopes_of_another_type_are_refused(self, kept_in):
        if kept_in == "memory":
            with pytest.raises(RequestError, match="`scopes` must be"):
                CostTracker().record_usage(1, {"plan": "p"})

    def test_record_is_never_refused_for_a_limit(self):
        tracker = CostTracker(daily_budget=1)
        tracker.record_usage(3)
        assert tracker.get_daily_spend() == 3
        assert not tracker.check_daily_budget()

    def test_record_goes_to_every_scope(self, clock):
        tracker = CostTracker(clock=clock)
        tracker.record_usage(1)
        tracker.record_usage("0.5", ALL)
        spent = {f"{one.kind}:{one.name}": str(one.spent.usd) for one in tracker.report()}
        assert spent == {
            "actor:a": "0.50",
            "day:2026-11-15": "1.50",
            "label:team=core": "0.50",
            "model:m": "0.50",
            "month:2026-11": "1.50",
            "plan:p": "0.50",
            "session:s": "0.50",
        }

    def test_same_key_is_counted_once(self):
        tracker = CostTracker()
        for _ in range(3):
            tracker.record_usage(1, ALL, key="response-1")
        assert tracker.get_daily_spend() == 1
        assert tracker.spend_by("plan") == {"p": Money.of(1)}

    @pytest.mark.parametrize("amounts", [(1, 2, 3), (3, 2, 1), (2, 3, 2), (3, 3, 1)], ids=str)
    def test_largest_amount_of_one_key_counts_in_any_order(self, amounts):
        """Providers stream growing snapshots of one bill; the first alone would undercount."""
        tracker = CostTracker()
        for amount in amounts:
            tracker.record_usage(amount, key="stream")
        assert tracker.get_daily_spend() == 3

    def test_repeated_key_stays_on_the_day_and_scopes_of_the_first(self, clock):
        tracker = CostTracker(clock=clock)
        tracker.record_usage(1, Scopes(plan="p"), key="k")
        clock.advance(86_400)
        tracker.record_usage(3, Scopes(plan="q"), key="k")
        assert tracker.spend_by("plan")["p"] == Money.of(3)
        assert tracker.spend_by("plan").get("q", Money(0)) == Money(0)
        assert tracker.get_daily_spend("2026-11-15") == 3
        assert tracker.get_daily_spend() == 0


class TestReserve:
    def test_reservation_is_refused_when_it_could_exceed_and_says_all_about_it(self, clock):
        tracker = CostTracker(daily_budget="1.00", clock=clock)
        tracker.record_usage("0.50")
        tracker.reserve("0.30")
        with pytest.raises(BudgetExceeded) as caught:
            tracker.reserve("0.21")
        assert caught.value.facts == {
            "scope": "day:2026-11-15",
            "limit": Money.of("1.00"),
            "spent": Money.of("0.50"),
            "promised": Money.of("0.30"),
            "asked": Money.of("0.21"),
        }
        assert caught.value.hint == (
            "Raise the limit of day `2026-11-15`, or ask for a call that costs at most 0.20 USD"
        )

    def test_last_cent_is_spendable(self):
        tracker = CostTracker(daily_budget=1.00)
        for _ in range(100):
            tracker.reserve(0.01).settle(0.01)
        assert tracker.get_daily_spend() == 1
        with pytest.raises(BudgetExceeded):
            tracker.reserve("0.000000000001")

    @pytest.mark.long
    @pytest.mark.parametrize("cents", [1, 7, 29, 57, 113, 1000])
    def test_budget_of_any_number_of_cents_allows_that_many_calls(self, cents):
        """Float budgets are wrong by one call in most of these, even in one thread."""
        tracker = CostTracker(daily_budget=cents / 100)
        calls = 0
        while tracker.check_daily_budget(0.01):
            tracker.record_usage(0.01)
            calls += 1
        assert calls == cents

    def test_refusal_changes_no_scope(self):
        """The last scope refuses: what was put on the earlier ones is taken back."""
        tracker = CostTracker(10, limits=[Limit("label", 1, name="team=core")])
        with pytest.raises(BudgetExceeded, match="label `team=core`"):
            tracker.reserve(2, ALL)
        assert all(one.promised == Money(0) for one in tracker.report())
        assert tracker.get_daily_spend() == 0

    def test_settle_charges_what_was_used_not_what_was_reserved(self):
        tracker = CostTracker(1, limits=[Limit("plan", 1)])
        reservation = tracker.reserve("0.80", ALL)
        assert reservation.settle("0.30") is Outcome.CHARGED
        assert tracker.get_daily_spend() == Decimal("0.30")
        assert tracker.balance("plan", "p").remaining == Money.of("0.70")
        assert reservation.charged == Money.of("0.30")

    def test_bill_above_its_reservation_is_recorded_and_flagged(self):
        notices = []
        tracker = CostTracker(1, on_notice=notices.append)
        assert tracker.reserve("0.10").settle("0.25") is Outcome.OVERRUN
        assert tracker.get_daily_spend() == Decimal("0.25")
        assert [one.code for one in notices] == ["CA2105"]
        assert notices[0].facts["reserved"] == Money.of("0.10")
        assert notices[0].facts["charged"] == Money.of("0.25")

    def test_release_gives_everything_back(self):
        tracker = CostTracker(1)
        reservation = tracker.reserve(1)
        assert reservation.release() is Outcome.RELEASED
        assert reservation.release() is Outcome.KEPT
        assert tracker.reserve(1).settle(1) is Outcome.CHARGED

    def test_day_is_the_day_of_the_reservation_not_of_the_reply(self, clock):
        clock.set(datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC))
        tracker = CostTracker(1, clock=clock)
        reservation = tracker.reserve(1)
        clock.advance(2)
        reservation.settle("0.75")
        assert tracker.get_daily_spend() == 0
        assert tracker.get_daily_spend("2026-11-30") == Decimal("0.75")
        assert tracker.spend_by("month") == {"2026-11": Money.of("0.75")}

    def test_new_day_is_a_new_budget_and_the_old_one_is_kept(self, clock):
        tracker = CostTracker(daily_budget=1, clock=clock)
        tracker.record_usage(1)
        clock.advance(86_400)
        assert tracker.check_daily_budget(1)
        tracker.record_usage(1)
        clock.advance(-86_400)
        assert not tracker.check_daily_budget(1)
        assert tracker.spend_by("day") == {"2026-11-15": Money.of(1), "2026-11-16": Money.of(1)}

    def test_day_turns_at_midnight_of_the_stated_zone(self, clock):
        clock.set(datetime(2026, 11, 15, 23, 30, tzinfo=UTC))
        tracker = CostTracker(zone="Europe/Berlin", clock=clock)
        tracker.record_usage(1)
        assert tracker.spend_by("day") == {"2026-11-16": Money.of(1)}

    @pytest.mark.parametrize("ttl_s", [0, -1, float("nan")])
    def test_time_to_live_must_be_above_0(self, ttl_s):
        with pytest.raises(RequestError, match="`reservation_ttl_s` must be a number of seconds"):
            CostTracker(reservation_ttl_s=ttl_s)
        tracker = CostTracker(1)
        with pytest.raises(RequestError, match="`ttl_s` must be a number of seconds above 0"):
            tracker.reserve(1, ttl_s=ttl_s)
        with pytest.raises(RequestError, match="`ttl_s` must be"):
            tracker.reserve(1).renew(ttl_s)


class TestSettleAgain:
    def test_settling_twice_counts_once(self):
        tracker = CostTracker(1)
        reservation = tracker.reserve(1)
        reservation.settle("0.4")
        assert reservation.settle("0.4") is Outcome.REPEATED
        assert reservation.release() is Outcome.KEPT
        assert tracker.get_daily_spend() == Decimal("0.40")

    def test_larger_second_bill_is_not_lost(self):
        tracker = CostTracker(1)
        reservation = tracker.reserve(1)
        reservation.settle("0.4")
        assert reservation.settle("0.6") is Outcome.REPEATED
        assert reservation.settle("0.5", key="late") is Outcome.REPEATED
        assert tracker.get_daily_spend() == Decimal("0.60")
        assert reservation.charged == Money.of("0.6")

    def test_bill_after_release_is_not_lost(self):
        tracker = CostTracker(1)
        reservation = tracker.reserve(1)
        reservation.release()
        assert reservation.settle("0.4") is Outcome.LATE
        assert tracker.get_daily_spend() == Decimal("0.40")

    def test_key_of_a_settled_bill_counts_once_whoever_repeats_it(self):
        tracker = CostTracker(10)
        tracker.reserve(1).settle(1, key="k")
        tracker.record_usage(1, key="k")
        second = tracker.reserve(2)
        assert second.settle(1, key="k") is Outcome.REPEATED
        assert second.settle(1) is Outcome.REPEATED
        assert tracker.get_daily_spend() == 1
        assert tracker.balance("day", tracker.report()[0].name).promised == Money(0)

    def test_larger_bill_under_a_known_key_is_counted_once_by_every_route(self):
        tracker = CostTracker(10)
        first = tracker.reserve(1)
        first.settle(1, key="k")
        assert first.settle(3, key="k") is Outcome.REPEATED
        assert first.settle(3) is Outcome.REPEATED
        tracker.record_usage(3, key="k")
        assert tracker.get_daily_spend() == 3
        assert first.charged == Money.of(3)

    @pytest.mark.parametrize("before", ["released", "abandoned", "settled low", "named"])
    def test_bill_above_the_reservation_is_flagged_whenever_it_comes(self, before):
        notices = []
        tracker = CostTracker(10, on_notice=notices.append)
        reservation = tracker.reserve("0.1")
        if before == "released":
            reservation.release()
        elif before == "abandoned":
            reservation.abandon()
        elif before == "settled low":
            reservation.settle("0.05")
        else:
            tracker.record_usage("0.05", key="k")
        notices.clear()
        reservation.settle(5, key="k")
        assert [one.code for one in notices] == ["CA2105"]
        reservation.settle(5, key="k")
        assert len(notices) == 1
        assert tracker.get_daily_spend() == 5

    def test_another_trackers_reservation_is_refused(self):
        reservation = CostTracker(10).reserve(1)
        with pytest.raises(RequestError, match="made by another tracker"):
            CostTracker(10).settle(reservation, 1)

    def test_overrun_by_a_named_bill_is_flagged(self):
        notices = []
        tracker = CostTracker(10, on_notice=notices.append)
        assert tracker.reserve(1).settle(2, key="k") is Outcome.OVERRUN
        assert [one.code for one in notices] == ["CA2105"]


class TestExpiry:
    def test_expired_reservation_is_charged_at_its_upper_bound_and_listed(self, clock):
        """Nothing was heard of the call: it may have been billed, so unknown is not free."""
        notices = []
        tracker = CostTracker(1, clock=clock, on_notice=notices.append)
        reservation = tracker.reserve("0.6", ttl_s=30)
        clock.advance(29)
        assert tracker.expire() == ()
        clock.advance(1)
        assert tracker.expire() == (reservation,)
        assert tracker.get_daily_spend() == Decimal("0.60")
        assert [one.code for one in notices] == ["CA2106"]
        with pytest.raises(BudgetExceeded):
            tracker.reserve("0.5")

    def test_settle_after_expiry_replaces_the_unconfirmed_charge(self, clock):
        tracker = CostTracker(1, clock=clock)
        reservation = tracker.reserve("0.6", ttl_s=30)
        clock.advance(31)
        tracker.expire()
        assert reservation.settle("0.2") is Outcome.LATE
        assert tracker.get_daily_spend() == Decimal("0.20")
        assert tracker.expire() == ()

    def test_release_after_expiry_takes_the_charge_back(self, clock):
        tracker = CostTracker(1, clock=clock)
        reservation = tracker.reserve("0.6", ttl_s=30)
        clock.advance(31)
        tracker.expire()
        assert reservation.release() is Outcome.RELEASED
        assert tracker.get_daily_spend() == 0

    def test_known_bill_takes_the_unconfirmed_charge_back(self, clock):
        tracker = CostTracker(1, clock=clock)
        tracker.record_usage("0.2", key="k")
        reservation = tracker.reserve("0.6", ttl_s=30)
        clock.advance(31)
        tracker.expire()
        assert reservation.settle("0.2", key="k") is Outcome.REPEATED
        assert tracker.get_daily_spend() == Decimal("0.20")

    def test_renewed_reservation_lives_on(self, clock):
        tracker = CostTracker(1, clock=clock)
        first = tracker.reserve("0.3", ttl_s=30)
        second = tracker.reserve("0.3", ttl_s=40)
        assert first.renew(60)
        clock.advance(41)
        assert tracker.expire() == (second,)
        assert not second.renew()
        clock.advance(60)
        assert set(tracker.expire()) == {first, second}

    def test_settled_reservation_does_not_expire(self, clock):
        tracker = CostTracker(1, clock=clock)
        tracker.reserve("0.3", ttl_s=30).settle("0.1")
        clock.advance(100)
        assert tracker.expire() == ()


class TestContextManager:
    def test_block_that_settles_charges_the_bill(self):
        tracker = CostTracker(1)
        with tracker.reserve(1) as reservation:
            reservation.settle("0.5")
        assert tracker.get_daily_spend() == Decimal("0.50")

    def test_block_that_ends_without_a_bill_releases(self):
        tracker = CostTracker(1)
        with tracker.reserve(1):
            pass
        assert tracker.check_daily_budget(1)

    def test_block_that_raises_is_charged_until_the_truth_is_known(self):
        tracker = CostTracker(1)
        with pytest.raises(ConnectionError), tracker.reserve("0.7") as reservation:
            raise ConnectionError
        assert reservation.state is State.UNCONFIRMED
        assert tracker.get_daily_spend() == Decimal("0.70")
        reservation.release()
        assert tracker.get_daily_spend() == 0

    def test_block_that_raises_after_settling_keeps_the_bill(self):
        tracker = CostTracker(1)
        reservation = tracker.reserve(1)
        with pytest.raises(KeyError), reservation:
            {}[reservation.settle("0.5")]
        assert tracker.get_daily_spend() == Decimal("0.50")
        assert repr(reservation) == "<Reservation of 1.00 USD, settled>"


class TestLimits:
    def test_tightest_of_many_limits_decides(self):
        tracker = CostTracker(
            100,
            limits=[
                Limit("month", 50),
                Limit("plan", 2),
                Limit("plan", 1, name="p"),
                Limit("model", 3, name="m"),
            ],
        )
        with pytest.raises(BudgetExceeded, match="plan `p`"):
            tracker.reserve("1.5", ALL)
        tracker.reserve("1.5", Scopes(plan="q", model="m"))
        with pytest.raises(BudgetExceeded, match="model `m`"):
            tracker.reserve("1.6", Scopes(plan="r", model="m"))

    def test_month_limit_holds_over_days(self, clock):
        tracker = CostTracker(limits=[Limit("month", 1)], clock=clock)
        tracker.record_usage("0.6")
        clock.advance(86_400)
        with pytest.raises(BudgetExceeded, match="month `2026-11`"):
            tracker.reserve("0.5")

    def test_limit_set_later_counts_what_was_spent_before(self):
        tracker = CostTracker()
        held = tracker.reserve("0.3", ALL)
        tracker.record_usage("0.6", ALL)
        tracker.set_limit(Limit("plan", 1, name="p"))
        with pytest.raises(BudgetExceeded, match="plan `p`"):
            tracker.reserve("0.2", ALL)
        held.release()
        tracker.reserve("0.2", ALL)

    def test_limit_of_the_same_place_is_replaced_and_can_be_lifted(self):
        tracker = CostTracker(daily_budget=1)
        tracker.set_limit(Limit("day", 2))
        assert tracker.limits == (Limit("day", 2),)
        assert tracker.check_daily_budget(2)
        tracker.remove_limit(Limit("day", 0))
        tracker.remove_limit(Limit("day", 0))
        assert tracker.limits == ()
        assert tracker.check_daily_budget(1000)

    def test_soft_limit_warns_once_for_each_threshold_and_refuses_nothing(self, clock):
        notices = []
        soft = Limit("day", 1, hard=False, warn_at=(0.5, 0.8, 1.0))
        tracker = CostTracker(limits=[soft], clock=clock, on_notice=notices.append)
        shares = []
        for cost in ("0.49", "0.01", "0.01", "0.40", "0.5"):
            tracker.record_usage(cost)
            shares.append([one.facts["share"] for one in notices])
            notices.clear()
        assert shares == [[], [0.5], [], [0.8], [1.0]]
        clock.advance(86_400)
        tracker.reserve(2).settle("0.5")
        tracker.report()
        assert [one.facts["share"] for one in notices] == [0.5]
        assert notices[0].code == "CA2104"
        assert notices[0].message == "Spending of day `2026-11-16` reached 50% of its soft budget"

    def test_threshold_already_reported_stays_reported_when_limits_change(self):
        notices = []
        plan = Limit("plan", 1, warn_at=(0.5,))
        tracker = CostTracker(limits=[plan], on_notice=notices.append)
        tracker.record_usage("0.6", ALL, key="k")
        tracker.set_limit(Limit("day", 5))
        tracker.record_usage("0.7", ALL, key="k")
        assert [one.message for one in notices] == [
            "Spending of plan `p` reached 50% of its hard budget"
        ]

    def test_settled_bill_and_overrun_are_both_reported(self):
        notices = []
        tracker = CostTracker(limits=[Limit("day", 1, warn_at=(1.0,))], on_notice=notices.append)
        tracker.reserve("0.5").settle(2)
        tracker.report()
        assert sorted(one.code for one in notices) == ["CA2104", "CA2105"]

    def test_listener_that_raises_hurts_nobody(self):
        def broken(_: object) -> None:
            raise ValueError

        tracker = CostTracker(limits=[Limit("day", 1, warn_at=(0.1,))], on_notice=broken)
        tracker.record_usage(1)
        assert tracker.get_daily_spend() == 1


class TestReading:
    def test_day_can_be_asked_for_by_date_or_text(self, clock):
        tracker = CostTracker(clock=clock)
        tracker.record_usage(1)
        assert tracker.get_daily_spend(date(2026, 11, 15)) == 1
        assert tracker.get_daily_spend("2026-11-15") == 1
        assert tracker.get_daily_spend(date(2026, 11, 15) + timedelta(days=1)) == 0

    @pytest.mark.parametrize("day", ["yesterday", "2026-13-01", 7], ids=repr)
    def test_what_is_not_a_day_is_refused(self, day):
        with pytest.raises(RequestError, match="A day must be a date or text such as"):
            CostTracker().get_daily_spend(day)

    def test_unknown_kind_of_scope_is_refused(self):
        with pytest.raises(RequestError, match="A kind of scope must be one of"):
            CostTracker().spend_by("week")
        with pytest.raises(RequestError, match="A kind of scope must be one of"):
            CostTracker().balance("week", "1")

    def test_check_counts_promises_and_accepts_any_cost_without_a_limit(self):
        tracker = CostTracker(daily_budget=1)
        tracker.reserve("0.9")
        assert tracker.check_daily_budget()
        assert not tracker.check_daily_budget("0.2")
        assert CostTracker().check_daily_budget(1_000_000)

    def test_unknown_zone_is_refused_at_birth(self):
        with pytest.raises(SetupError):
            CostTracker(zone="Nowhere")
