"""From the actor that a plan names to the one that runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cleveragents.actors.command_actor import CommandActor
from cleveragents.actors.pause import pause
from cleveragents.actors.python_actor import PythonActor
from cleveragents.actors.scripted_actor import ScriptedActor
from cleveragents.domain import plan_actors
from cleveragents.domain.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cleveragents.actors.command_actor import Pricing
    from cleveragents.actors.pause import Pause
    from cleveragents.application.attempts import Actor


@runtime_checkable
class Checked(Protocol):
    """An actor that can tell before a run that it would fail."""

    def check(self) -> None:
        """Refuse what cannot work."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorParts:
    """What actors are made of besides their value in the plan; wired once."""

    #: Prices what agents report without its cost; None leaves it unknown.
    price: Pricing | None = None
    #: Where Python functions are looked for besides the usual places: the folder of the plan file.
    modules: Path | None = None
    #: Makes actors that ask models; None where no model can be asked.
    llm: Callable[[plan_actors.LlmActor], Actor] | None = None
    clock: Callable[[], float] = field(default=time.monotonic)
    pause: Pause = field(default=pause)


_DEFAULT = ActorParts()


def build_actor(value: plan_actors.Actor, parts: ActorParts = _DEFAULT) -> Actor:
    """Return the actor of a value whose templates are filled in."""
    if isinstance(value, plan_actors.CommandActor):
        return CommandActor(value, parts.price)
    if isinstance(value, plan_actors.PythonActor):
        return PythonActor(value, parts.modules)
    if isinstance(value, plan_actors.ScriptedActor):
        return ScriptedActor(value, parts.clock, parts.pause)
    if parts.llm is None:
        raise SetupError(
            f"The model `{value.model}` cannot be asked: no model access is set up here",
            hint="Use a command, a function or a script, or set up a provider of models",
        )
    return parts.llm(value)


def check_actor(value: plan_actors.Actor, parts: ActorParts = _DEFAULT) -> None:
    """Refuse before a run what can be known to fail: a missing function, model or key."""
    actor = build_actor(value, parts)
    if isinstance(actor, Checked):
        actor.check()


def kind_of(value: plan_actors.Actor | None) -> str | None:
    """Return the word that a plan uses for the kind of an actor."""
    return None if value is None else _KINDS[type(value)]


_KINDS = {
    plan_actors.CommandActor: "command",
    plan_actors.PythonActor: "python",
    plan_actors.ScriptedActor: "scripted",
    plan_actors.LlmActor: "llm",
}
