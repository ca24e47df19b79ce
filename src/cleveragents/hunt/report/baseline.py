"""The findings that a team knows and accepts for now, as a small file in its repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cleveragents.hunt.verdict import Finding

__all__ = ["baseline_text", "read_baseline"]


def read_baseline(path: Path) -> frozenset[str]:
    """Return the ids that a baseline accepts."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))["known"]
        return frozenset(str(one["id"]) for one in known)
    except OSError as error:
        raise RequestError(
            f"The baseline `{path}` cannot be read: {error.strerror}",
            hint="Write one with `--write-baseline`",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise RequestError(
            f"The baseline `{path}` is not one: it must hold `known`, a list of ids",
            hint="Write it anew with `--write-baseline`",
        ) from error


def baseline_text(findings: Iterable[Finding]) -> str:
    """Return a baseline that accepts these findings; ids stay while names in the code do."""
    known = [
        {"id": one.candidate.id, "name": one.candidate.name, "why": one.reason}
        for one in sorted(findings, key=lambda one: one.candidate.name)
    ]
    return json.dumps({"known": known}, indent=2, ensure_ascii=False) + "\n"
