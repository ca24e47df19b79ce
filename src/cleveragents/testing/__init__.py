"""Helpers for tests of code that uses CleverAgents: time, order and models are yours.

No test sleeps, and no test needs a key: `ModelServer` is a provider on loopback.
"""

from __future__ import annotations

from cleveragents.testing.billing import Bill, count_prompt, count_tokens
from cleveragents.testing.model_server import ModelServer
from cleveragents.testing.order import FrozenClock, Gate, run_together
from cleveragents.testing.script import (
    Asked,
    BreakOff,
    CallTool,
    Cut,
    Garble,
    Message,
    Refusal,
    Refuse,
    Reply,
    Say,
    Think,
    Wait,
    Withhold,
)
from cleveragents.testing.scripted_model import ScriptedModel

__all__ = [
    "Asked",
    "Bill",
    "BreakOff",
    "CallTool",
    "Cut",
    "FrozenClock",
    "Garble",
    "Gate",
    "Message",
    "ModelServer",
    "Refusal",
    "Refuse",
    "Reply",
    "Say",
    "ScriptedModel",
    "Think",
    "Wait",
    "Withhold",
    "count_prompt",
    "count_tokens",
    "run_together",
]
