from __future__ import annotations

from error_recovery_service import ErrorHistory, ErrorRecord, ErrorRecoveryService


def test_errors_are_kept_per_plan():
    service = ErrorRecoveryService(max_retries=2)
    service.record_error("p1", "boom")
    service.record_error("p2", "bang")
    assert service.error_count("p1") == 1
    assert service.should_retry("p1")
    service.record_error("p1", "boom")
    assert not service.should_retry("p1")


def test_history_is_a_snapshot():
    history = ErrorHistory(plan_id="p")
    history.add(ErrorRecord("p", "m"))
    assert [one.message for one in history.records] == ["m"]
