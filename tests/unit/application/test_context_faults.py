"""One strategy hangs, raises or gives rubbish beside the real ones: it costs its own part alone."""

from __future__ import annotations

import pytest

from cleveragents.application.services.acms_pipeline import (
    CircuitBreaker,
    ContextPipeline,
    ContextRequest,
    ExecutionLimits,
    ParallelStrategyExecutor,
    StrategyStatus,
)
from cleveragents.bootstrap import usual_strategies
from cleveragents.domain.fragment import Fragment, version_of
from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.testing import FrozenClock, Gate
from indexkit import PATIENT, write

PAUSE_S = 30.0
#: Never reached: the clock moves only when a test moves it.
LIMITS = ExecutionLimits(timeout_s=100.0, deadline_s=1000.0)


class Sick:
    """A strategy that does what the test says, until it is well."""

    name = "sick"
    #: It is late as soon as the clock moves.
    timeout_s = 5.0

    def __init__(self, clock: FrozenClock) -> None:
        self._clock = clock
        self.gate = Gate()
        self.symptom = "well"

    def find(self, _, stop):
        if self.symptom == "hangs":
            self._clock.advance(self.timeout_s + 1)
            # The answer must not wait for this.
            self.gate.pass_through()
        if self.symptom == "ignores its signal":
            self._clock.advance(self.timeout_s + 1)
            self.gate.pass_through()
            assert stop.stopped
        if self.symptom == "raises":
            raise OSError("no disk")
        if self.symptom == "dies":
            raise SystemExit
        if self.symptom == "rubbish":
            return ["not a fragment"]
        if self.symptom == "no list":
            return 7
        return []


SYMPTOMS = {
    "hangs": StrategyStatus.TIMED_OUT,
    "ignores its signal": StrategyStatus.TIMED_OUT,
    "raises": StrategyStatus.FAILED,
    "dies": StrategyStatus.FAILED,
    "rubbish": StrategyStatus.RUBBISH,
    "no list": StrategyStatus.RUBBISH,
}


class World:
    def __init__(self, root, index) -> None:
        self.clock = FrozenClock()
        self.breaker = CircuitBreaker(3, pause_s=PAUSE_S, clock=self.clock)
        self.executor = ParallelStrategyExecutor(
            8, breaker=self.breaker, limits=LIMITS, clock=self.clock
        )
        self.sick = Sick(self.clock)
        self._root = root
        self._real = usual_strategies(index)

    def build(self, *, alone: bool = False):
        beside = () if alone else (self.sick,)
        pipeline = ContextPipeline(self.executor, (*beside, *self._real))
        return pipeline.build(ContextRequest("settle the invoice", self._root))

    def status(self):
        context = self.build()
        return next(one for one in context.reports if one.name == "sick").status


@pytest.fixture
def world(tmp_path):
    root = tmp_path / "tree"
    write(
        root,
        {
            "invoices.py": "def settle_invoice(amount):\n    return amount\n",
            "pages.py": "def show_page(name):\n    return name\n",
        },
    )
    with StoredCodeIndex(tmp_path / "index", limits=PATIENT) as index:
        world = World(root, index)
        yield world
        world.sick.gate.open()
        assert world.executor.close() == ()


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_sick_strategy_changes_not_a_byte_of_what_the_others_find(world, symptom):
    healthy = world.build(alone=True).render()
    world.sick.symptom = symptom
    context = world.build()
    assert context.render() == healthy
    assert "def settle_invoice" in healthy
    first, *others = context.reports
    assert first.status is SYMPTOMS[symptom]
    assert {one.status for one in others} == {StrategyStatus.OK}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_breaker_opens_for_the_sick_one_alone_and_recovers(world, symptom):
    healthy = world.build(alone=True).render()
    world.sick.symptom = symptom
    assert [world.status() for _ in range(3)] == [SYMPTOMS[symptom]] * 3
    assert world.status() is StrategyStatus.SKIPPED
    assert [one.name for one in world.breaker.snapshot()] == ["sick"]
    assert world.build().render() == healthy

    world.clock.advance(PAUSE_S + 1)
    assert world.status() is SYMPTOMS[symptom]  # one try, and the pause is longer
    assert world.status() is StrategyStatus.SKIPPED

    world.clock.advance(2 * PAUSE_S + 1)
    world.sick.symptom = "well"
    assert [world.status() for _ in range(2)] == [StrategyStatus.OK] * 2
    assert world.breaker.snapshot() == ()


class Broken:
    """An index that fails as its test says."""

    def view(self, *_):
        raise OSError("the index is gone")


def test_broken_index_costs_what_needs_it_and_the_quick_strategies_answer(world, tmp_path):
    pipeline = ContextPipeline(world.executor, usual_strategies(Broken()))
    request = ContextRequest("settle the invoice", tmp_path / "tree", ("pages.py",))
    context = pipeline.build(request)
    assert "def show_page" in context.render()
    assert "def settle_invoice" in context.render()
    states = {one.name: one.status for one in context.reports}
    assert states.pop("explicit-files") is StrategyStatus.OK
    assert states.pop("identifier-match") is StrategyStatus.OK
    assert set(states.values()) == {StrategyStatus.FAILED}


class Reads:
    """Finds lines of a file as it stood in one version."""

    def __init__(self, name: str, lines: tuple[int, int], whole: str, *, weight: int = 1) -> None:
        self.name = name
        self.weight = weight
        first, last = lines
        text = "\n".join(whole.split("\n")[first - 1 : last])
        mark = version_of(whole)
        self._found = Fragment("app.py", first, last, text, 1.0, name, "found", mark)

    def find(self, *_):
        return [self._found]


@pytest.mark.parametrize(
    ("second", "expected"),
    [("a1\na2\na3\na4", "a1\na2\na3\na4"), ("b1\nb2\nb3\nb4", "a1\na2")],
    ids=["same", "changed-meanwhile"],
)
def test_lines_of_two_versions_of_a_file_never_stand_in_one_context(
    world, tmp_path, second, expected
):
    """They touch, so they would be put together to what the file never held."""
    better = Reads("better", (1, 2), "a1\na2\na3\na4", weight=2)
    pipeline = ContextPipeline(world.executor, (better, Reads("other", (3, 4), second)))
    context = pipeline.build(ContextRequest("x", tmp_path))
    assert [one.text for one in context.fragments] == [expected]
    assert context.omitted == (expected == "a1\na2")
