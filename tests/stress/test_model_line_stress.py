"""Many threads on one line to the models."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("pydantic_ai")

from cleveragents.domain.errors import RequestError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.providers.model_access.line import ModelLine
from cleveragents.testing import Gate, ModelServer, Reply, Wait, run_together
from modelkit import PROTOCOLS, call_to

pytestmark = pytest.mark.stress


def test_64_calls_run_at_the_same_time_and_each_gets_its_own_answer():
    gate = Gate(timeout_s=60)

    def script(asked):
        gate.pass_through()
        return f"to {asked.messages[-1].text}"

    def ask(line, server, number):
        heard = []
        answer = line.request(
            call_to(server, text=f"caller {number}", timeout_s=60), on_text=heard.append
        )
        assert answer.response.text == "".join(heard) == f"to caller {number}"

    def admit():
        gate.wait_for(64)
        gate.open()

    with ModelServer(script) as server, ModelLine({}) as line:
        jobs = [partial(ask, line, server, number) for number in range(64)]
        run_together([*jobs, admit], timeout_s=90)
        assert len(server.bills) == 64


def test_two_threads_with_many_calls_to_all_protocols_never_mix_answers():
    def ask(line, server, name):
        for number in range(25):
            protocol = list(PROTOCOLS)[number % len(PROTOCOLS)]
            text = f"{name} {number}"
            answer = line.request(call_to(server, protocol, text))
            assert answer.response.text == f"to {text}"

    with (
        ModelServer(lambda asked: f"to {asked.messages[-1].text}") as server,
        ModelLine({}) as line,
    ):
        jobs = [partial(ask, line, server, name) for name in ("a", "b")]
        run_together(jobs, timeout_s=180)  # most of it is the first import of every SDK
        assert len(server.asked) == 50


def test_calls_stops_and_a_close_at_the_same_moment_leave_nothing_behind():
    """Every caller ends with `Stopped` or a refusal; nobody waits for ever."""

    def ask(line, server, ends):
        stop = StopSignal()
        try:
            line.request(call_to(server, text="hi"), stop=stop, on_text=lambda _: stop.stop())
        except Stopped:
            ends.append("stopped")
        except RequestError:
            ends.append("refused")
        else:
            ends.append("answered")

    def close(line, server):
        server.wait_for(asked=4, timeout_s=60)
        line.close()

    for _ in range(3):
        ends = []
        line = ModelLine({})
        with ModelServer(lambda _: Reply(steps=("hello", Wait(60)))) as server:
            jobs = [partial(ask, line, server, ends)] * 16
            run_together([*jobs, *[partial(close, line, server)] * 2], timeout_s=120)
        assert len(ends) == 16
        assert "stopped" in ends
        assert "answered" not in ends
