"""The compiled prices are those of `genai_prices.calc_price`, over its whole catalogue."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, timedelta

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices.data import providers
from genai_prices.data_snapshot import DataSnapshot
from genai_prices.data_units import unit_data
from genai_prices.types import ModelPrice, TieredPrices, TimeOfDateConstraint
from genai_prices.units import UnitRegistry

from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import PICO_PER_USD
from cleveragents.domain.usage import PART_OF, USAGE_FIELDS, Usage
from cleveragents.providers import pricing
from cleveragents.providers.pricing import PriceTable

pytestmark = pytest.mark.long

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
BATCH = {"processing": "batch"}
THEIR_NAMES = {
    "reasoning_tokens": "output_reasoning_tokens",
    "citation_tokens": "output_citation_tokens",
}
#: Wide enough that only `/ 3600` of an hourly price can round, far below a pico-dollar.
#: With the default 28 digits calc_price rounds prices of 18 decimals before we could compare.
WIDE = decimal.Context(prec=80)

PLAIN = Usage(input_tokens=1_237, output_tokens=569)
CACHED = Usage(
    input_tokens=20_011,
    output_tokens=313,
    cache_read_tokens=7_001,
    cache_write_tokens=5_009,
    cache_write_1h_tokens=1_013,
)
EVERYTHING = Usage(
    input_tokens=90_001,
    output_tokens=20_011,
    cache_read_tokens=5_003,
    cache_write_tokens=4_001,
    cache_write_1h_tokens=2_003,
    reasoning_tokens=3_001,
    citation_tokens=1_009,
    input_audio_tokens=3_011,
    output_audio_tokens=1_201,
    cache_audio_read_tokens=701,
    input_image_tokens=2_011,
    output_image_tokens=809,
    cache_image_read_tokens=503,
    input_video_tokens=1_013,
    output_video_tokens=401,
    web_searches=3,
    storage_searches=2,
    input_characters=1_999,
    input_text_messages=7,
    audio_seconds=61,
    input_audio_seconds=47,
    input_document_pages=13,
    input_annotated_document_pages=5,
)
SHORT_AUDIO = Usage(audio_seconds=3, input_audio_seconds=3)
CONTRADICTORY = Usage(input_tokens=10, output_tokens=10, cache_read_tokens=11)


def _their_usage(usage):
    return TheirUsage(**{THEIR_NAMES.get(f, f): getattr(usage, f) for f in USAGE_FIELDS})


def _their_pico(provider, model, usage, at, context):
    try:
        with decimal.localcontext(WIDE):
            price = model.calc_price(
                _their_usage(usage), provider, genai_request_timestamp=at, price_context=context
            )
            return int((price.total_price * PICO_PER_USD).to_integral_value(decimal.ROUND_CEILING))
    except ValueError:
        return "refused"


def _our_pico(table, name, usage, at, *, batch):
    try:
        return table.cost_of(name, usage, at=at, batch=batch).pico
    except RequestError:
        return "refused"


def _all_prices(model):
    standard = [model.prices] if isinstance(model.prices, ModelPrice) else model.prices
    entries = [*standard, *(model.price_variants or ())]
    return [entry if isinstance(entry, ModelPrice) else entry.prices for entry in entries]


def _usages(model):
    yield from (Usage(), PLAIN, CACHED, EVERYTHING, SHORT_AUDIO, CONTRADICTORY)
    starts = {
        tier.start
        for prices in _all_prices(model)
        for price in vars(prices).values()
        if isinstance(price, TieredPrices)
        for tier in price.tiers
    }
    for prompt in sorted({start + more for start in starts for more in (0, 1)}):
        yield Usage(input_tokens=prompt, output_tokens=911)
        yield Usage(
            input_tokens=prompt, output_tokens=7, cache_read_tokens=99, cache_write_tokens=9
        )


def _moments(model):
    """Noon, every moment at which a price changes, the microsecond before and an hour after."""
    entries = [] if isinstance(model.prices, ModelPrice) else model.prices
    constraints = [entry.constraint for entry in (*entries, *(model.price_variants or ()))]
    days, times = set(), set()
    for constraint in constraints:
        if isinstance(constraint, TimeOfDateConstraint):
            times |= {constraint.start_time, constraint.end_time}
        elif constraint is not None:
            days.add(constraint.start_date)
    changes = [
        datetime.combine(day, time.replace(tzinfo=None), UTC)
        for day in days | ({NOON.date()} if times else set())
        for time in times | {datetime.min.time()}
    ]
    steps = (timedelta(microseconds=-1), timedelta(), timedelta(hours=1))
    return sorted({NOON, *(change + step for change in changes for step in steps)})


@pytest.mark.parametrize("provider", providers, ids=lambda provider: provider.id)
def test_every_model_costs_what_calc_price_says(provider):
    table = PriceTable()
    for model in provider.models:
        # Some listed models have no name that finds them, so the card is put in by hand.
        table._cards = {"it": pricing._listed_card(provider, model)}
        contexts = (None, BATCH) if model.price_variants else (None,)
        for at in _moments(model):
            for context in contexts:
                for usage in _usages(model):
                    ours = _our_pico(table, "it", usage, at, batch=context is BATCH)
                    theirs = _their_pico(provider, model, usage, at, context)
                    assert ours == theirs, (provider.id, model.id, usage, at, context)


@pytest.mark.parametrize("provider", providers, ids=lambda provider: provider.id)
def test_every_name_finds_the_model_that_calc_price_finds(provider):
    catalogue = DataSnapshot(providers=providers, from_auto_update=False)
    table = PriceTable()
    for name in (model.id for model in provider.models):
        try:
            _, model = catalogue.find_provider_model(name, None, provider.id, None)
        except LookupError:
            continue
        cost = table.cost_of(f"{provider.id}:{name}", PLAIN, at=NOON)
        assert cost.pico == _their_pico(provider, model, PLAIN, NOON, None), name


def test_usage_counts_everything_that_the_catalogue_charges_for():
    charged = {
        unit
        for provider in providers
        for model in provider.models
        for prices in _all_prices(model)
        for unit, raw in unit_data.items()
        if getattr(prices, raw["price_key"]) is not None
    }
    counted = {THEIR_NAMES.get(name, name) for name in USAGE_FIELDS}
    assert charged - counted == {"requests"}


def test_parts_are_part_of_the_same_wholes_as_in_the_catalogue():
    registry = UnitRegistry(unit_data)
    ours = {THEIR_NAMES.get(name, name): name for name in USAGE_FIELDS}
    for theirs, name in ours.items():
        wholes = {ours[w] for w in registry.ancestor_usage_keys(theirs) if w in ours}
        assert wholes == set(PART_OF.get(name, ())), name


def test_a_model_borrowed_from_another_provider_has_no_batch_price():
    """Azure sells Anthropic's models, but not at Anthropic's batch prices."""
    table = PriceTable()
    standard = table.cost_of("azure:claude-opus-4-5", PLAIN, at=NOON)
    assert table.cost_of("azure:claude-opus-4-5", PLAIN, at=NOON, batch=True) == standard
    assert table.cost_of("anthropic:claude-opus-4-5", PLAIN, at=NOON, batch=True) < standard


def test_the_walk_meets_dated_and_hourly_prices():
    """A walk that met none of them would prove little."""
    models = [model for provider in providers for model in provider.models]
    assert sum(len(_moments(model)) > 1 for model in models) > 200
    assert max(len(_moments(model)) for model in models) > 40
    assert date(2026, 10, 14) in {at.date() for model in models for at in _moments(model)}
