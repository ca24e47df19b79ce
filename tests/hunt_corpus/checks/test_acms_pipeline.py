from __future__ import annotations

from acms_pipeline import CircuitBreaker, ParallelStrategyExecutor


def test_third_failure_opens_the_breaker():
    breaker = CircuitBreaker()
    breaker.record_failure("a")
    breaker.record_failure("a")
    assert not breaker.is_open("a")
    breaker.record_failure("a")
    assert breaker.is_open("a")
    breaker.record_success("a")
    assert not breaker.is_open("a")


def test_executor_leaves_out_what_fails():
    executor = ParallelStrategyExecutor()
    assert executor.execute({"one": lambda: "1", "bad": lambda: str(1 / 0)}) == {"one": "1"}
