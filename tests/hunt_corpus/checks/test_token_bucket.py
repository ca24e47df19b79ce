from __future__ import annotations

from token_bucket import TokenBucket


def test_bucket_runs_empty():
    bucket = TokenBucket(capacity=2)
    assert bucket.try_acquire()
    assert bucket.try_acquire()
    assert not bucket.try_acquire()
    assert bucket.available == 0
