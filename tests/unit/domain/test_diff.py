"""The judge is git: what `git apply` makes of our text must be exactly the files after."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.domain import diff
from cleveragents.domain.changeset import ChangeEntry, FileMode
from cleveragents.domain.diff import unified_diff
from cleveragents.domain.net_change import net_changes

if TYPE_CHECKING:
    from pathlib import Path

REGULAR, EXECUTABLE, SYMLINK = FileMode
PNG = b"\x89PNG\r\n\0\0" + bytes(range(256)) * 3


class Repository:
    """A real git repository whose files are set and read as `{path: (bytes, mode)}`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")

    def git(self, *arguments: str, given: bytes = b"") -> bytes:
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            input=given,
            capture_output=True,
            check=False,
            env=os.environ | quiet,
        )
        assert done.returncode == 0, done.stderr.decode() + given.decode("utf-8", "replace")
        return done.stdout

    def write(self, tree) -> None:
        for place in self.root.iterdir():
            if place.is_symlink() or place.is_file():
                place.unlink()
            elif place.name != ".git":
                shutil.rmtree(place)
        for path, (data, mode) in tree.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if mode is SYMLINK:
                place.symlink_to(os.fsdecode(data))
            else:
                place.write_bytes(data)
                place.chmod(mode & 0o777)

    def read(self):
        tree = {}
        for place in self.root.rglob("*"):
            name = place.relative_to(self.root)
            if name.parts[0] == ".git":
                continue
            if place.is_symlink():
                tree[str(name)] = (os.fsencode(place.readlink()), SYMLINK)
            elif place.is_file():
                tree[str(name)] = (place.read_bytes(), FileMode(place.stat().st_mode))
        return tree

    def apply(self, text: str, *options: str) -> None:
        patch = text.encode("utf-8", "surrogateescape")
        self.git("apply", "--allow-empty", *options, given=patch)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("repository"))


def entry_for(path, before, after):
    if before is None:
        return ChangeEntry.create(path, after)
    return (
        ChangeEntry.delete(path, before)
        if after is None
        else ChangeEntry.modify(path, before, after)
    )


def tree_of(path, data):
    return {} if data is None else {path: (data, REGULAR)}


def applied(repository, before, entries):
    """Apply the diff of entries to a tree with real git; the way back must lead to the tree."""
    text = unified_diff(net_changes(entries))
    repository.write(before)
    repository.apply(text)
    after = repository.read()
    repository.apply(text, "--reverse")
    assert repository.read() == before
    return after


