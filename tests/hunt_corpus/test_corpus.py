"""The hunt proves what is racy and leaves alone what is right.

A fixed part of the corpus by default; `CLEVERAGENTS_HUNT=all` takes the whole of it.
"""

from __future__ import annotations

import os

import pytest

from hunt_corpus.evaluate import (
    CORPUS,
    HEADING,
    NAMES,
    OWNERS,
    check,
    evaluate,
    goals_missed,
    line,
    totals,
)

WHOLE = os.environ.get("CLEVERAGENTS_HUNT") == "all"
CHOSEN = NAMES if WHOLE else tuple(sorted({*NAMES[::8], *OWNERS}))


def test_every_racy_file_has_a_correct_twin_and_a_check():
    assert len(NAMES) >= 44
    assert set(OWNERS) <= set(NAMES)
    assert {path.stem for path in (CORPUS / "safe").glob("*.py")} == set(NAMES)
    checks = {path.stem for path in (CORPUS / "checks").glob("*.py")}
    assert checks == {f"test_{name}" for name in NAMES}


@pytest.mark.long
@pytest.mark.parametrize("part", ["racy", "safe"])
def test_both_twins_behave_the_same_in_one_thread(part):
    done = check(CORPUS / part, [CORPUS / "checks"])
    assert done.returncode == 0, done.stdout


@pytest.mark.long
@pytest.mark.timeout(3600 if WHOLE else 300)
def test_racy_files_are_proven_and_correct_ones_are_not():
    """A race shows early; only silence takes all of its time."""
    racy = evaluate([("racy", name) for name in CHOSEN], seconds=20 if WHOLE else 10)
    safe = evaluate([("safe", name) for name in CHOSEN], seconds=10 if WHOLE else 2)
    rows = [*racy, *safe]
    assert goals_missed(rows) == [], "\n".join([HEADING, *map(line, rows), totals(rows)])
