"""Inputs for trials: how an object is built, and with what its methods are called.

A user's factory comes first, then values seen while the repository's tests ran, then what
defaults, type hints and names suggest. All of it is source text.
"""

from __future__ import annotations

from cleveragents.hunt.inputs.calls import Call, calls_of, constructions_of
from cleveragents.hunt.inputs.known import Known, known_inputs
from cleveragents.hunt.inputs.trials import Ways, trials

__all__ = ["Call", "Known", "Ways", "calls_of", "constructions_of", "known_inputs", "trials"]
