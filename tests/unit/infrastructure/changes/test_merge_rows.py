"""Rows of merges and conflicts: what is written is read again, whatever the names."""

from __future__ import annotations

import os

import pytest

from cleveragents.domain.changeset import ChangeEntry
from cleveragents.domain.conflict import Conflict, ConflictState, Side
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.changes import merge_rows as rows


@pytest.mark.parametrize("path", ["f", "a\nb", os.fsdecode(b"l-\xe9"), '"'])
def test_a_conflict_is_read_as_it_was_written(store, path):
    conflict = Conflict(
        id="k-1",
        plan_id="p",
        path=path,
        kind="contents",
        base=Side(mode=0o100644, content_id="1"),
        ours=Side(changeset="c-1", actor="ann", content_id="2", lines=((1, 2), (4, 4))),
        theirs=Side(changeset="c-2", node="n"),
    )
    store.write(lambda tx: rows.add_conflicts(tx, "c-2", [conflict]))
    with store.read() as connection:
        assert rows.conflict_row(connection, "k-1") == conflict
        assert rows.conflict_rows(connection, plan_id="p") == (conflict,)
        assert rows.conflict_rows(connection, changeset_id="c-2") == (conflict,)
        assert rows.conflict_rows(connection, plan_id="q") == ()
        assert rows.conflict_rows(connection, plan_id="p", changeset_id="c-1") == ()


def test_a_decision_is_kept_with_its_conflict(store):
    conflict = Conflict(
        id="k-1", plan_id="p", path="f", kind="x", base=Side(), ours=Side(), theirs=Side()
    )

    def write(tx):
        rows.add_conflicts(tx, "c-1", [conflict])
        rows.set_conflict(tx, "k-1", ConflictState.RESOLVED, "ours")
        return rows.conflict_row(tx, "k-1")

    found = store.write(write)
    assert (found.state, found.choice) == (ConflictState.RESOLVED, "ours")


def test_what_is_unknown_says_how_to_find_what_there_is(store):
    with store.read() as connection, pytest.raises(PlanError) as caught:
        rows.tree_row(connection, "nothing")
    assert (caught.value.code, caught.value.facts) == ("CA4107", {"id": "nothing"})
    assert caught.value.hint


def test_the_last_who_wrote_a_file_is_found_by_either_of_its_names(plan, trees, changesets, store):
    plan.merged({"f": b"1"}, actor="ann")
    start = trees.tree_of("p").head
    changeset_id = changesets.start("p", actor="bob")
    changesets.record(changeset_id, ChangeEntry.rename("f", "g"))
    trees.seal("p", changeset_id, start, start)
    trees.merge(changeset_id)
    row = trees.merges("p")[-1]
    with store.read() as connection:
        found = rows.last_writers(connection, row, ["f", "g", "absent"])
    assert {path: side.actor for path, side in found.items()} == {"f": "bob", "g": "bob"}
