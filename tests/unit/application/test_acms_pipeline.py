from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.application.services import acms_pipeline
from cleveragents.application.services.acms_pipeline import (
    ContextPipeline,
    ContextRequest,
    Fragment,
    ParallelStrategyExecutor,
    StopSignal,
    StrategyStatus,
    approximate_tokens,
)
from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = ContextRequest("Do it", Path())


@dataclass
class Fixed:
    """A strategy that always finds the same, when its turn has come."""

    name: str
    fragments: tuple[Fragment, ...] = ()
    weight: int = 1
    turn: threading.Event | None = None
    done: threading.Event | None = None

    def find(self, *_: object) -> Iterator[Fragment]:
        if self.turn is not None:
            assert self.turn.wait(10)
        yield from self.fragments
        if self.done is not None:
            self.done.set()


class Broken:
    name = "broken"

    def find(self, *_: object) -> list[Fragment]:
        raise OSError("disk on fire")


def lines(path: str, start: int, end: int, *, source: str = "s") -> Fragment:
    text = "\n".join(f"{path} line {number}" for number in range(start, end + 1))
    return Fragment(path, start, end, text, 1.0, source, "because")


@pytest.fixture
def executor():
    with ParallelStrategyExecutor() as shared:
        yield shared


def test_a_context_has_the_text_its_tokens_and_a_report_of_everybody(executor):
    good = Fixed("good", (lines("a.py", 1, 3), lines("a.py", 3, 4)))

    context = ContextPipeline(executor, [Broken(), good]).build(REQUEST)

    assert [(one.path, one.start_line, one.end_line) for one in context.fragments] == [
        ("a.py", 1, 4)
    ]
    assert [report.status for report in context.reports] == [
        StrategyStatus.FAILED,
        StrategyStatus.OK,
    ]
    assert context.render().startswith("a.py:1-4\n```\na.py line 1\n")
    assert context.tokens == approximate_tokens(context.render())
    assert context.omitted == 0


def test_the_budget_of_the_request_holds_with_any_counter(executor):
    pipeline = ContextPipeline(executor, [Fixed("a", (lines("a.py", 1, 500),))], count_tokens=len)

    context = pipeline.build(ContextRequest("Do it", Path(), tokens_max=1000))

    assert 900 < context.tokens == len(context.render()) <= 1000


def test_a_strategy_may_declare_how_much_its_ranking_counts(executor):
    light = Fixed("light", (lines("a.py", 1, 1),))
    heavy = Fixed("heavy", (lines("z.py", 1, 1),), weight=2)

    context = ContextPipeline(executor, [light, heavy]).build(REQUEST)

    assert [one.path for one in context.fragments] == ["z.py", "a.py"]


@pytest.mark.parametrize("weight", [0, -1, 1.5, True], ids=str)
def test_a_weight_that_is_no_count_is_refused_when_the_pipeline_is_made(executor, weight):
    with pytest.raises(RequestError, match="weight of strategy `odd` must be a whole number"):
        ContextPipeline(executor, [Fixed("odd", weight=weight)])


def test_a_stopped_request_gives_an_empty_context_that_says_why(executor):
    stop = StopSignal()
    stop.stop("the user left")

    context = ContextPipeline(executor, [Fixed("a", (lines("a.py", 1, 1),))]).build(
        REQUEST, stop=stop
    )

    assert (context.fragments, context.render()) == ((), "")
    assert context.reports[0].reason == "Cancelled: the user left"


FOUND = {
    "one": (lines("a.py", 1, 9), lines("b.py", 1, 4), lines("b.py", 1, 4)),
    "two": (lines("a.py", 5, 12, source="two"), lines("c.py", 2, 3, source="two")),
    "three": (lines("b.py", 3, 8, source="three"),),
    "four": (lines("c.py", 1, 30, source="four"), lines("a.py", 9, 9, source="four")),
}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(sorted(FOUND)))
def test_the_text_is_the_same_byte_for_byte_in_every_finishing_order(executor, order):
    """Each strategy finishes only after the one before it in the drawn order has."""
    request = ContextRequest("Do it", Path(), tokens_max=150)
    free = ContextPipeline(executor, [Fixed(name, found) for name, found in FOUND.items()])
    done = {name: threading.Event() for name in order}
    turns = {after: done[before] for before, after in pairwise(order)}
    forced = ContextPipeline(
        executor,
        [Fixed(name, found, 1, turns.get(name), done[name]) for name, found in FOUND.items()],
    )

    assert forced.build(request).render().encode() == free.build(request).render().encode()


def test_the_door_shows_exactly_what_it_names():
    assert all(hasattr(acms_pipeline, name) for name in acms_pipeline.__all__)
    assert {"CircuitBreaker", "ParallelStrategyExecutor"} <= set(acms_pipeline.__all__)
