from __future__ import annotations

from backoff import Backoff


def test_pauses_grow():
    backoff = Backoff(1.0, 8.0)
    assert 1.0 <= backoff.failed() <= 2.0
    assert 2.0 <= backoff.failed() <= 4.0
    assert backoff.failures() == 2
    backoff.succeeded()
    assert backoff.failures() == 0
