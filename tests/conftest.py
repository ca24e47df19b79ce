"""What every test gets: no thread of ours may outlive the test that started it."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings, strategies

# A deadline for one example would measure how busy the machine is. Every run tries other examples,
# and `nox -s properties` a thousand of each.
EXAMPLES = int(os.environ.get("CLEVERAGENTS_EXAMPLES", "25"))
settings.register_profile("cleveragents", deadline=None, max_examples=EXAMPLES)
settings.load_profile("cleveragents")

if "PYTEST_XDIST_WORKER" in os.environ:
    # Rules are covered in this process; behave and Robot cover the installed command.
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    # Programs write no bytecode: a file that changes twice in a second would be run as it was.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# Nothing of a test may come from, or go to, the code index of the user.
_caches = tempfile.TemporaryDirectory(prefix="cleveragents-tests-")
atexit.register(_caches.cleanup)
os.environ["XDG_CACHE_HOME"] = _caches.name

# Nearly all that is imported lives to the end: `pytest_collection_finish` takes it in.
gc.disable()

# Whoever starts the tests in the background has interrupts ignored; tests send them on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark races, kills and looks at the source: they show nothing that is not covered."""
    for item in items:
        if {"stress", "crash", "tidy"} & set(Path(item.path).parts):
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Spare the collector thousands of tests that live to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        # Hypothesis keeps its tables of Unicode in a file. They take seconds: once, not per worker.
        strategies.text().validate()


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
