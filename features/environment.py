"""Gives every scenario a fresh, typed world and cleans it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from world import World

if TYPE_CHECKING:
    from behave.model import Scenario
    from behave.runner import Context


def before_scenario(context: Context, _: Scenario) -> None:
    context.world = World()


def after_scenario(context: Context, _: Scenario) -> None:
    context.world.close()
