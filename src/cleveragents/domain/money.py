"""Exact money: a whole number of pico-dollars (10⁻¹² USD)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Final, TypeAlias

from cleveragents.domain.errors import RequestError

PICO_PER_USD: Final = 10**12
#: One amount must fit a signed 64-bit integer of pico-dollars wherever it is stored.
AMOUNT_USD_MAX: Final = 1_000_000

_PICO_MAX: Final = AMOUNT_USD_MAX * PICO_PER_USD
_ONE_PICO: Final = Decimal((0, (1,), -12))
# Wide enough for every amount below the maximum, so that only `quantize` rounds.
_WIDE: Final = Context(prec=60)


@dataclass(frozen=True, order=True, slots=True)
class Money:
    """An exact amount of US dollars, kept as whole pico-dollars.

    Differences may be negative; amounts that come from outside go through `Money.of`,
    which refuses everything that cannot be a price, a bill or a limit.
    """

    pico: int

    def __post_init__(self) -> None:
        if type(self.pico) is not int:
            raise _not_money("and pico-dollars are whole, so use `Money.of`")

    @classmethod
    def of(cls, value: Amount) -> Money:
        """Convert an amount of USD, or refuse it with CA1003."""
        pico = pico_of(value)
        return value if type(value) is cls else cls(pico)

    @property
    def usd(self) -> Decimal:
        """The exact amount in USD, without trailing zeros beyond the cents."""
        plain = Decimal(self.pico).scaleb(-12, _WIDE)
        cents = plain.quantize(Decimal("0.01"), context=_WIDE)
        return cents if cents == plain else plain.normalize(_WIDE)

    def __add__(self, other: Money) -> Money:
        return Money(self.pico + other.pico)

    def __sub__(self, other: Money) -> Money:
        return Money(self.pico - other.pico)

    def __bool__(self) -> bool:
        return self.pico != 0

    def __str__(self) -> str:
        return f"{self.usd:f} USD"


#: What a caller may hand in where money is asked for.
Amount: TypeAlias = Money | Decimal | int | float | str


def pico_of(value: Amount) -> int:
    """Return an amount of USD as whole pico-dollars.

    A float means its shortest decimal form: `0.00075` is exactly that.
    What is finer than a pico-dollar is rounded half-even, but a positive amount never becomes free.
    """
    if type(value) is Money and 0 <= value.pico <= _PICO_MAX:
        return value.pico
    if type(value) is float and 0.0 < value < 1000.0:
        # A proof, not a guess: below 1000 USD different pico-dollars are different floats,
        # so n is right exactly when n / 1e12, correctly rounded, is the value again.
        pico = round(value * 1e12)
        if pico / 1e12 == value:
            return pico
    pico = value.pico if isinstance(value, Money) else _exact_pico(value)
    if not 0 <= pico <= _PICO_MAX:
        raise _not_money(f"got {value!s}")
    return pico


def _exact_pico(value: Amount) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise _not_money(f"got {type(value).__name__}")
    if isinstance(value, int) and abs(value) > AMOUNT_USD_MAX:
        raise _not_money(f"got a number of {value.bit_length()} bits")
    try:
        amount = Decimal(float.__repr__(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise _not_money(f"got {value!r}") from None
    if not amount.is_finite() or abs(amount) > AMOUNT_USD_MAX:
        raise _not_money(f"got {value!r}")
    rounded = int(amount.quantize(_ONE_PICO, ROUND_HALF_EVEN, _WIDE).scaleb(12, _WIDE))
    return 1 if rounded == 0 and amount > 0 else rounded


def _not_money(got: str) -> RequestError:
    return RequestError(
        f"An amount must be a number of USD from 0 to {AMOUNT_USD_MAX:,}, {got}",
        code="CA1003",
        hint="Pass a float, int, `Decimal`, `Money`, or text such as '0.25'",
    )
