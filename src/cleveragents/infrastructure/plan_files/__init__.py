"""Plan files: read YAML with the place of every mistake, write it, and describe it for editors."""

from __future__ import annotations

from cleveragents.infrastructure.plan_files.description import reference, schema
from cleveragents.infrastructure.plan_files.loading import LoadedPlan, load_plan, parse_plan
from cleveragents.infrastructure.plan_files.writing import dump

__all__ = ["LoadedPlan", "dump", "load_plan", "parse_plan", "reference", "schema"]
