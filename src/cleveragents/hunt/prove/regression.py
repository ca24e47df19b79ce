"""The regression test of a finding, as the text of a pytest file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleveragents.hunt.verdict import Finding

__all__ = ["regression_test"]


def regression_test(finding: Finding) -> str:
    """Return a file that fails while the race is there, and passes once the calls are atomic.

    It needs a finding with a trial, and `cleveragents[hunt]` where it runs.
    """
    trial, candidate = finding.trial, finding.candidate
    if trial is None:
        message = f"{candidate.name} was not tried: there is nothing to test again"
        raise ValueError(message)
    fresh = trial.fresh_module or candidate.module
    imports = [f"    {line}" for line in trial.imports]
    lines = [
        f'"""Overlapping calls must leave what whole calls leave: `{candidate.name}`."""',
        "",
        "from cleveragents.hunt import assert_atomic",
        "",
        "",
        "def subject():",
        *imports,
        "",
        f"    return {trial.subject}",
        "",
        "",
        *_functions("prepare", trial.setup, imports),
        *_functions("call", trial.calls, imports),
        f"def test_{_slug(candidate.name)}_is_atomic():",
        "    assert_atomic(",
        "        subject,",
        f"        [{_names('call', trial.calls)}],",
        *([f"        setup=[{_names('prepare', trial.setup)}],"] if trial.setup else []),
        f"        fresh=[{fresh!r}],",
        "    )",
    ]
    return "\n".join(lines) + "\n"


def _functions(name: str, texts: Sequence[str], imports: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for number, text in enumerate(texts, 1):
        lines += (
            [f"def {name}_{number}(subject):", *imports, ""]
            if _needs(text, imports)
            else [f"def {name}_{number}(subject):"]
        )
        lines += [f"    return {text}", "", ""]
    return lines


def _needs(text: str, imports: Sequence[str]) -> bool:
    """Say whether an expression uses a name that an import brings."""
    names = {re.split(r"[\s.]", line.strip())[-1] for line in imports}
    names |= {line.split()[1].partition(".")[0] for line in imports}
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names if name)


def _names(name: str, texts: Sequence[str]) -> str:
    return ", ".join(f"{name}_{number}" for number in range(1, len(texts) + 1))


def _slug(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_").lower()
