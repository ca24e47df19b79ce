"""`python -m cleveragents`, for those without the scripts on their PATH."""

from __future__ import annotations

from cleveragents.cli.main import run

run()
