from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cleveragents.application.services.acms_pipeline import (
    CircuitBreaker,
    ContextPipeline,
    ContextRequest,
    ExecutionLimits,
    Fragment,
    ParallelStrategyExecutor,
    StrategyStatus,
)
from cleveragents.domain.errors import RequestError
from cleveragents.testing import Gate, run_together

pytestmark = [pytest.mark.stress, pytest.mark.usefixtures("frequent_switches")]

REQUEST = ContextRequest("Do it", Path(), tokens_max=300)


class Finds:
    def __init__(self, name: str) -> None:
        self.name = name

    def find(self, *_):
        for line in range(1, 6):
            yield Fragment(
                f"{self.name}.py", line, line, f"{self.name} {line}", line, self.name, "r"
            )


class Fails:
    name = "fails"

    def find(self, *_):
        raise OSError("no disk")


class Hangs:
    name = "hangs"
    timeout_s = 0.02

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def find(self, *_):
        self._gate.pass_through()
        return ()


def test_many_callers_of_one_executor_all_get_the_same_context():
    """A failing strategy is counted exactly by the breaker that all of them share."""
    breaker = CircuitBreaker(failure_threshold=10**6)
    with ParallelStrategyExecutor(breaker=breaker) as executor:
        pipeline = ContextPipeline(executor, [Finds("a"), Fails(), Finds("b")])

        contexts = run_together(
            [lambda: [pipeline.build(REQUEST) for _ in range(4)] for _ in range(16)]
        )

        texts = {context.render() for some in contexts for context in some}
        assert len(texts) == 1
        (state,) = breaker.snapshot()
        assert (state.name, state.failures) == ("fails", 64)


def test_hung_strategies_of_many_callers_starve_nobody():
    gate = Gate()
    breaker = CircuitBreaker(failure_threshold=10**6)
    limits = ExecutionLimits(stuck_workers_max=64)
    with ParallelStrategyExecutor(2, breaker=breaker, limits=limits) as executor:
        reports = run_together(
            [lambda: executor.run([Hangs(gate), Finds("a")], REQUEST) for _ in range(12)]
        )
        gate.open()

    assert {tuple(one.status for one in some) for some in reports} == {
        (StrategyStatus.TIMED_OUT, StrategyStatus.OK)
    }
    assert executor.stuck_workers == 0


def test_every_run_beside_close_answers_or_is_refused_and_no_thread_is_left():
    for _ in range(20):
        executor = ParallelStrategyExecutor(2)

        def call(executor=executor):
            try:
                return {one.status for one in executor.run([Finds("a"), Finds("b")], REQUEST)}
            except RequestError:
                return set()

        *answers, left, left_again = run_together([*[call] * 6, executor.close, executor.close])

        allowed = {StrategyStatus.OK, StrategyStatus.CANCELLED}
        assert all(answer <= allowed for answer in answers)
        assert executor.close() == ()
        assert set(left) | set(left_again) == set()
        assert not [one for one in threading.enumerate() if one.name.startswith("ca-strategy")]
