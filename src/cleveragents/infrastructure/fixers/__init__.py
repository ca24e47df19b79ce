"""Fixers: what a repository is configured to tidy itself with, and a plan that runs them."""

from __future__ import annotations

from cleveragents.infrastructure.fixers.detection import (
    found_check,
    found_fixers,
    given_check,
)
from cleveragents.infrastructure.fixers.fix_plan import fix_plan
from cleveragents.infrastructure.fixers.fixer import FileChoice, Fixer, FoundCheck

__all__ = [
    "FileChoice",
    "Fixer",
    "FoundCheck",
    "fix_plan",
    "found_check",
    "found_fixers",
    "given_check",
]
