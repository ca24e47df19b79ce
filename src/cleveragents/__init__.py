"""Run many AI actors on one codebase at once, with every dollar, error and change accounted for."""

from __future__ import annotations

from cleveragents._version import __version__

__all__ = ["__version__"]
