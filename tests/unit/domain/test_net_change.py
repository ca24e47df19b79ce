from __future__ import annotations

import pytest

from cleveragents.domain.changeset import ChangeEntry, Changeset, Content, FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.domain.net_change import (
    FileVersion,
    NetChange,
    Overlay,
    change_of,
    combined,
    net_changes,
)

create, modify, delete = ChangeEntry.create, ChangeEntry.modify, ChangeEntry.delete
rename, change_mode = ChangeEntry.rename, ChangeEntry.change_mode
REGULAR, EXECUTABLE = FileMode.REGULAR, FileMode.EXECUTABLE


def version(path, data=None, mode=None):
    return FileVersion(path, None if data is None else Content.of(data), mode)


NET = {
    "nothing": ([], []),
    "created": ([create("a", "1")], [(None, version("a", "1", REGULAR))]),
    "created-then-deleted": ([create("a", "1"), delete("a", "1")], []),
    "created-then-renamed": (
        [create("a", "1"), rename("a", "b")],
        [(None, version("b", "1", REGULAR))],
    ),
    "created-then-made-executable": (
        [create("a", "1"), change_mode("a", 0o644, 0o755)],
        [(None, version("a", "1", EXECUTABLE))],
    ),
    "modified-twice": (
        [modify("a", "1", "2"), modify("a", "2", "3")],
        [(version("a", "1"), version("a", "3"))],
    ),
    "modified-and-back": ([modify("a", "1", "2"), modify("a", "2", "1")], []),
    "modified-then-deleted": (
        [modify("a", "1", "2"), delete("a", "2")],
        [(version("a", "1", REGULAR), None)],
    ),
    "deleted-then-created": (
        [delete("a", "1"), create("a", "2", mode=0o755)],
        [(version("a", "1", REGULAR), version("a", "2", EXECUTABLE))],
    ),
    "renamed-unread-then-modified": (
        [rename("a", "b"), modify("b", "1", "2")],
        [(version("a", "1"), version("b", "2"))],
    ),
    "renamed-unread-then-deleted": (
        [rename("a", "b"), delete("b", "1")],
        [(version("a", "1", REGULAR), None)],
    ),
    "renamed-and-back": ([rename("a", "b"), rename("b", "a")], []),
    "renamed-twice": (
        [rename("a", "b"), rename("b", "c")],
        [(version("a"), version("c"))],
    ),
    "swapped": (
        [rename("a", "t"), rename("b", "a"), rename("t", "b")],
        [(version("b"), version("a")), (version("a"), version("b"))],
    ),
    "renamed-then-replaced": (
        [rename("a", "b"), create("a", "2")],
        [(None, version("a", "2", REGULAR)), (version("a"), version("b"))],
    ),
    "renamed-then-replaced-then-lost": (
        [rename("a", "b", before="1"), create("a", "2"), delete("b", "1")],
        [(version("a", "1", REGULAR), version("a", "2", REGULAR))],
    ),
    "file-becomes-folder": (
        [delete("a", "1"), create("a/b", "2")],
        [(version("a", "1", REGULAR), None), (None, version("a/b", "2", REGULAR))],
    ),
    "file-moves-into-a-folder-of-its-name": (
        [modify("a", "1", "2"), rename("a", "a/b")],
        [(version("a", "1"), version("a/b", "2"))],
    ),
    "only-file-of-a-folder-takes-its-name": (
        [modify("a/b", "1", "2"), rename("a/b", "a")],
        [(version("a/b", "1"), version("a", "2"))],
    ),
    "changed-outside-between": (
        [modify("a", "1", "2"), modify("a", "two, formatted", "3")],
        [(version("a", "1"), version("a", "3"))],
    ),
}


@pytest.mark.parametrize(("entries", "expected"), NET.values(), ids=NET)
def test_entries_amount_to_what_they_do_together(entries, expected):
    assert net_changes(entries) == tuple(NetChange(*pair) for pair in expected)


IMPOSSIBLE = {
    "create-twice": ([create("a", "1"), create("a", "2")], "is there already"),
    "create-what-was-modified": ([modify("a", "1", "2"), create("a", "3")], "is there already"),
    "modify-deleted": ([delete("a", "1"), modify("a", "1", "2")], "is gone"),
    "delete-twice": ([delete("a", "1"), delete("a", "1")], "is gone"),
    "delete-own-file-twice": ([create("a", "1"), delete("a", "1"), delete("a", "1")], "is gone"),
    "modify-renamed-away": ([rename("a", "b"), modify("a", "1", "2")], "is gone"),
    "rename-renamed-away": ([rename("a", "b"), rename("a", "c")], "is gone"),
    "mode-of-deleted": ([delete("a", "1"), change_mode("a", 0o644, 0o755)], "is gone"),
    "rename-over-a-file": ([create("b", "1"), rename("a", "b")], "is there already"),
    "file-inside-a-file": ([create("a", "1"), create("a/b", "2")], "cannot be inside 'a'"),
    "modify-inside-a-file": ([create("a", "1"), modify("a/b", "1", "2")], "cannot be inside"),
    "file-where-a-folder-is": ([create("a/b", "1"), create("a", "2")], "is a folder"),
    "unknown-file-takes-the-name-of-its-folder": (
        [create("a/x", "1"), rename("a/y", "a")],
        "is a folder",
    ),
}


