from __future__ import annotations

from importlib.util import find_spec

import pytest

from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.store import Store

# Everything here speaks with pydantic-ai's messages.
collect_ignore_glob = [] if find_spec("pydantic_ai") else ["test_*.py"]


@pytest.fixture
def desk(world, tmp_path):
    from unit.actors.llm.llmkit import Desk

    with Store(tmp_path / "books.db") as store, DurableCostTracker(store) as tracker:
        yield Desk(world, tracker)
