from __future__ import annotations

from request_metrics import RequestMetrics


def test_errors_are_a_share_of_requests():
    metrics = RequestMetrics()
    assert metrics.error_rate() == 0.0
    metrics.record("/a")
    metrics.record("/a", 500)
    assert metrics.error_rate() == 0.5
    assert metrics.by_path == {"/a": 2}
