from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cleveragents.domain.budget import Balance, CalendarDay, Limit, Scopes, zone_of
from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.money import Money


def test_scopes_have_one_key_for_each_name():
    scopes = Scopes(
        plan="p-1", actor="a", model="m", session="s", labels=("team=core", "team=core")
    )
    assert scopes.keys == ("plan:p-1", "session:s", "actor:a", "model:m", "label:team=core")


@pytest.mark.parametrize("name", ["", "  ", 7])
def test_blank_name_of_a_scope_is_refused(name):
    with pytest.raises(RequestError, match="The name of a plan must be text that is not blank"):
        Scopes(plan=name)
    with pytest.raises(RequestError, match="not blank"):
        Limit("plan", 1, name=name)


def test_limit_without_a_name_covers_each_scope_of_its_kind():
    assert Limit("plan", 1).covers("plan:p-1")
    assert Limit("plan", 1, name="p-1").covers("plan:p-1")
    assert not Limit("plan", 1, name="p-2").covers("plan:p-1")
    assert not Limit("day", 1).covers("plan:p-1")


def test_soft_limit_warns_at_80_and_100_percent_by_default():
    assert Limit("day", 1).warn_at == ()
    assert Limit("day", 1, hard=False).warn_at == (0.8, 1.0)
    assert Limit("day", 1, warn_at=(1.0, 0.5, 0.5)).warn_at == (0.5, 1.0)


def test_threshold_is_reached_at_the_first_pico_dollar_that_is_enough():
    assert Limit("day", Money(3), warn_at=(0.5,)).thresholds() == ((2, 0.5),)
    assert Limit("day", "0.1", warn_at=(0.7,)).thresholds() == ((7 * 10**10, 0.7),)


def test_labels_and_shares_must_be_tuples():
    with pytest.raises(RequestError, match="`labels` must be a tuple"):
        Scopes(labels="abc")
    with pytest.raises(RequestError, match="`warn_at` must be a tuple"):
        Limit("day", 1, warn_at=0.8)


@pytest.mark.parametrize("shares", [(0.0,), (-0.1,), (1.1,), (float("nan"),)])
def test_share_outside_its_range_is_refused(shares):
    with pytest.raises(RequestError, match="`warn_at` must be shares above 0 up to 1"):
        Limit("day", 1, warn_at=shares)


def test_limit_of_an_unknown_kind_or_a_bad_amount_is_refused():
    with pytest.raises(RequestError, match="A limit's kind must be one of"):
        Limit("week", 1)
    with pytest.raises(RequestError, match="must be a number of USD"):
        Limit("day", -1)


def test_remaining_is_what_may_still_be_promised():
    assert Balance("day", "d", Money(3), Money(4), Money(10)).remaining == Money(3)
    assert Balance("day", "d", Money(9), Money(4), Money(10)).remaining == Money(-3)
    assert Balance("day", "d", Money(9), Money(4), None).remaining is None


def test_day_with_a_clock_change_is_23_or_25_hours_long():
    berlin = ZoneInfo("Europe/Berlin")
    spring = CalendarDay.at(datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp(), berlin)
    autumn = CalendarDay.at(datetime(2026, 10, 25, 12, tzinfo=UTC).timestamp(), berlin)
    assert (spring.day, spring.ends_at - spring.starts_at) == ("2026-03-29", 23 * 3600)
    assert (autumn.day, autumn.ends_at - autumn.starts_at) == ("2026-10-25", 25 * 3600)
    assert autumn.month == "2026-10"


def test_unknown_zone_is_a_set_up_error():
    assert zone_of("UTC") == ZoneInfo("UTC")
    assert zone_of(UTC) is UTC
    for wrong in ("Mars/Base", "", "../etc/passwd", None):
        with pytest.raises(SetupError, match="A zone must be a name"):
            zone_of(wrong)
