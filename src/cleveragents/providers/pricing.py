"""What model calls cost: the catalogue of `genai-prices`, compiled to whole numbers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from time import time as wall_clock
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.money import PICO_PER_USD, Amount, Money, pico_of
from cleveragents.domain.usage import USAGE_FIELDS
from cleveragents.providers.price_rules import REQUEST, Rate, Schedule, Tariff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from genai_prices.types import ModelInfo, ModelPrice, PriceContext, Provider, TieredPrices

    from cleveragents.domain.usage import Usage
    from cleveragents.providers.price_rules import CompiledTariff

#: Where own prices stand. Read from the current folder; `CLEVERAGENTS_SETTINGS` names another file.
SETTINGS_FILE: Final = "cleveragents.toml"
#: The variable that names another file.
SETTINGS_VARIABLE: Final = "CLEVERAGENTS_SETTINGS"

_new: Final = object.__new__
_set_pico: Final = vars(Money)["pico"].__set__

_BATCH: Final = {"processing": "batch"}
#: Units that are called otherwise in the catalogue than in `Usage`.
_UNIT_NAMES: Final = {
    "output_reasoning_tokens": "reasoning_tokens",
    "output_citation_tokens": "citation_tokens",
    "requests": REQUEST,
}
_COUNTED: Final = frozenset({REQUEST, *USAGE_FIELDS})
#: Provider names of pydantic-ai that the catalogue does not place; it places the others itself.
_PROVIDER_NAMES: Final = {"grok": "x-ai", "azure-responses": "azure"}
#: A rule of one provider that genai-prices keeps in its code, not in its data.
_AUDIO_SECONDS_MIN: Final = {
    ("groq", "whisper-large-v3"): 10,
    ("groq", "whisper-large-v3-turbo"): 10,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Your own price of a model in USD: per million tokens (`mtok`), per request, per web search.

    Amounts are text, `Decimal`, int or float, exact to 12 decimals. What has no price of its own
    is charged as what it is part of: cached tokens as input, reasoning as output.
    """

    input_mtok: Amount
    output_mtok: Amount
    cache_read_mtok: Amount | None = None
    cache_write_mtok: Amount | None = None
    cache_write_1h_mtok: Amount | None = None
    reasoning_mtok: Amount | None = None
    request: Amount = 0
    web_search: Amount = 0

    def __post_init__(self) -> None:
        self.pico()  # refuses what is not money

    def pico(self) -> dict[str, int]:
        """Return the amounts that are set, by name, in pico-dollars."""
        amounts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: pico_of(amount) for name, amount in amounts.items() if amount is not None}


@dataclass(frozen=True, slots=True)
class _Card:
    """The prices of one model, compiled."""

    standard: Schedule
    batch: Schedule


