"""Merges: what git merges is merged, what it cannot is told with every version kept."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from cleveragents.infrastructure.git.merge import Clash, clashing_lines, merge
from cleveragents.infrastructure.git.repository import Blob, GitRepository, Write
from unit.infrastructure.git.merge_worlds import worlds

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000


def text(*changes, lines=12, end="\n"):
    """Return numbered lines, some of them replaced; a line that is None is left out."""
    told = {n: f"line {n}" for n in range(1, lines + 1)} | dict(changes)
    return "".join(f"{line}{end}" for line in told.values() if line is not None).encode()


class World:
    """A base and two sides of it, made by writes."""

    def __init__(self, repository):
        self.repository = repository
        self.start = repository.commit_tree(repository.git("mktree").decode().strip())

    def write(self, parent, files):
        writes = {
            path: one if one is None or isinstance(one, Write) else Write(FILE, one)
            for path, one in files.items()
        }
        return self.repository.commit(parent, writes)

    def merge(self, base, ours, theirs):
        start = self.write(self.start, base)
        self.ours, self.theirs = self.write(start, ours), self.write(start, theirs)
        return merge(self.repository, self.ours, self.theirs)

    def read(self, version):
        if version is None:
            return None
        oid = version.oid if isinstance(version, Blob) else version
        return b"".join(self.repository.read([oid]))

    def tree(self, merged):
        return {path: self.read(blob) for path, blob in self.repository.files(merged.tree).items()}


@pytest.fixture
def world(repository):
    return World(repository)


def test_different_files_go_together(world):
    merged = world.merge({"a": b"1", "b": b"1"}, {"a": b"2"}, {"b": b"2", "c": b"3"})
    assert merged.clashes == ()
    assert world.tree(merged) == {"a": b"2", "b": b"2", "c": b"3"}


def test_different_places_of_one_file_go_together(world):
    merged = world.merge({"f": text()}, {"f": text((2, "ours"))}, {"f": text((9, "theirs"))})
    assert merged.clashes == ()
    assert world.tree(merged) == {"f": text((2, "ours"), (9, "theirs"))}


def test_equal_changes_of_both_sides_are_one(world):
    same = {"f": text((3, "same")), "new": b"n", "gone": None, "mode": Write(PROGRAM, b"")}
    merged = world.merge({"f": text(), "gone": b"g", "mode": b""}, same, same)
    assert merged.clashes == ()
    assert world.tree(merged) == {"f": text((3, "same")), "new": b"n", "mode": b""}


def test_line_ends_are_kept_as_they_are(world):
    dos = {"end": "\r\n"}
    merged = world.merge(
        {"f": text(**dos)}, {"f": text((2, "ours"), **dos)}, {"f": text((9, "theirs"), **dos)}
    )
    assert world.tree(merged) == {"f": text((2, "ours"), (9, "theirs"), **dos)}


def test_a_mode_and_a_content_go_together(world):
    merged = world.merge({"f": text()}, {"f": Write(PROGRAM, text())}, {"f": text((2, "theirs"))})
    assert merged.clashes == ()
    [blob] = world.repository.files(merged.tree).values()
    assert (blob.mode, world.read(blob)) == (PROGRAM, text((2, "theirs")))


def test_the_same_lines_clash_with_every_version_kept_and_their_place(world):
    ours, theirs = text((4, "ours"), (5, "ours")), text((5, "theirs"), (11, "elsewhere"))
    [clash] = world.merge({"f": text()}, {"f": ours}, {"f": theirs}).clashes
    assert (clash.path, clash.kind, clash.aside) == ("f", "contents", ())
    assert [world.read(one) for one in (clash.base, clash.ours, clash.theirs)] == [
        text(),
        ours,
        theirs,
    ]
    assert clashing_lines(world.repository, clash) == (((4, 5),), ((5, 5),))


@pytest.mark.parametrize(
    ("ours", "theirs", "lines"),
    [
        (text((1, "a")), text((1, "b")), (((1, 1),), ((1, 1),))),
        (text((3, "a\na")), text((3, "b")), (((3, 4),), ((3, 3),))),
        (text((3, None)), text((3, "b")), (((2, 2),), ((3, 3),))),
        (text((1, None)), text((1, "b")), (((1, 1),), ((1, 1),))),
        (text((4, "a")), text((5, "b")), (((4, 4),), ((5, 5),))),
        (text((4, "line 4\na")), text((5, "b")), (((5, 5),), ((5, 5),))),
        (text((4, "line 4\na")), text((4, "line 4\nb")), (((5, 5),), ((5, 5),))),
        (
            text((2, "same"), (6, "a"), (9, "a")),
            text((2, "same"), (6, "b"), (9, "b")),
            (((6, 6), (9, 9)), ((6, 6), (9, 9))),
        ),
        (
            text((2, "alone"), (4, "line 4\na"), (8, "x")),
            text((3, "near"), (4, "line 4\nb")),
            (((2, 2), (5, 5)), ((3, 3), (5, 5))),
        ),
    ],
    ids=[
        "first",
        "longer",
        "deleted",
        "deleted-first",
        "neighbours",
        "inserted-before",
        "both-inserted",
        "agreed-elsewhere",
        "near-an-insertion",
    ],
)
def test_lines_tell_exactly_what_is_in_the_way(world, ours, theirs, lines):
    [clash] = world.merge({"f": text()}, {"f": ours}, {"f": theirs}).clashes
    assert clashing_lines(world.repository, clash) == lines


def test_an_insertion_two_lines_from_a_change_is_not_in_its_way(world):
    """Git would merge these; only what is elsewhere in the file clashes."""
    ours = text((4, "line 4\nnew"), (10, "a"))
    theirs = text((3, "changed"), (10, "b"))
    [clash] = world.merge({"f": text()}, {"f": ours}, {"f": theirs}).clashes
    assert clashing_lines(world.repository, clash) == (((11, 11),), ((10, 10),))


def test_two_new_files_of_one_name_clash_everywhere(world):
    [clash] = world.merge({}, {"f": b"a\nb\n"}, {"f": b"c\n"}).clashes
    assert (clash.kind, clash.base) == ("add/add", None)
    assert clashing_lines(world.repository, clash) == (((1, 2),), ((1, 1),))


@pytest.mark.parametrize("deleter", ["ours", "theirs"])
def test_a_change_and_a_deletion_clash(world, deleter):
    sides = {"ours": {"f": text((3, "x"))}, "theirs": {"f": text((3, "x"))}} | {
        deleter: {"f": None}
    }
    [clash] = world.merge({"f": text()}, **sides).clashes
    assert (clash.path, clash.kind) == ("f", "modify/delete")
    assert getattr(clash, deleter) is None
    assert clashing_lines(world.repository, clash) == ((), ())


def test_binary_files_clash_without_lines(world):
    [clash] = world.merge({"f": b"\0a"}, {"f": b"\0b"}, {"f": b"\0c"}).clashes
    assert clash.kind == "binary"
    assert clashing_lines(world.repository, clash) == ((), ())


def test_links_clash_without_lines(world):
    [clash] = world.merge(
        {"l": Write(LINK, b"a")}, {"l": Write(LINK, b"b")}, {"l": Write(LINK, b"c")}
    ).clashes
    assert world.read(clash.theirs) == b"c"
    assert clashing_lines(world.repository, clash) == ((), ())


def test_a_rename_and_an_edit_go_together(world):
    merged = world.merge({"f": text()}, {"f": None, "g": text()}, {"f": text((3, "theirs"))})
    assert merged.clashes == ()
    assert world.tree(merged) == {"g": text((3, "theirs"))}


def test_a_rename_with_an_edit_of_the_same_lines_clashes_under_the_new_name(world):
    [clash] = world.merge(
        {"f": text()}, {"f": None, "g": text((3, "ours"))}, {"f": text((3, "theirs"))}
    ).clashes
    assert clash.path == "g"
    assert [world.read(one) for one in (clash.ours, clash.theirs)] == [
        text((3, "ours")),
        text((3, "theirs")),
    ]


def test_two_renames_of_one_file_clash_at_all_three_names(world):
    clashes = world.merge(
        {"f": text()}, {"f": None, "ours": text()}, {"f": None, "theirs": text()}
    ).clashes
    assert [(one.path, one.kind) for one in clashes] == [
        ("f", "rename/rename"),
        ("ours", "rename/rename"),
        ("theirs", "rename/rename"),
    ]
    base, ours, theirs = clashes
    assert (base.ours, base.theirs) == (None, None)
    assert (ours.base, ours.theirs) == (None, None)
    assert (theirs.base, theirs.ours) == (None, None)


def test_no_version_of_a_clash_ever_holds_markers(world):
    """Git merges the contents of two renames first, and would hand out its failure as a version."""
    clashes = world.merge(
        {"f": text()},
        {"f": None, "ours": text((3, "ours"))},
        {"f": None, "theirs": text((3, "theirs"))},
    ).clashes
    versions = [one for clash in clashes for one in (clash.base, clash.ours, clash.theirs) if one]
    assert sorted(map(world.read, versions)) == sorted(
        [text(), text((3, "ours")), text((3, "theirs"))]
    )


def test_two_renames_of_one_file_keep_edits_that_go_together(world):
    _, ours, theirs = world.merge(
        {"f": text()},
        {"f": None, "ours": text((2, "a"))},
        {"f": None, "theirs": text((11, "b"))},
    ).clashes
    assert world.read(ours.ours) == world.read(theirs.theirs) == text((2, "a"), (11, "b"))


def test_a_rename_and_a_deletion_clash_under_the_new_name(world):
    [clash] = world.merge({"f": text()}, {"f": None, "g": text()}, {"f": None}).clashes
    assert (clash.path, clash.kind, clash.theirs) == ("g", "rename/delete", None)


@pytest.mark.parametrize("name", ["t", "deep/t~1", os.fsdecode(b"\xe9"), "a\nb", "-t"])
def test_a_file_in_the_way_of_a_folder_clashes_under_its_own_name(world, name):
    [clash] = world.merge(
        {name: b"base\n"}, {name: None, f"{name}/inside": b"1"}, {name: b"theirs\n"}
    ).clashes
    assert (clash.path, clash.kind) == (name, "file/directory")
    assert (clash.ours, world.read(clash.theirs)) == (None, b"theirs\n")
    assert clash.aside == (f"{name}~{world.theirs}",)


def test_a_name_that_git_would_put_aside_to_may_be_taken(world):
    world.merge({}, {}, {"t": b"theirs"})
    taken = f"t~{world.theirs}"
    ours = world.write(
        world.repository.commit_tree(world.repository.tree_of(world.start), world.start),
        {"t/x": b"1", taken: b"mine"},
    )
    merged = merge(world.repository, ours, world.theirs)
    assert {clash.path for clash in merged.clashes} >= {"t"}
    assert b"mine" in world.tree(merged).values()


def test_a_link_and_a_file_of_one_name_clash_with_both_kept(world):
    [clash] = world.merge(
        {"t": b"base\n"}, {"t": Write(LINK, b"target")}, {"t": b"theirs\n"}
    ).clashes
    assert (clash.path, clash.ours.mode, clash.theirs.mode) == ("t", LINK, FILE)
    assert clashing_lines(world.repository, clash) == ((), ())


def test_a_new_file_in_a_folder_that_moved_is_a_question(world):
    folder = {f"old/{n}": text((n, "x")) for n in (1, 2)}
    [clash] = world.merge(
        folder,
        dict.fromkeys(folder) | {path.replace("old", "new"): data for path, data in folder.items()},
        {"old/added": b"1"},
    ).clashes
    assert (clash.path, clash.ours) == ("new/added", None)
    assert world.read(clash.theirs) == b"1"


def test_a_folder_that_was_split_is_no_question(world):
    """Git doubts where new files belong, and leaves them where their author put them."""
    merged = world.merge(
        {"old/1": text((1, "x")), "old/2": text((2, "x"))},
        {"old/1": None, "old/2": None, "a/1": text((1, "x")), "b/2": text((2, "x"))},
        {"old/added": b"1"},
    )
    assert merged.clashes == ()
    assert set(world.tree(merged)) == {"old/added", "a/1", "b/2"}


def test_several_clashes_come_in_the_order_of_their_paths(world):
    names = ["z", "a b", "m\nn", os.fsdecode(b"\xff"), '"q"', "back\\slash", "-x"]
    clashes = world.merge(
        {}, dict.fromkeys(names, b"ours"), dict.fromkeys(names, b"theirs")
    ).clashes
    assert [clash.path for clash in clashes] == sorted(names)
    assert {clash.kind for clash in clashes} == {"add/add"}


def test_a_clash_is_a_value():
    assert Clash("f", "contents", None, None, None) == Clash("f", "contents", None, None, None)


def in_order(repository, tree, sides):
    world = World(repository)
    base = world.write(world.start, tree)
    head, outcome = base, []
    for side in sides:
        theirs = world.write(base, dict.fromkeys(tree) | side)
        merged = merge(repository, head, theirs)
        outcome.append("conflicted" if merged.clashes else "merged")
        if not merged.clashes:
            head = repository.commit_tree(merged.tree, head, theirs)
    return outcome, repository.tree_of(head)


@pytest.fixture(scope="module")
def shared():
    with tempfile.TemporaryDirectory() as folder:
        yield GitRepository(Path(folder), Path(folder) / "home")


@pytest.mark.long
@settings(max_examples=int(os.environ.get("MERGE_EXAMPLES", "12")))
@given(world=worlds())
def test_without_conflicts_every_order_gives_the_same_tree(shared, world):
    tree, sides = world
    results = [in_order(shared, tree, order) for order in itertools.permutations(sides[:3])]
    if all(set(outcome) == {"merged"} for outcome, _ in results):
        assert len({found for _, found in results}) == 1
