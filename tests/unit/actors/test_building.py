from __future__ import annotations

import pytest

from cleveragents.actors.building import ActorParts, build_actor, check_actor, kind_of
from cleveragents.domain.errors import SetupError
from cleveragents.domain.plan import CommandActor, LlmActor, PythonActor
from unit.actors.attemptkit import IDLE

MODEL = LlmActor("anthropic:sonnet", "Say hello")


def test_model_is_asked_by_what_is_wired_in():
    assert build_actor(MODEL, ActorParts(llm=lambda value: value)) is MODEL


def test_model_without_access_is_refused():
    with pytest.raises(SetupError, match="`anthropic:sonnet` cannot be asked"):
        check_actor(MODEL)


def test_actors_without_anything_to_check_pass():
    check_actor(IDLE)
    check_actor(CommandActor(("true",)))


def test_kinds_are_called_as_in_plans():
    values = (CommandActor(("true",)), PythonActor("a:b"), IDLE, MODEL, None)
    assert [kind_of(value) for value in values] == ["command", "python", "scripted", "llm", None]
