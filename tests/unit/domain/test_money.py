from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import AMOUNT_USD_MAX, Money, pico_of


@pytest.mark.parametrize(
    ("value", "pico"),
    [
        (0.00075, 750_000_000),
        (5.00, 5 * 10**12),
        (3, 3 * 10**12),
        ("0.25", 25 * 10**10),
        (Decimal("0.000000000001"), 1),
        (Money(7), 7),
        (0, 0),
        (0.0, 0),
        (999_999.99, 99_999_999 * 10**10),
        (AMOUNT_USD_MAX, 10**18),
    ],
    ids=str,
)
def test_amount_means_exactly_what_is_written(value, pico):
    assert Money.of(value).pico == pico


def test_float_means_its_shortest_decimal_form():
    """0.1 + 0.2 is written 0.30000000000000004: to the pico-dollar that is 0.3."""
    assert Money.of(0.1 + 0.2) == Money.of("0.3")


@pytest.mark.parametrize("value", [1e-13, "1e-500", Decimal("1E-30"), 5e-324], ids=str)
def test_positive_amount_never_becomes_free(value):
    assert Money.of(value) == Money(1)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        -0.01,
        -1,
        "-0.1",
        Money(-1),
        Money(10**18 + 1),
        1e9,
        "free",
        "",
        "1" * 5000,
        None,
        True,
        [],
        b"1",
        10**5000,
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_what_is_not_money_is_refused_with_its_rule(value):
    with pytest.raises(RequestError, match="must be a number of USD from 0 to 1,000,000") as caught:
        Money.of(value)
    assert caught.value.code == "CA1003"


@given(st.floats(min_value=0, max_value=AMOUNT_USD_MAX))
def test_fast_conversion_of_floats_equals_the_slow_one(value):
    assert pico_of(value) == pico_of(Decimal(repr(value)))


@pytest.mark.parametrize(
    ("pico", "text"),
    [
        (0, "0.00 USD"),
        (10**12, "1.00 USD"),
        (750_000_000, "0.00075 USD"),
        (1, "0.000000000001 USD"),
        (-25 * 10**10, "-0.25 USD"),
        (100 * 10**12, "100.00 USD"),
    ],
)
def test_money_is_shown_with_its_currency_and_without_idle_zeros(pico, text):
    assert str(Money(pico)) == text


def test_money_adds_compares_and_knows_zero():
    assert Money(2) + Money(3) - Money(1) == Money(4)
    assert Money(2) < Money(3)
    assert not Money(0)
    assert Money(1)


def test_money_is_whole_pico_dollars_and_nothing_else():
    for wrong in (5.0, "5", None, True):
        with pytest.raises(RequestError, match=r"use `Money\.of`"):
            Money(wrong)


def test_float_of_another_class_means_its_number():
    class Strange(float):
        def __repr__(self) -> str:
            return "Strange"

    assert Money.of(Strange(2000.5)) == Money.of("2000.5")
