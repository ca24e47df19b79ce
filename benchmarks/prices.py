"""How much faster the compiled prices are than `genai_prices.calc_price`, with the same results.

Both price the same calls in the same run, in turns: the catalogue's provider is given, its usage
objects are made beforehand, and its model lookups are warm, so that only pricing is measured.
Run it with `python benchmarks/prices.py`; it exits with 1 when the goal is missed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Final

import genai_prices

from cleveragents.domain.money import PICO_PER_USD
from cleveragents.domain.usage import Usage
from cleveragents.providers.pricing import PriceTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GOAL: Final = 100
ROUNDS: Final = 15
PASSES: Final = 40  # ours for one of theirs, so that both measured spans are well above the clock
AT: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)

MODELS: Final = (
    "anthropic:claude-opus-4-5",
    "anthropic:claude-sonnet-4-5",
    "anthropic:claude-haiku-4-5",
    "openai:gpt-5",
    "openai:gpt-5-mini",
    "openai:gpt-4o-mini",
    "google:gemini-2.5-pro",
    "google:gemini-2.5-flash",
    "deepseek:deepseek-chat",
    "mistral:mistral-large-latest",
    "x-ai:grok-4",
    "groq:llama-3.3-70b-versatile",
)
USAGES: Final = {
    "plain": {"input_tokens": 4_000, "output_tokens": 600},
    "cached": {"input_tokens": 60_000, "output_tokens": 900, "cache_read_tokens": 52_000},
    "long": {
        "input_tokens": 280_000,
        "output_tokens": 2_500,
        "cache_read_tokens": 200_000,
        "cache_write_tokens": 30_000,
    },
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call to price, in both vocabularies."""

    model: str
    usage: Usage
    their_provider: str
    their_model: str
    their_usage: genai_prices.Usage


def calls_of(model: str) -> list[Call]:
    """Return one call of the model for each kind of usage."""
    provider, _, name = model.partition(":")
    return [
        Call(model, Usage(**counts), provider, name, genai_prices.Usage(**counts))
        for counts in USAGES.values()
    ]


def ours(table: PriceTable, calls: Sequence[Call]) -> None:
    """Price every call with the compiled table, `PASSES` times."""
    for _ in range(PASSES):
        for call in calls:
            table.cost_of(call.model, call.usage, at=AT)


def theirs(calls: Sequence[Call]) -> None:
    """Price every call with the catalogue once."""
    for call in calls:
        genai_prices.calc_price(
            call.their_usage,
            call.their_model,
            provider_id=call.their_provider,
            genai_request_timestamp=AT,
        )


def seconds(work: Callable[[], None]) -> float:
    """Return how long the work took."""
    started_s = perf_counter()
    work()
    return perf_counter() - started_s


def differences(table: PriceTable, calls: Sequence[Call]) -> list[str]:
    """Return the calls whose two prices are not the same to the pico-dollar."""
    found = []
    for call in calls:
        price = genai_prices.calc_price(
            call.their_usage,
            call.their_model,
            provider_id=call.their_provider,
            genai_request_timestamp=AT,
        )
        cost = table.cost_of(call.model, call.usage, at=AT)
        if -(-price.total_price * PICO_PER_USD // 1) != cost.pico:
            found.append(f"{call.model} {call.usage}: {cost} instead of {price.total_price}")
    return found


def import_ratio() -> float:
    """Return the start of Python with our price module, as a ratio to a bare start."""
    bare_s, module_s = [], []
    for _ in range(5):
        bare_s.append(seconds(partial(start_python, "pass")))
        module_s.append(seconds(partial(start_python, "import cleveragents.providers.pricing")))
    return min(module_s) / min(bare_s)


def start_python(code: str) -> None:
    """Run a line of Python in a new process."""
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> int:
    """Measure, print the table, and return the exit code."""
    table = PriceTable()
    calls = {model: calls_of(model) for model in MODELS}
    wrong = [line for group in calls.values() for line in differences(table, group)]
    ours_s: dict[str, list[float]] = {model: [] for model in MODELS}
    theirs_s: dict[str, list[float]] = {model: [] for model in MODELS}
    for _ in range(ROUNDS):
        for model, group in calls.items():
            ours_s[model].append(seconds(partial(ours, table, group)) / PASSES)
            theirs_s[model].append(seconds(partial(theirs, group)))
    print(f"{'model':32} {'calc_price':>12} {'compiled':>12} {'ratio':>8}")
    for model, group in calls.items():
        their_us, our_us = (
            median(spans) * 1e6 / len(group) for spans in (theirs_s[model], ours_s[model])
        )
        print(f"{model:32} {their_us:9.1f} us {our_us:9.2f} us {their_us / our_us:7.0f}x")
    ratio = median(
        sum(theirs_s[model][n] for model in MODELS) / sum(ours_s[model][n] for model in MODELS)
        for n in range(ROUNDS)
    )
    print(f"\nall {len(MODELS) * len(USAGES)} calls: {ratio:.0f}x calc_price, goal {GOAL}x")
    print(f"import: {import_ratio():.2f}x a bare start of Python")
    print(*(wrong or ["results: identical to the pico-dollar"]), sep="\n")
    return 0 if ratio >= GOAL and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
