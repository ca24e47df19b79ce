"""Many clients at once: every request has its number, every answer its bill, nothing is left."""

from __future__ import annotations

import http.client
import sys
import threading

import pytest

from cleveragents.testing import (
    BreakOff,
    Cut,
    ModelServer,
    Refusal,
    Refuse,
    Say,
    Wait,
    run_together,
)
from unit.testing.wire import PROTOCOLS, ask, connect

CLIENTS = 48
REPLIES = (Say("Hello there"), Refuse(Refusal.OVERLOADED), (Say("Hello there"), Cut()), BreakOff())


@pytest.fixture(autouse=True)
def hurry():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.stress
def test_every_client_gets_its_own_answer_and_one_bill():
    def work(index):
        protocol = PROTOCOLS[index % len(PROTOCOLS)]
        try:
            return ask(server, protocol, stream=True, text=str(index)).status
        except http.client.IncompleteRead:
            return 0

    def script(asked):
        return REPLIES[int(asked.messages[-1].text) % len(REPLIES)]

    with ModelServer(script) as server:
        statuses = run_together([lambda index=index: work(index) for index in range(CLIENTS)])
        asked, bills = server.asked, server.bills
    assert [one.number for one in asked] == list(range(1, CLIENTS + 1))
    kinds = {one.number: int(one.messages[-1].text) % len(REPLIES) for one in asked}
    assert {bill.number: bill.whole for bill in bills} == {
        number: kind == 0 for number, kind in kinds.items() if kind != 1
    }
    refused = [index for index, status in enumerate(statuses) if status >= 500]
    assert refused == list(range(1, CLIENTS, len(REPLIES)))


@pytest.mark.stress
def test_close_ends_everything_whatever_the_clients_do():
    def work(index):
        connection = connect(server)
        try:
            if index % 2:
                connection.connect()
            else:
                ask(server, "anthropic", stream=bool(index % 4))
        except OSError:
            pass
        except http.client.HTTPException:
            pass
        finally:
            connection.close()

    def close():
        server.wait_for(asked=4)
        server.close()

    before = set(threading.enumerate())
    server = ModelServer(lambda _: (Wait(60), Say("Hello")))
    run_together([close, *(lambda index=index: work(index) for index in range(CLIENTS))])
    assert set(threading.enumerate()) <= before
    assert len(server.bills) == len(server.asked)
