"""Gives every scenario a fresh, typed world and cleans it up."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from world import World

if TYPE_CHECKING:
    from behave.model import Scenario
    from behave.runner import Context


#: Nothing of a scenario may come from, or go to, the code index of the user.
CACHES = tempfile.TemporaryDirectory(prefix="cleveragents-features-")


def before_all(_: Context) -> None:
    os.environ["XDG_CACHE_HOME"] = CACHES.name


def after_all(_: Context) -> None:
    CACHES.cleanup()


def before_scenario(context: Context, _: Scenario) -> None:
    context.world = World()


def after_scenario(context: Context, _: Scenario) -> None:
    context.world.close()
