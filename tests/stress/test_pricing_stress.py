"""Real threads that meet the same models first, all started at one barrier."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cleveragents.domain.usage import Usage
from cleveragents.providers.pricing import PriceTable
from cleveragents.testing import run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
USAGE = Usage(input_tokens=12_000, output_tokens=800, cache_read_tokens=9_000)
MODELS = (
    "anthropic:claude-sonnet-4-5",
    "openai:gpt-5-mini",
    "google:gemini-2.5-flash",
    "deepseek:deepseek-chat",
    "groq:llama-3.3-70b-versatile",
    "x-ai:grok-4",
)


def test_16_threads_that_meet_models_first_get_the_same_costs_and_lose_no_card():
    alone = PriceTable()
    costs = {model: alone.cost_of(model, USAGE, at=NOON) for model in MODELS}
    for _ in range(3):
        table = PriceTable()

        def price_all(shift, table=table):
            models = MODELS[shift:] + MODELS[:shift]
            return {model: table.cost_of(model, USAGE, at=NOON) for model in models}

        jobs = [lambda shift=shift: price_all(shift % len(MODELS)) for shift in range(16)]
        assert run_together(jobs) == [costs] * 16
        assert {*table._cards} == {*MODELS}
