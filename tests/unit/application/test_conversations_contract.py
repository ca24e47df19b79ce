"""What every `Conversations` promises, in memory and on the disk."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from cleveragents.application.conversations import Turn
from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.domain.money import Money
from cleveragents.domain.usage import Usage
from cleveragents.infrastructure.audit import verify_chain
from cleveragents.infrastructure.sqlite_conversations import SqliteConversations
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together
from conversationkit import InMemoryConversations


def turn(number, **given):
    known = {
        "number": number,
        "attempt": 1,
        "model": "test:small",
        "request": "[1]",
        "response": "[2]",
        "usage": Usage(input_tokens=7, cache_read_tokens=3),
        "cost": Money(5),
        "reservation": "r-1",
    }
    return Turn(**{**known, **given})


@contextmanager
def in_memory(_):
    yield InMemoryConversations()


@contextmanager
def durable(folder):
    with Store(folder / "state.db") as store:
        yield SqliteConversations(store, clock=lambda: 1.0)


@pytest.fixture(params=[in_memory, durable])
def conversations(request, tmp_path):
    with request.param(tmp_path) as opened:
        yield opened


def test_node_has_one_open_conversation(conversations):
    first = conversations.open("p", "n", "d")
    assert (first.plan_id, first.node, first.digest, first.turns) == ("p", "n", "d", ())
    assert conversations.open("p", "n", "d") == first
    assert conversations.open("p", "other", "d").id != first.id
    assert conversations.open("q", "n", "d").id != first.id


def test_kept_turns_are_there_when_it_is_opened_again(conversations):
    known = conversations.open("p", "n", "d")
    turns = (turn(1), turn(2, reservation=None, dropped=4, attempt=2))
    for one in turns:
        conversations.keep(known.id, one)
    assert conversations.open("p", "n", "d").turns == turns


def test_conversation_about_something_else_is_another(conversations):
    old = conversations.open("p", "n", "d")
    conversations.keep(old.id, turn(1))
    new = conversations.open("p", "n", "changed")
    assert new.turns == ()
    with pytest.raises(PlanError):
        conversations.keep(old.id, turn(2))


@pytest.mark.parametrize("number", [1, 3, 0])
def test_only_the_next_turn_is_taken(conversations, number):
    known = conversations.open("p", "n", "d")
    conversations.keep(known.id, turn(1))
    with pytest.raises(PlanError) as caught:
        conversations.keep(known.id, turn(number))
    assert caught.value.code == "CA6205"
    assert len(conversations.open("p", "n", "d").turns) == 1


def test_given_up_is_over_for_good(conversations):
    known = conversations.open("p", "n", "d")
    conversations.keep(known.id, turn(1))
    conversations.give_up(known.id)
    conversations.give_up(known.id)
    with pytest.raises(PlanError):
        conversations.keep(known.id, turn(2))
    assert conversations.open("p", "n", "d").turns == ()


def test_of_two_owners_exactly_one_keeps_a_turn(conversations):
    known = conversations.open("p", "n", "d")

    def keep():
        try:
            conversations.keep(known.id, turn(1))
        except PlanError:
            return False
        return True

    assert run_together([keep] * 8).count(True) == 1


def test_turn_is_told_in_the_audit_trail_without_what_was_said(tmp_path):
    with Store(tmp_path / "state.db") as store:
        conversations = SqliteConversations(store)
        conversations.keep(conversations.open("p", "n", "d").id, turn(1, request='"secret"'))
        with store.read() as connection:
            assert verify_chain(connection).holds
            ((body,),) = connection.execute(
                "SELECT body FROM events WHERE kind = 'model.answered' AND plan = 'p'"
            ).fetchall()
    assert '"cost":5' in body
    assert "secret" not in body


def test_names_that_the_store_cannot_hold_are_refused(tmp_path):
    with Store(tmp_path / "state.db") as store, pytest.raises(RequestError):
        SqliteConversations(store).open("p\udce9", "n", "d")