class PriceTable:
    """Prices of model calls: exact, rounded up once, at the end, to the pico-dollar.

    A model is written `provider:model`, or as a bare name that tells its provider.
    `overrides` win over the catalogue; each holds for exactly the name that it is given under.
    Prices are those of the installed package, which `version` names: nothing is ever fetched.

    Safe to share between threads, also without an interpreter lock: a model is compiled on first
    use to an immutable card, and a card is published by replacing the whole mapping of cards,
    so a reader finds it whole or not at all. Two threads that are first to ask for a model may
    both compile it; their cards are equal, and no published card is lost.
    """

    def __init__(
        self,
        overrides: Mapping[str, Price] | None = None,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock or wall_clock
        self._overrides = {_key(name): price for name, price in (overrides or {}).items()}
        self.version: Final = _version(self._overrides)
        self._cards_lock = threading.Lock()  # guards: replacing _cards, which is never changed
        self._cards: Mapping[str, _Card] = {}

    def cost_of(
        self, model: str, usage: Usage, *, at: datetime | None = None, batch: bool = False
    ) -> Money:
        """Return what a call cost; `at` is when it was sent: now by default, naive means UTC."""
        # This is the path of every bill: calling `Money(…)` would make it a quarter slower.
        try:
            card = self._cards[model]
        except KeyError:
            card = self._compile(model)
        schedule = card.batch if batch else card.standard
        tariff = schedule.only or schedule.at(self._moment(at))
        money = _new(Money)
        _set_pico(money, tariff.pico_of(usage))
        return money

    def worst_case(
        self,
        model: str,
        input_tokens: int,
        max_output_tokens: int,
        *,
        max_searches: int = 0,
        at: datetime | None = None,
    ) -> Money:
        """Return the most that one call can cost: what to reserve before it is sent.

        No usage within these counts costs more at the same `at`, whatever part of the prompt is
        written to a cache, spoken or drawn, whatever part of the output is reasoning, and whether
        it goes in a batch or not. `max_searches` bounds the searches that the provider runs.
        """
        for count in (input_tokens, max_output_tokens, max_searches):
            if type(count) is not int or count < 0:
                raise RequestError(f"A count must be a whole number from 0, got {count!r}")
        card = self._cards.get(model) or self._compile(model)
        moment = self._moment(at)
        tariff = card.standard.at(moment)
        if tariff.unbounded:
            raise _unbounded(model, tariff)
        most = tariff.most_pico(input_tokens, max_output_tokens, max_searches)
        if card.batch is not card.standard:
            batch = card.batch.at(moment)
            most = max(most, batch.most_pico(input_tokens, max_output_tokens, max_searches))
        return Money(most)

    def _moment(self, at: datetime | None) -> datetime:
        if at is None:
            return datetime.fromtimestamp(self._clock(), UTC)
        return at if at.tzinfo else at.replace(tzinfo=UTC)

    def _compile(self, model: str) -> _Card:
        if not isinstance(model, str):
            raise RequestError(f"A model must be a name such as 'openai:gpt-5-mini', got {model!r}")
        price = self._overrides.get(_key(model))
        card = _catalogue_card(model) if price is None else _own_card(price)
        with self._cards_lock:
            self._cards = {**self._cards, model: card}
        return card


def _key(name: str) -> str:
    return name.strip().lower()


def _version(overrides: Mapping[str, Price]) -> str:
    """Name the price data, so that a stored cost can be traced to the prices it came from."""
    from hashlib import sha256
    from importlib.metadata import version

    catalogue = f"genai-prices {version('genai-prices')}"
    if not overrides:
        return catalogue
    own = sorted((name, sorted(price.pico().items())) for name, price in overrides.items())
    return f"{catalogue} + own {sha256(repr(own).encode()).hexdigest()[:12]}"


def _own_card(price: Price) -> _Card:
    pico = price.pico()
    rates = {
        REQUEST: Rate(Fraction(pico.pop("request"))),
        "web_searches": Rate(Fraction(pico.pop("web_search"))),
    }
    for name, amount in pico.items():
        rates[name.replace("_mtok", "_tokens")] = Rate(Fraction(amount, 10**6))
    schedule = Schedule.of(lambda _: Tariff(rates))
    return _Card(schedule, schedule)


def _catalogue_card(name: str) -> _Card:
    # Imported on first use: it takes half a second. The data comes from the package itself, not
    # from a refresh that someone started in this process, so that `version` tells the truth.
    from genai_prices.data import providers
    from genai_prices.data_snapshot import DataSnapshot

    catalogue = DataSnapshot(providers=providers, from_auto_update=False)
    provider_name, model_name = _split(name)
    try:
        provider, model = catalogue.find_provider_model(model_name, None, provider_name, None)
    except LookupError:
        raise _unknown(name) from None
    return _listed_card(provider, model)


def _listed_card(provider: Provider, model: ModelInfo) -> _Card:
    audio_seconds_min = _AUDIO_SECONDS_MIN.get((provider.id, model.id), 0)
    standard = _schedule(model, {}, audio_seconds_min)
    # A model that the provider borrows from another one has no batch price there.
    if not model.price_variants or all(model is not listed for listed in provider.models):
        return _Card(standard, standard)
    return _Card(standard, _schedule(model, _BATCH, audio_seconds_min))


def _split(name: str) -> tuple[str | None, str]:
    """Split `provider:model`; a name without a colon leaves the provider to the catalogue.

    An unknown provider stays unknown: `ollama:gpt-oss` must not get OpenAI's price.
    """
    provider, colon, model = _key(name).partition(":")
    if not colon:
        return None, provider
    provider = provider.removeprefix("gateway/")
    return _PROVIDER_NAMES.get(provider, provider), model


def _schedule(model: ModelInfo, context: PriceContext, audio_seconds_min: int) -> Schedule:
    from genai_prices.types import StartDateConstraint, TimeOfDateConstraint

    constraints = [p.constraint for p in model.prices] if isinstance(model.prices, list) else []
    constraints += [
        variant.constraint
        for variant in model.price_variants or ()
        if variant.when.items() <= context.items()
    ]
    dates: list[date] = []
    times: list[time] = []
    for constraint in constraints:
        match constraint:
            case None:
                pass
            case StartDateConstraint(start_date):
                dates.append(start_date)
            case TimeOfDateConstraint(start_time, end_time):
                times += [_in_utc(start_time), _in_utc(end_time)]
            case _:  # a new kind of constraint, which must not be priced as if it were none
                raise AssertionError("unreachable")
    return Schedule.of(
        lambda moment: Tariff(_rates(model.get_prices(moment, context)), audio_seconds_min),
        dates,
        times,
    )


def _in_utc(moment: time) -> time:
    zone = moment.tzinfo or UTC
    return datetime.combine(date(2000, 1, 1), moment, zone).astimezone(UTC).time()


def _rates(prices: ModelPrice) -> dict[str, Rate]:
    """Return what the catalogue charges for each unit that a `Usage` counts."""
    from genai_prices.data_units import unit_data

    units = {unit["price_key"]: (name, unit["per"]) for name, unit in unit_data.items()}
    rates: dict[str, Rate] = {}
    for price_key, price in vars(prices).items():
        name, per = units[price_key]
        unit = _UNIT_NAMES.get(name, name)
        if price is not None and unit in _COUNTED:
            rates[unit] = _rate(price, per)
    return rates


def _rate(price: Decimal | TieredPrices, per: int) -> Rate:
    def pico(usd: Decimal) -> Fraction:
        return Fraction(usd) * PICO_PER_USD / per

    if isinstance(price, Decimal):
        return Rate(pico(price))
    return Rate(pico(price.base), tuple((tier.start, pico(tier.price)) for tier in price.tiers))


def _unknown(name: str) -> SetupError:
    return SetupError(
        f"No price is known for model `{name}`",
        code="CA1004",
        facts={"model": name},
        hint=_how_to_price(name),
    )


def _unbounded(name: str, tariff: CompiledTariff) -> SetupError:
    return SetupError(
        f"Model `{name}` charges for what no limit on tokens bounds",
        code="CA1004",
        facts={"model": name, "charges_for": ", ".join(tariff.unbounded)},
        hint=_how_to_price(name),
    )


def _how_to_price(name: str) -> str:
    """Say where a price goes; what costs nothing gets a command that works if pasted."""
    import json
    import os
    import shlex

    settings = os.environ.get(SETTINGS_VARIABLE) or SETTINGS_FILE
    table = f"[prices.{json.dumps(name, ensure_ascii=False)}]"
    if not _key(name).startswith("ollama:"):
        # No amount of ours: pasted, it would be charged.
        return (
            "Set `input_mtok` and `output_mtok` to what it costs in USD per million tokens,"
            f" below `{table}` in `{settings}`"
        )
    # What runs on the user's own machine has no bill.
    append = shlex.join(["printf", r"%s\n", "", table, "input_mtok = 0", "output_mtok = 0"])
    return f"Run `{append} >> {shlex.quote(settings)}`, because it costs nothing"
