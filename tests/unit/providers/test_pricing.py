"""What a call costs, and the most that it can cost."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from genai_prices.data import providers
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    PriceVariant,
    Provider,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents.domain.errors import RequestError, SetupError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.providers import pricing
from cleveragents.providers.pricing import Price, PriceTable
from cleveragents.settings import load
from cleveragents.testing import FrozenClock

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
BATCH = {"processing": "batch"}
SONNET = "anthropic:claude-sonnet-4-5"
OWN = Price(
    input_mtok="3",
    output_mtok=Decimal(15),
    cache_read_mtok=0.3,
    cache_write_mtok="3.75",
    cache_write_1h_mtok=6,
    reasoning_mtok="20",
    request="0.001",
    web_search="0.01",
)


@pytest.fixture(scope="module")
def table():
    return PriceTable({"acme:large": OWN}, clock=FrozenClock(NOON))


def _listed(prices, *, variants=None):
    """Return a table that knows `it`, a catalogue model with these prices."""
    model = ModelInfo("it", ClauseEquals("it"), prices=prices, price_variants=variants)
    provider = Provider(id="acme", name="Acme", api_pattern="", models=[model])
    table = PriceTable(clock=FrozenClock(NOON))
    table._cards = {"it": pricing._listed_card(provider, model)}
    return table


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "anthropic:claude-sonnet-4-5",
            "Anthropic:Claude-Sonnet-4-5",
            " anthropic:claude-sonnet-4-5 ",
            "gateway/anthropic:claude-sonnet-4-5",
            "claude-sonnet-4-5",
            "litellm:anthropic/claude-sonnet-4-5",
        ],
    )
    def test_a_model_is_found_as_users_write_it(self, table, name):
        usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
        assert table.cost_of(name, usage, at=NOON) == Money.of("28.5")

    @pytest.mark.parametrize(
        ("name", "same"),
        [
            ("google-gla:gemini-2.5-flash", "google:gemini-2.5-flash"),
            ("google-vertex:gemini-2.5-flash", "google:gemini-2.5-flash"),
            ("openai-responses:gpt-5-mini", "openai:gpt-5-mini"),
            ("bedrock:amazon.nova-lite-v1:0", "aws:amazon.nova-lite-v1:0"),
            ("grok:grok-4", "x-ai:grok-4"),
            ("azure-responses:gpt-5-mini", "azure:gpt-5-mini"),
            ("gateway/groq:llama-3.3-70b-versatile", "groq:llama-3.3-70b-versatile"),
        ],
    )
    def test_provider_names_of_pydantic_ai_are_understood(self, table, name, same):
        usage = Usage(input_tokens=12_345, output_tokens=678)
        assert table.cost_of(name, usage) == table.cost_of(same, usage) > Money(0)

    @pytest.mark.parametrize(
        "name",
        ["acme:tiny", "ollama:claude-sonnet-4-5", "openai:no-such-model", "mystery", ":", ""],
    )
    def test_an_unknown_model_has_no_price_and_the_hint_says_where_to_put_it(
        self, table, name, tmp_path, monkeypatch
    ):
        """No amount stands in the hint that the user did not say: pasted, it would be charged."""
        monkeypatch.setenv("CLEVERAGENTS_SETTINGS", "own settings.toml")
        with pytest.raises(SetupError) as caught:
            table.cost_of(name, Usage())
        assert caught.value.code == "CA1004"
        assert caught.value.facts == {"model": name}
        told = caught.value.hint.split("`")
        settings = tmp_path / "own settings.toml"
        settings.write_text("[rate_limits.openai]\nrequests_per_min = 5")
        if name.startswith("ollama:"):
            subprocess.run(["sh", "-c", told[1]], cwd=tmp_path, check=True)
        else:
            _, first, _, second, _, table_name, _, where, _ = told
            assert where == settings.name
            with settings.open("a") as file:
                file.write(f"\n{table_name}\n{first} = 3\n{second} = 4\n")
        own = PriceTable(dict(load(environment={"CLEVERAGENTS_SETTINGS": settings})[0].prices))
        costs = "0" if name.startswith("ollama:") else "3"
        assert own.cost_of(name, Usage(input_tokens=1_000_000)) == Money.of(costs)


class TestOwnPrices:
    def test_an_own_price_prices_a_model_that_the_catalogue_does_not_know(self, table):
        usage = Usage(
            input_tokens=1_000,
            output_tokens=500,
            cache_read_tokens=400,
            cache_write_tokens=300,
            cache_write_1h_tokens=100,
            reasoning_tokens=200,
            web_searches=2,
        )
        tokens = 300 * 3 + 400 * 0.3 + 200 * 3.75 + 100 * 6 + 300 * 15 + 200 * 20
        assert table.cost_of("acme:large", usage) == Money.of(
            Decimal("0.021") + Decimal(tokens) / 10**6
        )

    def test_an_own_price_wins_over_the_catalogue_under_its_exact_name_only(self):
        table = PriceTable({SONNET.upper(): Price(input_mtok=1, output_mtok=2)})
        usage = Usage(input_tokens=1_000_000)
        assert table.cost_of(SONNET, usage) == Money.of(1)
        assert table.cost_of("claude-sonnet-4-5", usage) == Money.of(6)

    def test_an_own_price_holds_for_batches_and_at_all_times(self, table):
        usage = Usage(input_tokens=10, output_tokens=10)
        usual = table.cost_of("acme:large", usage)
        assert table.cost_of("acme:large", usage, batch=True, at=NOON.replace(year=1)) == usual

    def test_what_has_no_own_price_is_charged_as_what_it_is_part_of(self):
        table = PriceTable({"m": Price(input_mtok=1, output_mtok=2)})
        parts = Usage(
            input_tokens=9, output_tokens=9, cache_read_tokens=5, reasoning_tokens=4, web_searches=1
        )
        assert table.cost_of("m", parts) == Money.of("0.000027")

    def test_a_price_of_zero_means_free(self):
        table = PriceTable({"m": Price(input_mtok=0, output_mtok=0)})
        assert table.cost_of("m", Usage(input_tokens=10**9)) == Money(0)

    @pytest.mark.parametrize("wrong", [-1, "cheap", float("nan"), True])
    def test_a_price_that_is_not_money_is_refused_at_birth(self, wrong):
        with pytest.raises(RequestError) as caught:
            Price(input_mtok=1, output_mtok=wrong)
        assert caught.value.code == "CA1003"


class TestCost:
    def test_a_fraction_of_a_pico_dollar_is_rounded_up_once_for_the_whole_call(self):
        """Two parts of 0.4 pico-dollars each cost one, not two."""
        table = _listed(ModelPrice(input_mtok=Decimal("4E-7"), output_mtok=Decimal("4E-7")))
        assert table.cost_of("it", Usage(input_tokens=1)) == Money(1)
        assert table.cost_of("it", Usage(input_tokens=1, output_tokens=1)) == Money(1)
        assert table.cost_of("it", Usage(input_tokens=2, output_tokens=1)) == Money(2)

    def test_a_tier_holds_for_the_whole_prompt_from_one_token_above_its_start(self, table):
        below = Usage(input_tokens=200_000, output_tokens=1)
        above = Usage(input_tokens=200_001, output_tokens=1)
        assert table.cost_of(SONNET, below, at=NOON) == Money.of("0.600015")
        assert table.cost_of(SONNET, above, at=NOON) == Money.of("1.2000285")

    def test_units_with_different_tiers_each_keep_their_own(self):
        table = _listed(
            ModelPrice(
                input_mtok=TieredPrices(Decimal(1), [Tier(10, Decimal(2))]),
                output_mtok=TieredPrices(Decimal(3), [Tier(11, Decimal(4))]),
            )
        )
        costs = [table.cost_of("it", Usage(input_tokens=n, output_tokens=1)) for n in (10, 11, 12)]
        assert costs == [Money.of(f"0.0000{micro}") for micro in (13, 25, 28)]

    def test_parts_that_exceed_their_whole_are_refused(self, table):
        with pytest.raises(
            RequestError, match="`input_tokens` must include its parts, got 10 with"
        ):
            table.cost_of(SONNET, Usage(input_tokens=10, cache_read_tokens=11))

    def test_a_part_that_the_model_does_not_price_may_be_reported_as_it_is(self, table):
        """Some providers report reasoning apart from the output: no bill may fail for that."""
        usage = Usage(output_tokens=10, reasoning_tokens=50)
        assert table.cost_of("x-ai:grok-4", usage) == Money.of("0.00015")

    def test_what_usage_does_not_count_is_not_charged(self):
        """As in calc_price; a test of the catalogue tells when it charges for something new."""
        table = _listed(ModelPrice(input_mtok=Decimal(1), social_searches_kcount=Decimal(5)))
        assert table.cost_of("it", Usage(input_tokens=1)) == Money.of("0.000001")


class TestTime:
    def test_now_is_asked_from_the_clock_when_no_time_is_given(self):
        clock = FrozenClock(NOON)
        table = PriceTable(clock=clock)
        usage = Usage(input_tokens=1_000_000)
        day = table.cost_of("deepseek:deepseek-chat", usage)
        clock.set(NOON.replace(hour=20))
        night = table.cost_of("deepseek:deepseek-chat", usage)
        assert night < day == table.cost_of("deepseek:deepseek-chat", usage, at=NOON)

    def test_a_time_in_any_zone_means_the_same_moment_and_a_naive_one_means_utc(self):
        table = _listed(
            [
                ConditionalPrice(prices=ModelPrice(input_mtok=Decimal(1))),
                ConditionalPrice(
                    StartDateConstraint(date(2026, 11, 15)),
                    prices=ModelPrice(input_mtok=Decimal(2)),
                ),
            ]
        )
        east = timezone(timedelta(hours=9))
        usage = Usage(input_tokens=1)
        for at, micro in (
            (datetime(2026, 11, 15, 8, 59, tzinfo=east), 1),
            (datetime(2026, 11, 15, 9, tzinfo=east), 2),
            (datetime(2026, 11, 14, 23, 59), 1),  # noqa: DTZ001  # naive on purpose
            (datetime(2026, 11, 15), 2),  # noqa: DTZ001  # naive on purpose
        ):
            assert table.cost_of("it", usage, at=at) == Money.of(f"0.00000{micro}")

    @pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=8))], ids=str)
    def test_hours_are_those_of_their_own_zone_and_may_pass_midnight(self, zone):
        constraint = TimeOfDateConstraint(time(22, tzinfo=zone), time(6, 30, tzinfo=zone))
        prices = [
            ConditionalPrice(prices=ModelPrice(input_mtok=Decimal(2))),
            ConditionalPrice(constraint, prices=ModelPrice(input_mtok=Decimal(1))),
        ]
        table = _listed(prices)
        for minutes in range(0, 24 * 60, 15):
            at = NOON + timedelta(minutes=minutes)
            rate = 1 if constraint.active(at) else 2
            cost = table.cost_of("it", Usage(input_tokens=1), at=at)
            assert cost == Money.of(f"0.00000{rate}"), at


class TestWorstCase:
    def test_it_is_the_cost_of_the_dearest_call_and_not_more(self, table):
        dearest = Usage(
            input_tokens=1_000,
            output_tokens=500,
            cache_write_tokens=1_000,
            cache_write_1h_tokens=1_000,
            reasoning_tokens=500,
            web_searches=2,
        )
        worst = table.worst_case("acme:large", 1_000, 500, max_searches=2)
        assert worst == table.cost_of("acme:large", dearest) == Money.of("0.037")

    def test_it_counts_the_dearest_tier_that_the_prompt_can_reach(self, table):
        assert table.worst_case(SONNET, 200_000, 0, at=NOON) == Money.of("1.2")
        assert table.worst_case(SONNET, 200_001, 0, at=NOON) == Money.of("2.400012")

    def test_it_sees_that_a_shorter_prompt_can_cost_more(self):
        """No listed model does it yet; a cheaper rate for long prompts would."""
        table = _listed(
            ModelPrice(
                input_mtok=TieredPrices(Decimal(5), [Tier(100, Decimal(1))]),
                output_mtok=Decimal(0),
            )
        )
        assert table.worst_case("it", 101, 0) == Money.of("0.0005")
        assert table.worst_case("it", 1_000, 0) == Money.of("0.001")

    def test_it_is_rounded_up(self):
        table = _listed(ModelPrice(input_mtok=Decimal("4E-7")))
        assert table.worst_case("it", 1, 0) == Money(1)

    def test_it_follows_the_time_like_the_cost(self, table):
        night = NOON.replace(hour=20)
        chat = "deepseek:deepseek-chat"
        assert table.worst_case(chat, 10, 10, at=night) < table.worst_case(chat, 10, 10, at=NOON)

    def test_it_holds_for_a_batch_that_costs_more(self):
        """No listed model does it yet, but a bound must not rely on that."""
        variant = PriceVariant(BATCH, ModelPrice(input_mtok=Decimal(7)))
        table = _listed(ModelPrice(input_mtok=Decimal(5)), variants=[variant])
        assert table.worst_case("it", 1, 0) == Money.of("0.000007")

    @pytest.mark.parametrize("name", ["groq:whisper-large-v3", "mistral:mistral-ocr-latest"])
    def test_a_model_that_charges_for_more_than_tokens_has_no_bound(self, table, name):
        with pytest.raises(
            SetupError, match="charges for what no limit on tokens bounds"
        ) as caught:
            table.worst_case(name, 10, 10)
        assert caught.value.code == "CA1004"

    @pytest.mark.parametrize("counts", [(-1, 0, 0), (0, 1.5, 0), (0, 0, True)])
    def test_a_count_that_is_not_a_whole_number_is_refused(self, table, counts):
        with pytest.raises(RequestError, match="whole number from 0, got"):
            table.worst_case(SONNET, counts[0], counts[1], max_searches=counts[2])

    @pytest.mark.long
    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def test_no_call_within_its_counts_costs_more(self, table, data):
        name = data.draw(st.sampled_from(BOUNDED))
        counts = st.integers(0, data.draw(st.sampled_from([5, 5_000, 300_000])))
        plain, read, write, hour, spoken, drawn, filmed, heard, seen = data.draw(
            st.tuples(*[counts] * 9)
        )
        text, thought, cited, said, painted, shot = data.draw(st.tuples(*[counts] * 6))
        usage = Usage(
            input_tokens=plain + read + write + hour + spoken + drawn + filmed + heard + seen,
            cache_read_tokens=read + heard + seen,
            cache_write_tokens=write + hour,
            cache_write_1h_tokens=hour,
            input_audio_tokens=spoken + heard,
            cache_audio_read_tokens=heard,
            input_image_tokens=drawn + seen,
            cache_image_read_tokens=seen,
            input_video_tokens=filmed,
            output_tokens=text + thought + cited + said + painted + shot,
            reasoning_tokens=thought,
            citation_tokens=cited,
            output_audio_tokens=said,
            output_image_tokens=painted,
            output_video_tokens=shot,
            web_searches=data.draw(st.integers(0, 3)),
            storage_searches=data.draw(st.integers(0, 3)),
        )
        spare = data.draw(st.integers(0, 1_000))
        at = NOON + timedelta(hours=data.draw(st.integers(-3_000, 3_000)))
        batch = data.draw(st.booleans())
        worst = table.worst_case(
            name,
            usage.input_tokens + spare,
            usage.output_tokens + spare,
            max_searches=usage.web_searches + usage.storage_searches,
            at=at,
        )
        assert table.cost_of(name, usage, at=at, batch=batch) <= worst


class TestVersion:
    def test_it_names_the_package_and_the_own_prices(self):
        plain = PriceTable().version
        assert plain == PriceTable({}).version
        assert plain.startswith("genai-prices ")
        assert PriceTable({"m": OWN}).version.startswith(f"{plain} + own ")

    def test_equal_own_prices_have_one_version_and_different_ones_have_two(self):
        cheap, same, dear = (
            PriceTable({"a": OWN, "M": Price(input_mtok=amount, output_mtok=1)}).version
            for amount in ("0.50", 0.5, "0.51")
        )
        assert cheap == same != dear


def test_import_does_not_load_the_catalogue():
    code = (
        "import sys, cleveragents.providers.pricing as p;"
        "p.PriceTable({'m': p.Price(input_mtok=1, output_mtok=1)}).worst_case('m', 1, 1);"
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _bounded():
    """Name the models with more than a plain input and output price, and with a bound."""
    table = PriceTable()
    for provider in providers:
        for model in provider.models:
            plain = isinstance(model.prices, ModelPrice) and len(vars(model.prices)) <= 2
            if plain and not model.price_variants:
                continue
            name = f"{provider.id}:{model.id}"
            try:
                table.worst_case(name, 1, 1)
            except SetupError:
                continue
            yield name


BOUNDED = tuple(_bounded())