@pytest.mark.parametrize(("entries", "reason"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_change_that_cannot_follow_the_others_is_refused_without_a_trace(entries, reason):
    *possible, impossible = entries
    overlay = Overlay()
    for entry in possible:
        overlay.add([change_of(entry)])
    before = overlay.net()
    with pytest.raises(PlanError, match=reason) as caught:
        overlay.add([change_of(impossible)])
    assert caught.value.code == "CA4003"
    assert overlay.net() == before


def test_a_path_can_be_created_again_after_it_was_deleted_or_renamed_away():
    assert net_changes([create("a", "1"), delete("a", "1"), create("a", "2")])
    assert net_changes([create("a", "1"), rename("a", "b"), create("a", "2")])


def changeset(number, *entries):
    return Changeset(id=f"c-{number}", plan_id="p-1", entries=entries)


CHAINS = {
    "one": ([[create("a", "1")]], [(None, version("a", "1", REGULAR))]),
    "different-files": (
        [[create("a", "1")], [create("b", "2")]],
        [(None, version("a", "1", REGULAR)), (None, version("b", "2", REGULAR))],
    ),
    "one-after-the-other": (
        [[modify("a", "1", "2")], [modify("a", "2", "3")]],
        [(version("a", "1"), version("a", "3"))],
    ),
    "modified-then-renamed": (
        [[modify("a", "1", "2")], [rename("a", "b")]],
        [(version("a", "1"), version("b", "2"))],
    ),
    "swapped-in-the-second": (
        [[modify("a", "1", "2")], [rename("a", "t"), rename("b", "a"), rename("t", "b")]],
        [(version("b"), version("a")), (version("a", "1"), version("b", "2"))],
    ),
    "content-and-mode": (
        [[modify("a", "1", "2")], [change_mode("a", 0o644, 0o755)]],
        [(version("a", "1", REGULAR), version("a", "2", EXECUTABLE))],
    ),
    "both-the-same-edit": (
        [[modify("a", "1", "2")], [modify("a", "1", "2")]],
        [(version("a", "1"), version("a", "2"))],
    ),
    "both-the-same-delete": (
        [[delete("a", "1")], [delete("a", "1")]],
        [(version("a", "1", REGULAR), None)],
    ),
    "both-the-same-rename": (
        [[rename("a", "b", "1")], [rename("a", "b", "1")]],
        [(version("a", "1"), version("b", "1"))],
    ),
}


@pytest.mark.parametrize(("runs", "expected"), CHAINS.values(), ids=CHAINS)
def test_changesets_that_build_on_each_other_amount_to_one(runs, expected):
    changesets = [changeset(number, *entries) for number, entries in enumerate(runs)]
    assert combined(changesets) == tuple(NetChange(*pair) for pair in expected)


CONFLICTS = {
    "two-edits": ([modify("a", "1", "2")], [modify("a", "1", "3")]),
    "two-creates": ([create("a", "1")], [create("a", "2")]),
    "edit-and-delete": ([modify("a", "1", "2")], [delete("a", "1")]),
    "delete-and-edit": ([delete("a", "1")], [modify("a", "1", "2")]),
    "two-modes": ([create("a", "1", mode=0o755)], [delete("a", "1", mode=0o644)]),
    "unread-files-moved-to-one-path": (
        [rename("a", "x"), rename("b", "c")],
        [rename("a", "c")],
    ),
    "file-and-folder": ([create("a", "1")], [create("a/b", "1")]),
}


@pytest.mark.parametrize(("first", "second"), CONFLICTS.values(), ids=CONFLICTS)
def test_changesets_that_start_from_different_versions_are_refused_not_overwritten(first, second):
    """The later `after` knows nothing of the earlier one: to take it would lose a change."""
    with pytest.raises(PlanError, match="Changeset `c-2` starts from another version") as caught:
        combined([changeset(1, *first), changeset(2, *second)])
    assert caught.value.code == "CA4004"
    assert caught.value.facts["changeset"] == "c-2"
