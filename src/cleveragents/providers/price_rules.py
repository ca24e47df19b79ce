"""How prices become arithmetic: from what one unit costs to pico-dollars for a usage.

Everything here is pure and exact. Rates are fractions of a pico-dollar; a tariff is compiled to
one Python function on whole numbers, in the coarsest unit in which all of its rates are whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING, Final, cast

from cleveragents.domain.errors import RequestError
from cleveragents.domain.usage import PART_OF, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from fractions import Fraction

#: The unit of a fee for the call itself: every usage is one call, so `Usage` does not count it.
REQUEST: Final = "request"

_SEARCHES: Final = ("web_searches", "storage_searches")
_NO_END: Final = 2**63


@dataclass(frozen=True, slots=True)
class Rate:
    """What one unit costs in pico-dollars: `base`, or the last step that the prompt exceeds.

    A step is a cliff: it holds for the whole call, not only for the tokens above it.
    """

    base: Fraction
    steps: tuple[tuple[int, Fraction], ...] = ()

    def for_prompt(self, prompt_tokens: int) -> Fraction:
        """Return the rate of a call with a prompt of this size."""
        reached = [rate for start, rate in self.steps if prompt_tokens > start]
        return reached[-1] if reached else self.base


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of a model at one moment: a rate for each unit that it charges."""

    rates: Mapping[str, Rate]
    #: Audio shorter than this is charged as if it lasted this long.
    audio_seconds_min: int = 0


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a token and a search cost at most in calls with `above` < prompt ≤ `upto`.

    In parts of a pico-dollar, as many as the compiled tariff's `scale` says.
    """

    above: int
    upto: int
    request: int
    input_token: int
    output_token: int
    search: int


@dataclass(frozen=True, slots=True)
class CompiledTariff:
    """A tariff as arithmetic; immutable, so any number of threads may use it."""

    pico_of: Callable[[Usage], int]
    ceilings: tuple[Ceiling, ...]
    scale: int
    #: What the model charges for that no limit on tokens and searches bounds.
    unbounded: tuple[str, ...]

    def most_pico(self, input_tokens: int, output_tokens: int, searches: int) -> int:
        """Return the most that one call within these counts can cost."""
        most = max(
            band.request
            + band.input_token * min(input_tokens, band.upto)
            + band.output_token * output_tokens
            + band.search * searches
            for band in self.ceilings
            if band.above < input_tokens
        )
        return -(-most // self.scale)


def compile_tariff(tariff: Tariff) -> CompiledTariff:
    """Compile a tariff to arithmetic that gives its exact cost, rounded up to the pico-dollar."""
    starts = sorted({start for rate in tariff.rates.values() for start, _ in rate.steps})
    edges = [-1, *starts, _NO_END]
    exact = {
        above: {unit: rate.for_prompt(above + 1) for unit, rate in tariff.rates.items()}
        for above in edges[:-1]
    }
    scale = lcm(*(rate.denominator for rates in exact.values() for rate in rates.values()))
    bands = {
        above: {unit: int(rate * scale) for unit, rate in rates.items()}
        for above, rates in exact.items()
    }
    return CompiledTariff(
        pico_of=_function(_source(tariff, bands, scale)),
        ceilings=tuple(_ceiling(*edge, bands[edge[0]]) for edge in pairwise(edges)),
        scale=scale,
        unbounded=tuple(unit for unit in tariff.rates if not _is_bounded(unit)),
    )


def _ceiling(above: int, upto: int, rates: Mapping[str, int]) -> Ceiling:
    def dearest(*wholes: str) -> int:
        return max(
            (
                rate
                for unit, rate in rates.items()
                if not {unit, *PART_OF.get(unit, ())}.isdisjoint(wholes)
            ),
            default=0,
        )

    return Ceiling(
        above=above,
        upto=upto,
        request=dearest(REQUEST),
        input_token=dearest("input_tokens"),
        output_token=dearest("output_tokens"),
        search=dearest(*_SEARCHES),
    )


def _is_bounded(unit: str) -> bool:
    return unit.endswith("_tokens") or unit in _SEARCHES or unit == REQUEST


def _exclusive_counts(units: Iterable[str]) -> dict[str, dict[str, int]]:
    """Say for each unit how to count what belongs to it alone, as a sum of a usage's counts.

    A cached token is counted in the prompt too, but is charged once, as the most special unit
    that the tariff prices: the prompt's own tokens are `input_tokens - cache_read_tokens`.
    """
    own: dict[str, dict[str, int]] = {}
    for unit in sorted(units, key=lambda unit: len(PART_OF.get(unit, ())), reverse=True):
        counts = Counter({unit: 1})
        for part, part_counts in own.items():
            if unit in PART_OF.get(part, ()):
                counts.subtract(part_counts)
        own[unit] = {name: factor for name, factor in counts.items() if factor}
    return own


def _source(tariff: Tariff, bands: Mapping[int, Mapping[str, int]], scale: int) -> str:
    """Write the function that prices a usage.

    It is text because a loop over units and rates takes three times as long: this is the path of
    every call. The text holds field names of `Usage` and whole numbers, nothing from outside.
    """
    own = _exclusive_counts(unit for unit in tariff.rates if unit != REQUEST)
    names = set(own) | ({"input_tokens"} if len(bands) > 1 else set())
    lines = [f"{name} = usage.{name}" for name in sorted(names)]
    if tariff.audio_seconds_min:
        lines += [
            "seconds = usage.audio_seconds or usage.input_audio_seconds",
            f"seconds = max(seconds, {tariff.audio_seconds_min}) if seconds else 0",
            "audio_seconds = input_audio_seconds = seconds",
        ]
    lines += [
        f"if {_is_negative(counts)}: raise contradiction({unit!r}, usage)"
        for unit, counts in own.items()
        if len(counts) > 1
    ]
    for above, rates in sorted(bands.items(), reverse=True):
        total: Counter[str] = Counter()
        for unit, counts in own.items():
            total.update({name: rates[unit] * factor for name, factor in counts.items()})
        cost = _sum(total, rates.get(REQUEST, 0))
        condition = f"if input_tokens > {above}: " if above >= 0 else ""
        lines.append(f"{condition}return {cost if scale == 1 else f'-(-({cost}) // {scale})'}")
    return "\n    ".join(["def pico_of(usage):", *lines])


def _sum(factors: Mapping[str, int], constant: int = 0) -> str:
    terms = [
        f"{'-' if factor < 0 else '+'} {name if abs(factor) == 1 else f'{abs(factor)} * {name}'}"
        for name, factor in factors.items()
        if factor
    ]
    if constant or not terms:
        terms.append(f"+ {constant}")
    return " ".join(terms).removeprefix("+ ")


def _is_negative(counts: Mapping[str, int]) -> str:
    added = {name: factor for name, factor in counts.items() if factor > 0}
    taken = {name: -factor for name, factor in counts.items() if factor < 0}
    return f"{_sum(added)} < {_sum(taken)}"


def _function(source: str) -> Callable[[Usage], int]:
    namespace: dict[str, object] = {"contradiction": _contradiction}
    exec(source, namespace)  # noqa: S102  # our own text, see `_source`
    return cast("Callable[[Usage], int]", namespace["pico_of"])


def _contradiction(whole: str, usage: Usage) -> RequestError:
    parts = [unit for unit, wholes in PART_OF.items() if whole in wholes and getattr(usage, unit)]
    counts = {unit: getattr(usage, unit) for unit in (whole, *parts)}
    return RequestError(
        f"`{whole}` must include its parts, got {counts[whole]} with "
        + ", ".join(f"{counts[part]} `{part}`" for part in parts),
        facts=counts,
        hint="Where a provider reports cached tokens apart, add them to `input_tokens`",
    )


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which tariff holds when: one for each cell between the dates and times of a change, in UTC.

    `only` is set where prices never change.
    """

    dates: tuple[datetime, ...]
    times: tuple[time, ...]
    cells: tuple[tuple[CompiledTariff, ...], ...]
    only: CompiledTariff | None

    @classmethod
    def of(
        cls,
        tariff_at: Callable[[datetime], Tariff],
        dates: Iterable[date] = (),
        times: Iterable[time] = (),
    ) -> Schedule:
        """Compile the tariff of every cell; `tariff_at` is asked once for each."""
        days = sorted(set(dates))
        hours = sorted(set(times))
        # Between two neighbouring changes nothing changes: the first moment stands for its cell.
        first = days[0] - timedelta(days=1) if days else date(2000, 1, 1)
        cells = tuple(
            tuple(
                compile_tariff(tariff_at(datetime.combine(day, hour, UTC)))
                for hour in (time(), *hours)
            )
            for day in (first, *days)
        )
        starts = tuple(datetime.combine(day, time(), UTC) for day in days)
        return cls(starts, tuple(hours), cells, None if days or hours else cells[0][0])

    def at(self, moment: datetime) -> CompiledTariff:
        """Return the tariff of a moment, which must know its time zone."""
        row = self.cells[bisect_right(self.dates, moment)]
        if not self.times:
            return row[0]
        return row[bisect_right(self.times, moment.astimezone(UTC).time())]
