"""A wait that ends when the work is asked to stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.stop_signal import StopSignal

#: Waits so many seconds, or until the signal.
Pause: TypeAlias = "Callable[[StopSignal, float], object]"


def pause(stop: StopSignal, seconds: float) -> None:
    """Wait so many seconds, or until the signal; whoever cares looks at the signal afterwards."""
    woken = threading.Event()
    forget = stop.when_stopped(lambda _: woken.set())
    try:
        woken.wait(seconds)
    finally:
        forget()
