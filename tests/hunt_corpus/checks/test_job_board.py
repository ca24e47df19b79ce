from __future__ import annotations

from job_board import JobBoard


def test_jobs_are_numbered():
    board = JobBoard()
    assert board.post("a") == 1
    assert board.post("b") == 2
    assert board.finish(1) == "a"
    assert board.finish(1) is None
    assert board.open_jobs() == {2: "b"}
    assert board.post("c") == 3
