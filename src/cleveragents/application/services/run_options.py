"""Who is told and asked while a plan runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.application.services.attempt_order import Ask, Replan
    from cleveragents.application.services.plan_run import PlanRun
    from cleveragents.domain.run_events import RunEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Who is told and asked while a plan runs, and how long an attempt may take to stop."""

    #: Hears every event, one at a time, in the thread that runs the plan.
    listener: Callable[[RunEvent], object] | None = None
    #: Is handed the run before it begins; its `request_stop` may be called from anywhere.
    on_open: Callable[[PlanRun], object] | None = None
    ask: Ask | None = None
    replan: Replan | None = None
    #: An attempt that was asked to stop and still runs after this time is left behind.
    grace_s: float = 10.0
    clock: Callable[[], float] = field(default=time.monotonic)
