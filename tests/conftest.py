"""What every test gets: no thread of ours may outlive the test that started it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# A deadline for one example would measure how busy the machine is.
settings.register_profile("cleveragents", deadline=None)
settings.load_profile("cleveragents")

# Whoever starts the tests in the background has interrupts ignored; tests send them on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    leaked = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name.startswith("ca-")
    ]
    for thread in leaked:
        thread.join(2)
    alive = [thread.name for thread in leaked if thread.is_alive()]
    assert not alive, f"threads outlive their test: {alive}"
