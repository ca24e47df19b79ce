"""Proof without a specification: an outcome that no order of whole calls gives is a bug."""

from __future__ import annotations

from cleveragents.hunt.prove.options import ProveOptions
from cleveragents.hunt.prove.prover import prove

__all__ = ["ProveOptions", "prove"]
