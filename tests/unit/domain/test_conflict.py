"""Conflicts as values: what they say to the person who must choose."""

from __future__ import annotations

import pytest

from cleveragents.domain.conflict import Conflict, ConflictState, MergeOutcome, Side


@pytest.mark.parametrize(
    ("side", "told"),
    [
        (Side(actor="ann", node="n", content_id="1", lines=((3, 3),)), "ann, line 3"),
        (Side(node="n", content_id="1", lines=((3, 5),)), "n, lines 3 to 5"),
        (Side(changeset="c-1", content_id="1", lines=((1, 1), (4, 6))), "c-1, lines 1, 4 to 6"),
        (Side(content_id="1"), "the user"),
        (Side(actor="ann"), "ann deleted it"),
    ],
    ids=["line", "lines", "places", "no-lines", "deleted"],
)
def test_a_side_tells_who_and_where(side, told):
    assert str(side) == told


def test_a_conflict_is_open_until_somebody_chooses():
    conflict = Conflict(
        id="k-1", plan_id="p", path="f", kind="contents", base=Side(), ours=Side(), theirs=Side()
    )
    assert (conflict.state, conflict.choice) == (ConflictState.OPEN, None)
    assert MergeOutcome("c-1", "merged", "head").conflicts == ()
