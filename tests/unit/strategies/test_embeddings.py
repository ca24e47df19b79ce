from __future__ import annotations

from pathlib import Path

import pytest

from cleveragents.application.code_index import ChunkHit
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies.embeddings import Embeddings
from viewkit import FakeIndex, FakeView

REQUEST = ContextRequest("open the door", Path("tree"))
TREE = {
    "src/gate.py": "def unlock():\n    pass\n\n\n\n\ndef lock():\n    pass",
    "tests/test_gate.py": "def test_unlock():\n    pass",
}


class Near:
    def __init__(self, *hits):
        self.hits = list(hits)

    def chunks_near(self, _view, text, limit, _stop):
        assert text == REQUEST.task
        return self.hits[:limit]


def found(*hits, stop=None):
    strategy = Embeddings(FakeIndex(FakeView(TREE)), Near(*hits))
    return list(strategy.find(REQUEST, stop or StopSignal()))


def test_near_chunks_come_with_a_reason_and_their_score():
    (one,) = found(ChunkHit("src/gate.py", 1, 2, 0.5))

    assert (one.path, one.start_line, one.end_line, one.score) == ("src/gate.py", 1, 2, 0.5)
    assert (one.source, one.reason) == ("embeddings", "means something like the task")


def test_code_comes_before_its_tests():
    hits = ChunkHit("tests/test_gate.py", 1, 2, 0.6), ChunkHit("src/gate.py", 1, 2, 0.5)

    assert [one.path for one in found(*hits)] == ["src/gate.py", "tests/test_gate.py"]


def test_one_file_does_not_fill_the_answer():
    hits = [ChunkHit("src/gate.py", line, line, 1 / line) for line in (1, 2, 7, 8)]

    assert [one.start_line for one in found(*hits)] == [1, 2]


def test_nothing_near_is_nothing():
    assert found() == []


def test_a_stopped_request_ends():
    stop = StopSignal()
    stop.stop("enough")

    with pytest.raises(Stopped):
        found(ChunkHit("src/gate.py", 1, 2, 0.5), stop=stop)
