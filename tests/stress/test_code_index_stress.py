"""Sixteen actors ask while files change: every answer is one state of each file."""

from __future__ import annotations

import sys
import threading

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index.index import IndexLimits, StoredCodeIndex
from cleveragents.infrastructure.code_index.rounds import Rounds
from cleveragents.testing import run_together
from indexkit import LATER, everything, fresh_view, view_of, write

pytestmark = pytest.mark.stress
ACTORS = 16


@pytest.fixture(autouse=True)
def tiny_switch_interval():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def content(number: int) -> str:
    """Its length says where its definition is: lines of another state would be wrong."""
    return "#\n" * (number % 7) + f"def state_{number}():\n    return {number}\n"


def test_fragments_are_never_torn_and_own_writes_are_found(tmp_path):
    root = tmp_path / "tree"
    write(root, {f"f{n}.py": content(n) for n in range(ACTORS)})
    with StoredCodeIndex(tmp_path / "cache", limits=IndexLimits(0.0, 0.0)) as index:

        def actor(mine: int) -> None:
            for step in range(3):
                number = 1000 * mine + step
                write(root, {f"f{mine}.py": content(number)})
                view = index.build(request(root), StopSignal())
                (found,) = view.definitions(f"state_{number}")
                assert found.path == f"f{mine}.py"
                for path in view.paths:
                    text, card = view.text(path), view.card(path)
                    if text is not None and card is not None and card.symbols:
                        symbol = card.symbols[0]
                        assert symbol.head == text.split("\n")[symbol.start_line - 1]

        run_together([lambda n=n: actor(n) for n in range(ACTORS)])
        last = everything(view_of(index, root))
    assert last == everything(fresh_view(root, tmp_path / "other"))


def request(root):
    return ContextRequest("task", root)


def test_two_indexes_on_one_file_agree(tmp_path):
    root = tmp_path / "tree"
    write(root, {f"f{n}.py": content(n) for n in range(40)})

    def ask(_: int):
        with StoredCodeIndex(tmp_path / "cache", clocks=LATER) as index:
            return everything(index.build(request(root), StopSignal()))

    answers = run_together([lambda n=n: ask(n) for n in range(4)])
    assert all(answer == answers[0] for answer in answers)


def test_each_caller_gets_a_run_that_began_after_it_came():
    rounds: Rounds[int] = Rounds()
    lock, clock = threading.Lock(), [0]

    def tick() -> int:
        with lock:
            clock[0] += 1
            return clock[0]

    def caller() -> None:
        for _ in range(20):
            came = tick()
            assert rounds.share(tick, StopSignal()) > came

    run_together([caller] * ACTORS)