ALPHABET = b"".join(b"%d\n" % number for number in range(100))
CONTENTS = {
    "create": (None, b"one\ntwo\n"),
    "create-empty": (None, b""),
    "create-without-last-newline": (None, b"one\ntwo"),
    "create-binary": (None, PNG),
    "delete": (b"one\ntwo\n", None),
    "delete-empty": (b"", None),
    "delete-binary": (PNG, None),
    "modify": (ALPHABET, ALPHABET.replace(b"\n50\n", b"\nfifty\n").replace(b"\n9\n", b"\n")),
    "modify-first-and-last-line": (ALPHABET, b"first\n" + ALPHABET[2:-3] + b"last\n"),
    "fill-empty": (b"", b"one\n"),
    "empty": (b"one\n", b""),
    "add-last-newline": (b"one\ntwo", b"one\ntwo\n"),
    "remove-last-newline": (b"one\ntwo\n", b"one\ntwo"),
    "modify-without-last-newline": (b"one\ntwo", b"two\ntwo"),
    "crlf": (b"one\r\ntwo\r\n", b"one\r\n2\r\nthree\r\n"),
    "crlf-to-lf": (b"one\r\ntwo\r\n", b"one\ntwo\n"),
    "carriage-returns-alone": (b"one\rtwo\rthree\n", b"one\r2\rthree\n"),
    "unicode-line-separators": ("a\u2028b\x0cc\n".encode(), "a\u2028c\x0cc\n".encode()),
    "latin-1": (b"caf\xe9\n", b"caf\xe8\n"),
    "looks-like-a-patch": (b"x\n", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n"),
    "text-to-binary": (b"text\n", PNG),
    "binary-to-text": (PNG, b"text\n"),
    "binary": (PNG, PNG[::-1]),
    "nul-far-inside": (b"x\n" * 9000 + b"\0\n", b"x\n" * 9000 + b"\0y\n"),
}


@pytest.mark.parametrize(("before", "after"), CONTENTS.values(), ids=CONTENTS)
def test_git_apply_gives_exactly_the_content_after(repository, before, after):
    entry = entry_for("f", before, after)
    assert applied(repository, tree_of("f", before), [entry]) == tree_of("f", after)


NAMES = {
    "folder": "src/deep/down.py",
    "space": "a b/c d",
    "edge-spaces": " a /b ",
    "quote": 'say "hi"',
    "apostrophe": "it's",
    "tab-and-newline": "a\tb\nc",
    "control": "bell\a\x01\x7f",
    "non-ascii": "ünï码.txt",
    "not-utf-8": "caf\udce9\udcff",
    "looks-like-a-prefix": "b/a/b/x",
    "looks-like-two-names": "a b/a",
    "dash": "-r",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize(("before", "after"), [(None, b""), (b"1\n", b"2\n"), (PNG, None)])
def test_git_apply_finds_every_name(repository, name, before, after):
    entry = entry_for(name, before, after)
    assert applied(repository, tree_of(name, before), [entry]) == tree_of(name, after)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_git_apply_renames_and_changes_modes_under_every_name(repository, name):
    entries = [ChangeEntry.rename("old", name), ChangeEntry.change_mode(name, 0o644, 0o755)]
    after = applied(repository, {"old": (b"x", REGULAR)}, entries)
    assert after == {name: (b"x", EXECUTABLE)}


def test_git_quotes_names_as_we_do(repository):
    """But for a space at the end: git writes that plain, and then cannot read it back."""
    for name in set(NAMES.values()) - {NAMES["edge-spaces"]}:
        repository.write({name: (b"x\n", REGULAR)})
        repository.git("add", "--all")
        theirs = repository.git("diff", "--cached", "--full-index").decode()
        repository.git("reset", "--quiet")
        assert unified_diff(net_changes([ChangeEntry.create(name, b"x\n")])) == theirs


TREES = {
    "rename": ({"a": (b"1\n", REGULAR)}, [ChangeEntry.rename("a", "d/b")]),
    "rename-with-edit": (
        {"a": (ALPHABET, EXECUTABLE)},
        [ChangeEntry.rename("a", "b", ALPHABET, ALPHABET + b"end\n")],
    ),
    "rename-binary-with-edit": ({"a": (PNG, REGULAR)}, [ChangeEntry.rename("a", "b", PNG, b"\0")]),
    "rename-over-deleted": (
        {"a": (b"1", REGULAR), "b": (b"2", REGULAR)},
        [ChangeEntry.delete("b", b"2"), ChangeEntry.rename("a", "b")],
    ),
    "rename-and-replace": (
        {"a": (b"1", REGULAR)},
        [ChangeEntry.rename("a", "b"), ChangeEntry.create("a", b"2")],
    ),
    "swap": (
        {"a": (b"1", REGULAR), "b": (b"2", EXECUTABLE)},
        [ChangeEntry.rename("a", "t"), ChangeEntry.rename("b", "a"), ChangeEntry.rename("t", "b")],
    ),
    "mode": ({"a": (b"1", REGULAR)}, [ChangeEntry.change_mode("a", 0o644, 0o755)]),
    "mode-and-edit": (
        {"a": (b"1", EXECUTABLE)},
        [ChangeEntry.change_mode("a", 0o755, 0o644), ChangeEntry.modify("a", b"1", b"2")],
    ),
    "edit-of-an-executable": ({"a": (b"1", EXECUTABLE)}, [ChangeEntry.modify("a", b"1", b"2")]),
    "link": ({}, [ChangeEntry.create("a", b"../x", mode=SYMLINK)]),
    "link-renamed": ({"a": (b"x", SYMLINK)}, [ChangeEntry.rename("a", "b", b"x", b"y")]),
    "link-retargeted": ({"a": (b"x", SYMLINK)}, [ChangeEntry.modify("a", b"x", b"y")]),
    "file-to-link": (
        {"a": (b"1\n", REGULAR)},
        [ChangeEntry.delete("a", b"1\n"), ChangeEntry.create("a", b"x", mode=SYMLINK)],
    ),
    "file-to-folder": (
        {"a": (b"1", REGULAR)},
        [ChangeEntry.delete("a", b"1"), ChangeEntry.create("a/b", b"2")],
    ),
    "folder-to-file": ({"a/b": (b"1", REGULAR)}, [ChangeEntry.rename("a/b", "a")]),
}


def replayed(tree, entries):
    """Do to a tree what entries say: the plain meaning that the diff must have."""
    tree = dict(tree)
    for entry in entries:
        data, mode = tree.pop(entry.old_path or entry.path, (b"", None))
        if entry.kind != "delete":
            after = data if entry.after is None else entry.after.data
            tree[entry.path] = (after, entry.mode_after or mode)
    return tree


@pytest.mark.parametrize(("before", "entries"), TREES.values(), ids=TREES)
def test_git_apply_gives_exactly_the_tree_after(repository, before, entries):
    assert applied(repository, before, entries) == replayed(before, entries)


def test_nothing_changed_gives_an_empty_diff():
    assert not unified_diff(net_changes([]))
    kept = [ChangeEntry.modify("a", b"1", b"2"), ChangeEntry.modify("a", b"2", b"1")]
    assert not unified_diff(net_changes(kept))


def test_a_diff_reads_as_git_writes_it():
    entries = [ChangeEntry.rename("src/a b.py", "src/c.py", "1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6")]
    assert unified_diff(net_changes(entries)) == (
        "diff --git a/src/a b.py b/src/c.py\n"
        "rename from src/a b.py\n"
        "rename to src/c.py\n"
        "index 8a1218a1024a212bb3db30becd860315f9f3ac52"
        "..cf0389a5afee198b08a0a0a4fd6cb9fdf5d57d12\n"
        "--- a/src/a b.py\t\n"
        "+++ b/src/c.py\n"
        "@@ -3,3 +3,4 @@\n"
        " 3\n"
        " 4\n"
        " 5\n"
        "+6\n"
        "\\ No newline at end of file\n"
    )


def test_changes_far_apart_stand_in_hunks_of_their_own():
    after = ALPHABET.replace(b"\n10\n", b"\nten\n").replace(b"\n90\n", b"\nninety\n")
    text = unified_diff(net_changes([ChangeEntry.modify("a", ALPHABET, after)]))
    assert [line for line in text.split("\n") if line.startswith("@@")] == [
        "@@ -8,7 +8,7 @@",
        "@@ -88,7 +88,7 @@",
    ]


def test_too_many_lines_to_match_become_one_block_between_the_shared_ends(repository, monkeypatch):
    monkeypatch.setattr(diff, "MATCHED_LINES_MAX", 10)
    after = ALPHABET.replace(b"\n10\n", b"\nten\n").replace(b"\n30\n", b"\nthirty\n")
    text = unified_diff(net_changes([ChangeEntry.modify("a", ALPHABET, after)]))
    assert text.count("@@ -8,27 +8,27 @@") == 1
    entry = ChangeEntry.modify("f", ALPHABET, after)
    assert applied(repository, tree_of("f", ALPHABET), [entry]) == tree_of("f", after)


PATHS = ["a", "a/b", "a/b/c", "d e", 'q"\\'[:2], "ü", "\udcff", "t\t", "z/n\n"]
LINES = st.sampled_from([b"1\n", b"2\n", b"3\r\n", b"\n", b"\xe9\n", b"\0\n", b"end"])
DATA = st.lists(LINES, max_size=12).map(b"".join)


@st.composite
def histories(draw):
    """A tree, and entries that are all true of it: each tells what it finds and what it leaves."""
    tree = {}
    for path in draw(st.lists(st.sampled_from(PATHS), unique=True)):
        if is_free(tree, path):
            tree[path] = draw_file(draw)
    first, entries = dict(tree), []
    for _ in range(draw(st.integers(0, 12))):
        entry = draw_entry(draw, tree)
        if entry is not None:
            entries.append(entry)
            tree = replayed(tree, [entry])
    return first, entries, tree


def is_free(tree, path):
    return not any(
        f"{path}/".startswith(f"{known}/") or known.startswith(f"{path}/") for known in tree
    )


def draw_file(draw):
    mode = draw(st.sampled_from([REGULAR, EXECUTABLE, SYMLINK]))
    return (draw(st.sampled_from([b"x", b"y/z"])) if mode is SYMLINK else draw(DATA), mode)


def draw_entry(draw, tree):
    kind = draw(st.sampled_from(["create", "modify", "delete", "rename", "mode"]))
    path = draw(st.sampled_from(PATHS if kind == "create" or not tree else sorted(tree)))
    if kind == "create" or not tree:
        data, mode = draw_file(draw)
        return ChangeEntry.create(path, data, mode) if is_free(tree, path) else None
    data, mode = tree[path]
    if kind == "delete":
        return ChangeEntry.delete(path, data, mode)
    if mode is SYMLINK:
        return None  # `git apply` does not see that a renamed link frees its name for a folder
    if kind == "rename":
        new = draw(st.sampled_from(PATHS))
        known = draw(st.sampled_from([None, data]))
        rest = {key: value for key, value in tree.items() if key != path}
        return ChangeEntry.rename(path, new, known) if new != path and is_free(rest, new) else None
    if kind == "mode":
        return ChangeEntry.change_mode(path, mode, EXECUTABLE if mode is REGULAR else REGULAR)
    after = draw(DATA)
    return ChangeEntry.modify(path, data, after) if after != data else None


@given(history=histories())
def test_any_history_of_true_entries_applies_to_exactly_its_last_tree(repository, history):
    first, entries, last = history
    assert applied(repository, first, entries) == last
