"""Versions of a tree: what is in them is what was handed in, and nothing is ever taken away."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.repository import Blob, GitRepository, TreeChange, Write
from cleveragents.testing import run_together
from unit.infrastructure.git.user_trees import contents, git, put

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000

STRANGE = [
    "plain",
    "with space",
    "-dash",
    "--all",
    ":colon",
    ":(top)magic",
    "quote'\"",
    "back\\slash",
    "tab\there",
    "line\nbreak",
    "star*[a]?",
    "!bang",
    "#hash",
    "trailing ",
    "~tilde",
    "ünï",
    os.fsdecode(b"latin-\xe9"),
    "deep/-er/:in/x",
]


def checked_out(repository, commit, folder):
    folder.mkdir()
    repository.checkout(commit, folder)
    return contents(folder)


def test_every_name_survives_commit_listing_diff_and_checkout(repository, tmp_path):
    start = repository.snapshot()
    writes = {name: Write(FILE, name.encode("utf-8", "surrogateescape")) for name in STRANGE}
    made = repository.commit(start, writes)
    assert set(repository.files(made)) == set(STRANGE)
    assert set(repository.files(made, STRANGE)) == set(STRANGE)
    for name in STRANGE:
        assert set(repository.files(made, [name])) == {name}
    assert {change.path for change in repository.changes(start, made)} == set(STRANGE)
    shown = checked_out(repository, made, tmp_path / "out")
    assert shown == {name: ("-", writes[name].data) for name in STRANGE}
    gone = repository.commit(made, dict.fromkeys(STRANGE))
    assert repository.tree_of(gone) == repository.tree_of(start)


def test_files_of_no_paths_are_none_and_of_very_many_are_found(repository):
    names = [f"folder/{n:05}-{'x' * 100}" for n in range(1_500)]
    made = repository.commit(repository.snapshot(), {name: Write(FILE, b"1") for name in names})
    assert repository.files(made, []) == {}
    assert set(repository.files(made, [*names, "absent"])) == set(names)
    assert repository.files(made, ["folder"]) == {}


def test_modes_links_and_binary_bytes_come_back_as_they_were(repository, tmp_path):
    made = repository.commit(
        repository.snapshot(),
        {
            "program": Write(PROGRAM, b"#!/bin/sh\n"),
            "link": Write(LINK, b"program"),
            "binary": Write(FILE, bytes(range(256))),
            "empty": Write(FILE),
        },
    )
    assert checked_out(repository, made, tmp_path / "out") == {
        "program": ("x", b"#!/bin/sh\n"),
        "link": ("link", b"program"),
        "binary": ("-", bytes(range(256))),
        "empty": ("-", b""),
    }


def test_a_file_makes_room_for_a_folder_and_back(repository):
    one = repository.commit(repository.snapshot(), {"a": Write(FILE, b"1")})
    two = repository.commit(one, {"a": None, "a/b": Write(FILE, b"2")})
    assert set(repository.files(two)) == {"a/b"}
    three = repository.commit(two, {"a": Write(FILE, b"1"), "a/b": None})
    assert repository.tree_of(three) == repository.tree_of(one)


def test_a_commit_takes_away_what_was_not_there_without_complaint(repository):
    start = repository.snapshot()
    gone = repository.commit(start, {"absent": None})
    assert repository.tree_of(gone) == repository.tree_of(start)


@pytest.mark.parametrize("name", ["", "<x>\n\0", "two words", "ä\udce9"])
def test_any_name_may_be_that_of_the_author(repository, name):
    assert repository.commit(repository.snapshot(), {"a": Write(FILE)}, by=name)


def test_a_blob_that_is_kept_can_be_written_by_its_id(repository):
    oid = repository.keep(b"kept\r\n")
    made = repository.commit(repository.snapshot(), {"a": Write(FILE, oid=oid)})
    assert repository.files(made) == {"a": Blob(FILE, oid)}
    assert list(repository.read([oid, oid])) == [b"kept\r\n"] * 2


def test_changes_tell_renames_modes_and_types(repository):
    text = b"".join(b"line %d\n" % n for n in range(20))
    old = repository.commit(
        repository.snapshot(),
        {"moved": Write(FILE, text), "mode": Write(FILE, b"m"), "type": Write(FILE, b"t")},
    )
    new = repository.commit(
        old,
        {
            "moved": None,
            "there": Write(FILE, text + b"more\n"),
            "mode": Write(PROGRAM, b"m"),
            "type": Write(LINK, b"t"),
        },
    )
    found = {change.path: change for change in repository.changes(old, new, renames=True)}
    assert set(found) == {"there", "mode", "type"}
    assert found["there"].old_path == "moved"
    assert found["mode"] == TreeChange(
        "mode", Blob(FILE, oid := repository.keep(b"m")), Blob(PROGRAM, oid)
    )
    assert found["type"].new.mode == LINK
    plain = {change.path: change for change in repository.changes(old, new)}
    assert (plain["moved"].new, plain["there"].old) == (None, None)
    assert repository.changes(old, old) == ()


def test_reading_what_is_missing_is_refused(repository):
    with pytest.raises(SandboxError, match="is missing") as caught:
        list(repository.read(["1" * 40]))
    assert caught.value.code == "CA5101"


def test_a_reader_may_stop_early(repository):
    oids = [repository.keep(bytes(100_000) + b"%d" % n) for n in range(3)]
    contents = repository.read(oids)
    assert next(contents)[-1:] == b"0"
    contents.close()


def test_what_git_refuses_is_an_error_with_its_reason(repository):
    with pytest.raises(SandboxError, match=r"`git rev-parse` refused: fatal: .*[^.]$") as caught:
        repository.tree_of("nothing")
    assert caught.value.code == "CA5101"
    assert "fatal" in caught.value.facts["git"]


def test_commits_leave_no_names_behind(repository):
    repository.commit(repository.snapshot(), {"a": Write(FILE)})
    assert repository.git("for-each-ref") == b""
    assert sorted(one.name for one in repository.folder.iterdir()) == [
        "HEAD",
        "config",
        "info",
        "objects",
        "refs",
        "snapshot.index",
    ]


def test_the_same_tree_with_the_same_parents_is_the_same_commit(repository, root):
    put(root, "a", "1")
    assert repository.snapshot() == repository.snapshot()
    assert GitRepository(root, root.parent / "elsewhere").snapshot() == repository.snapshot()


def test_a_parent_makes_the_snapshot_a_successor(repository, root):
    first = repository.snapshot()
    put(root, "a", "1")
    second = repository.snapshot(first)
    assert repository.git("merge-base", first, second).decode().strip() == first


def test_relative_paths_name_the_same_folders_from_anywhere(root, monkeypatch):
    put(root, "a", "1")
    monkeypatch.chdir(root.parent)
    repository = GitRepository(Path("tree"), Path("tree/.cleveragents"))
    commit = repository.snapshot()
    monkeypatch.chdir("/")
    assert set(repository.files(commit)) == {"a"}


def test_sixteen_threads_make_one_repository_and_sixteen_equal_snapshots(root):
    for n in range(50):
        put(root, f"d{n % 5}/f{n}", f"{n}\n")

    def work():
        return GitRepository(root, root / ".cleveragents").snapshot()

    assert len(set(run_together([work] * 16))) == 1
    left = [one.name for one in (root / ".cleveragents").iterdir()]
    assert left == ["git"]


def test_threads_commit_at_once_and_lose_nothing(repository):
    start = repository.snapshot()

    def work(n):
        return repository.commit(start, {f"f{n}": Write(FILE, b"%d" % n)})

    made = run_together([partial(work, n) for n in range(16)])
    assert [set(repository.files(one)) for one in made] == [{f"f{n}"} for n in range(16)]


def test_a_folder_without_a_repository_in_it_is_filled(root):
    home = root / ".cleveragents"
    (home / "git").mkdir(parents=True)
    repository = GitRepository(root, home)
    assert repository.files(repository.snapshot()) == {}
    shutil.rmtree(home)


def test_a_checkout_does_not_differ_from_its_commit(repository, root, tmp_path):
    put(root, "a/b", "1\r\n")
    put(root, "x.sh", "#!", mode=0o755)
    (root / "l").symlink_to("a/b")
    commit = repository.snapshot()
    checked_out(repository, commit, tmp_path / "out")
    assert repository.differing(tmp_path / "out", commit) == ()


def test_what_differs_from_a_commit_is_told_and_what_is_ignored_is_not(repository, root, tmp_path):
    for name in ("edited", "gone", "mode", "kept", "x.log"):
        put(root, name, "1")
    commit = repository.snapshot()
    put(root, ".gitignore", "*.log\n")
    out = tmp_path / "out"
    checked_out(repository, commit, out)
    put(out, ".gitignore", "*.log\n")
    put(out, "edited", "2")
    put(out, "mode", "1", mode=0o755)
    put(out, "x.log", "2")
    put(out, "y.log", "1")
    put(out, "git~1", "1")
    (out / "gone").unlink()
    git(tmp_path, "init", "--quiet", "out/nested")
    put(out, "nested/f", "1")
    told = repository.differing(out, commit)
    assert told == (".gitignore", "edited", "git~1", "gone", "mode", "nested/", "x.log")


@pytest.fixture
def armed(tmp_path):
    """Return a program that a stranger would like to see run, and where it would tell."""
    told = tmp_path / "told"
    put(tmp_path, "armed", f"#!/bin/sh\ntouch '{told}'\n", mode=0o755)
    return tmp_path / "armed", told


def by_config(folder, armed):
    put(folder, "config", (folder / "config").read_bytes() + b"[core]\nfsmonitor = %s\n" % armed)


def by_include(folder, armed):
    put(folder, "more", b"[core]\nfsmonitor = %s\n" % armed)
    put(folder, "config", (folder / "config").read_bytes() + b"[include]\npath = more\n")


def by_another_folder(folder, armed):
    shutil.copytree(folder, folder.parent / "evil")
    by_config(folder.parent / "evil", armed)
    put(folder, "commondir", "../evil\n")


def by_hook(folder, armed):
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        put(folder, f"hooks/{name}", b'#!/bin/sh\nexec "%s"\n' % armed, mode=0o755)


def by_filter(folder, armed):
    settings = b'[filter "evil"]\nclean = %s\nsmudge = %s\n' % (armed, armed)
    put(folder, "config", (folder / "config").read_bytes() + settings)
    put(folder, "info/attributes", "* filter=evil\n")


@pytest.mark.parametrize("arm", [by_config, by_include, by_another_folder, by_hook, by_filter])
def test_nothing_runs_that_a_stranger_left_in_our_folder(root, tmp_path, armed, arm):
    put(root, "a", "1")
    home = root / ".cleveragents"
    arm(GitRepository(root, home).folder, os.fsencode(armed[0]))
    repository = GitRepository(root, home)
    commit = repository.commit(repository.snapshot(), {"b": Write(FILE, b"2")})
    assert checked_out(repository, commit, tmp_path / "out") == {"a": ("-", b"1"), "b": ("-", b"2")}
    repository.differing(tmp_path / "out", commit)
    assert not armed[1].exists()


def test_settings_that_others_changed_are_ours_again(repository, root):
    names = ("config", "info/attributes")
    ours = {name: (repository.folder / name).read_bytes() for name in names}
    for name in names:
        (repository.folder / name).write_bytes(b"")
    GitRepository(root, repository.home)
    assert {name: (repository.folder / name).read_bytes() for name in names} == ours
    assert sorted(one.name for one in (repository.folder / "info").iterdir()) == [
        "attributes",
        "exclude",
    ]


def test_no_collection_of_git_takes_what_no_branch_names(repository):
    kept = repository.keep(b"kept")
    os.utime(repository.folder / "objects" / kept[:2] / kept[2:], (1, 1))
    repository.git("gc", "--quiet")
    assert list(repository.read([kept])) == [b"kept"]


def test_the_folder_of_ours_is_closed_to_others(repository):
    assert repository.home.stat().st_mode & 0o777 == 0o700
