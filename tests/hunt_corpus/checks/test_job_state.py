from __future__ import annotations

import pytest
from job_state import InvalidTransition, Job, State


def test_job_starts_once():
    job = Job()
    assert job.start() == 1
    with pytest.raises(InvalidTransition):
        job.start()
    assert job.retry()
    assert job.start() == 2
    job.finish()
    assert job.state is State.DONE
    assert not job.retry()
