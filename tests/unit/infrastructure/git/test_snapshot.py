"""Snapshots of a user's tree: all of it, byte for byte, and the user's repository untouched."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.repository import GitRepository
from unit.infrastructure.git.test_repository import STRANGE
from unit.infrastructure.git.user_trees import contents, fingerprint, git, put


def shown(repository, folder="out"):
    """Return what a snapshot holds, by writing it out again."""
    out = repository.home.parent.parent / folder
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    commit = repository.snapshot()
    repository.checkout(commit, out)
    found = contents(out)
    assert set(repository.files(commit)) == set(found), "no submodule, nothing that is no file"
    return found


@pytest.fixture
def versioned(root):
    git(root, "init", "--quiet")
    put(root, "kept", "1\n")
    put(root, "changed", "1\n")
    put(root, "deleted", "1\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "first")
    return root


def test_a_dirty_tree_is_taken_as_it_stands(repository, versioned):
    put(versioned, "changed", "2\n")
    put(versioned, "untracked", "3\n")
    put(versioned, "staged", "4\n")
    put(versioned, "staged-and-deleted", "5\n")
    git(versioned, "add", "staged", "staged-and-deleted")
    (versioned / "deleted").unlink()
    (versioned / "staged-and-deleted").unlink()
    assert shown(repository) == {
        "kept": ("-", b"1\n"),
        "changed": ("-", b"2\n"),
        "untracked": ("-", b"3\n"),
        "staged": ("-", b"4\n"),
    }


def test_the_users_repository_is_not_touched_by_anything(repository, versioned, tmp_path):
    put(versioned, "changed", "2\n")
    os.utime(versioned / "kept", (1, 1))  # stale in the user's index, which we must not refresh
    put(versioned, "ignored-but-kept", "1")
    git(versioned, "add", "ignored-but-kept")
    put(versioned, ".gitignore", "ignored-*\n")
    before = fingerprint(versioned / ".git")
    first = repository.snapshot()
    (tmp_path / "out").mkdir()
    repository.checkout(first, tmp_path / "out")
    put(tmp_path / "out", "changed", "3\n")
    repository.differing(tmp_path / "out", first)
    repository.empty_folders()
    repository.ignored(versioned, ["kept"])
    repository.changes(first, repository.snapshot(first), renames=True)
    assert fingerprint(versioned / ".git") == before


def test_every_list_of_the_user_ignores(repository, versioned, home):
    put(home, "global", "by-global\n")
    git(versioned, "config", "--global", "core.excludesFile", "~/global")
    put(versioned, ".git/info/exclude", "by-exclude\n")
    put(versioned, ".gitignore", "by-tree\n")
    put(versioned, "sub/.gitignore", "by-folder\n")
    for name in ("by-global", "by-exclude", "by-tree", "by-folder", "sub/by-folder", "sub/by-tree"):
        put(versioned, name)
    assert set(shown(repository)) == {
        ".gitignore",
        "sub/.gitignore",
        "by-folder",
        "kept",
        "changed",
        "deleted",
    }


def test_the_usual_global_list_is_found_without_a_setting(repository, versioned, home, monkeypatch):
    put(home, ".config/git/ignore", "usual\n")
    put(versioned, "usual")
    assert "usual" not in shown(repository)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "other"))
    put(home, "other/git/ignore", "kept\n")
    assert {"usual", "kept"} <= set(shown(repository)), "what is tracked is kept"


def test_a_named_global_list_takes_the_place_of_the_usual_one(repository, versioned, home):
    put(home, ".config/git/ignore", "usual\n")
    git(versioned, "config", "--global", "core.excludesFile", "")
    put(versioned, "usual")
    assert "usual" in shown(repository)


def test_the_list_of_the_repository_is_stronger_than_the_global_one(repository, versioned, home):
    put(home, ".config/git/ignore", "*.log\n")
    put(versioned, ".git/info/exclude", "!wanted.log\n")
    put(versioned, "wanted.log")
    put(versioned, "other.log")
    found = set(shown(repository))
    assert "wanted.log" in found
    assert "other.log" not in found


def test_what_is_tracked_although_ignored_is_part_of_the_tree(repository, versioned):
    put(versioned, "build/kept", "1")
    put(versioned, "build/new", "1")
    git(versioned, "add", "build/kept")
    put(versioned, ".gitignore", "build/\n")
    found = shown(repository)
    assert found["build/kept"] == ("-", b"1")
    assert "build/new" not in found
    put(versioned, "build/kept", "2")
    assert shown(repository)["build/kept"] == ("-", b"2")


def test_what_became_ignored_or_untracked_leaves_the_tree(repository, versioned):
    """The index of the last snapshot still knows it; a snapshot must not depend on that."""
    put(versioned, "secret", "1")
    put(versioned, "modules/x", "1")
    git(versioned, "add", "secret")
    assert {"secret", "modules/x"} <= set(shown(repository))
    put(versioned, ".gitignore", "secret\nmodules/\n")
    assert "secret" in shown(repository)
    git(versioned, "rm", "--quiet", "--cached", "secret")
    assert set(shown(repository)) == {"kept", "changed", "deleted", ".gitignore"}


def test_what_a_parent_has_stays_although_it_became_ignored(repository, versioned):
    """An apply may make a file ignored; it could not be taken back if it seemed deleted."""
    put(versioned, "secret", "1")
    put(versioned, "build/gone", "1")
    parent = repository.snapshot()
    put(versioned, ".gitignore", "secret\nbuild/\nother\n")
    put(versioned, "other", "1")
    # Whoever looks without the parent does not see it, and forgets it.
    assert "secret" not in repository.files(repository.snapshot())
    put(versioned, "secret", "2")
    (versioned / "build/gone").unlink()
    changes = repository.changes(parent, repository.snapshot(parent))
    assert [change.path for change in changes] == [".gitignore", "build/gone", "secret"]
    assert changes[-1].new is not None
    assert "secret" not in repository.files(repository.snapshot())


@pytest.mark.parametrize("turned_into", ["nothing", "folder", "link-above", "pipe"])
def test_a_tracked_and_ignored_file_may_have_become_anything(repository, versioned, turned_into):
    put(versioned, "build/kept", "1")
    git(versioned, "add", "build/kept")
    put(versioned, ".gitignore", "build\n")
    shown(repository)
    shutil.rmtree(versioned / "build")
    if turned_into == "folder":
        put(versioned, "build/kept/file", "1")
    elif turned_into == "link-above":
        put(versioned, "other/kept", "1")
        (versioned / "build").symlink_to("other")
    elif turned_into == "pipe":
        (versioned / "build").mkdir()
        os.mkfifo(versioned / "build" / "kept")
    assert not any(name.startswith("build") for name in shown(repository))


def test_our_own_folder_is_never_part_of_it_whatever_the_lists_say(repository, versioned):
    put(versioned, ".gitignore", "*\n!*/\n!*.py\n!.gitignore\n!.cleveragents/**\n")
    put(versioned, ".cleveragents/sandboxes/x.py", "1")
    put(versioned, "a.py", "1")
    (versioned / "void").mkdir()
    assert set(shown(repository)) == {".gitignore", "a.py", "kept", "changed", "deleted"}
    assert repository.ignored(versioned, ["a.py", ".cleveragents/sandboxes/x.py"]) == {
        ".cleveragents/sandboxes/x.py"
    }
    assert repository.empty_folders() == ("void",)


def test_submodules_and_nested_repositories_are_left_alone(repository, versioned, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    put(other, "f", "1")
    git(other, "add", "f")
    git(other, "commit", "--quiet", "-m", "x")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")
    git(versioned, *add)
    shutil.copytree(other, versioned / "deep" / "nested")
    git(versioned, "init", "--quiet", "unborn")
    put(versioned, "unborn/f", "1")
    put(versioned, "deep/beside", "1")
    found = set(shown(repository))
    assert found == {".gitmodules", "deep/beside", "kept", "changed", "deleted"}
    assert repository.empty_folders() == ()
    assert contents(versioned / "deep" / "nested") == {"f": ("-", b"1")}


def test_a_file_that_became_a_repository_without_commits_is_gone(repository, versioned):
    shown(repository)
    (versioned / "kept").unlink()
    git(versioned, "init", "--quiet", "kept")
    put(versioned, "kept/f", "1")
    assert set(shown(repository)) == {"changed", "deleted"}


def test_pipes_and_sockets_neither_hang_nor_break_a_snapshot(repository, versioned, monkeypatch):
    shown(repository)
    (versioned / "kept").unlink()
    os.mkfifo(versioned / "kept")
    os.mkfifo(versioned / "pipe")
    monkeypatch.chdir(versioned)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert set(shown(repository)) == {"changed", "deleted"}


BYTES = {
    "dos.txt": b"one\r\ntwo\r\n",
    "mixed.txt": b"one\r\ntwo\n",
    "ident.c": b"/* $Id$ */\n",
    "wide.utf16": "\ufefftext\r\n".encode("utf-16-le"),
    "filtered.bin": b"secret\n",
    "binary.txt": bytes(range(256)),
    "no-end.txt": b"x",
}
ATTRIBUTES = b"""\
* text=auto eol=crlf
*.c ident
*.utf16 working-tree-encoding=UTF-16LE
*.bin filter=shout
[attr]loud text eol=lf
"""


def test_no_attribute_and_no_setting_changes_a_byte(repository, versioned, home):
    git(versioned, "config", "--global", "core.autocrlf", "true")
    git(versioned, "config", "filter.shout.clean", "tr a-z A-Z")
    git(versioned, "config", "filter.shout.smudge", "false")
    git(versioned, "config", "filter.shout.required", "true")
    put(home, ".config/git/attributes", "*.txt eol=lf\n")
    put(versioned, ".gitattributes", ATTRIBUTES)
    put(versioned, "sub/.gitattributes", ATTRIBUTES)
    for name, data in BYTES.items():
        put(versioned, name, data)
        put(versioned, f"sub/{name}", data)
    assert shown(repository) == contents(versioned)


def test_every_name_link_and_mode_is_kept(repository, versioned):
    for name in STRANGE:
        put(versioned, name, name.encode("utf-8", "surrogateescape"))
    put(versioned, "program", "#!/bin/sh\n", mode=0o755)
    (versioned / "link").symlink_to("nowhere")
    (versioned / os.fsdecode(b"l-\xff")).symlink_to("deep")
    put(versioned, "empty")
    found = shown(repository)
    assert found == contents(versioned)
    assert found["program"][0] == "x"


def test_a_folder_that_is_no_repository_has_snapshots_too(repository, root):
    put(root, "a/b", "1")
    put(root, "ignored", "1")
    put(root, ".gitignore", "ignored\n")
    assert set(shown(repository)) == {"a/b", ".gitignore"}
    assert set(shown(GitRepository(root, root.parent / "away"))) == {"a/b", ".gitignore"}


def test_empty_folders_are_told_beside_the_snapshot(repository, versioned):
    (versioned / "a" / "b").mkdir(parents=True)
    (versioned / os.fsdecode(b"l-\xe9")).mkdir()
    repository.snapshot()
    assert set(repository.empty_folders()) == {"a", os.fsdecode(b"l-\xe9")}


def test_variables_of_git_do_not_lead_astray(versioned, tmp_path, monkeypatch):
    """As they are set in a hook of another repository."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    put(versioned, ".git/info/exclude", "ignored\n")
    put(versioned, "ignored")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    found = shown(GitRepository(versioned, versioned / ".cleveragents"))
    assert set(found) == {"kept", "changed", "deleted"}
    assert not (tmp_path / "objects").exists()
    assert not (tmp_path / "index").exists()


def test_a_root_inside_a_repository_obeys_the_lists_around_it(versioned):
    """As in a repository of many projects, whose top says to ignore `node_modules`."""
    put(versioned, ".git/info/exclude", "/services/api/by-exclude\n")
    put(
        versioned,
        ".gitignore",
        "\ufeffmodules/\r\n# comment\n\n*.log  \n!wanted.log\n/services/*/anchored\n"
        "**/api/starred\nservices/**/deep.txt\n/services/web/not-here\n/services/api\\ x\n"
        "/anchored-at-top\nservices/api/gone/\n!services/api/back\n",
    )
    put(versioned, "services/.gitignore", "/api/lower\nback\n")
    root = versioned / "services" / "api"
    wanted = {"a", "wanted.log", "sub/anchored", "not-here", "anchored-at-top", "gone"}
    unwanted = {
        "modules/x",
        "sub/modules/y",
        "x.log",
        "anchored",
        "starred",
        "sub/deep.txt",
        "deep.txt",
        "by-exclude",
        "lower",
        "back",
    }
    for name in wanted | unwanted:
        put(root, name, "1")
    listed = git(root, "ls-files", "--others", "--exclude-standard").decode().split()
    assert set(listed) == wanted, "the user's git says the same"
    repository = GitRepository(root, root / ".cleveragents")
    assert set(shown(repository, "../../out")) == wanted
    assert repository.ignored(root, sorted(wanted | unwanted)) == unwanted


def test_a_root_that_is_ignored_itself_is_still_a_tree(versioned):
    put(versioned, ".gitignore", "/scratch/\n/scratch/x/y/z\n")
    put(versioned, "scratch/a", "1")
    repository = GitRepository(versioned / "scratch", versioned / "scratch" / ".cleveragents")
    assert set(shown(repository, "../out")) == {"a"}


def test_a_repository_that_cannot_be_read_is_not_taken_for_none(repository, versioned):
    put(versioned, ".git/index", "garbage")
    with pytest.raises(SandboxError, match="ls-files") as caught:
        repository.snapshot()
    assert caught.value.code == "CA5101"


def test_a_bare_repository_and_a_broken_link_to_one_count_as_none(tmp_path):
    for name, setting_up in (
        ("bare", ("init", "--quiet", "--bare", ".")),
        ("broken", ("version",)),
    ):
        root = tmp_path / name
        root.mkdir()
        git(root, *setting_up)
        put(root, "a", "1")
        if name == "broken":
            put(root, ".git", f"gitdir: {tmp_path}/nowhere\n")
        repository = GitRepository(root, tmp_path / f"{name}-home")
        assert "a" in repository.files(repository.snapshot())


def test_a_name_that_git_refuses_is_an_error_and_never_left_out(repository, root):
    put(root, "git~1", "1")
    with pytest.raises(SandboxError, match="git~1") as caught:
        repository.snapshot()
    assert caught.value.code == "CA5101"


SNAPSHOT = """
import sys
from pathlib import Path
from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.repository import GitRepository
root = Path(sys.argv[1])
try:
    print(GitRepository(root, root / ".cleveragents").snapshot())
except SandboxError as error:
    print(error.code, error.message, error.hint)
"""


@pytest.mark.parametrize("what", ["file", "folder", "list"])
def test_what_cannot_be_read_is_an_error_and_never_left_out(root, what):
    """Root may read all, so it looks from a namespace in which others' files are strangers'."""
    put(root, "a", "1")
    stranger = {"file": root / "closed", "folder": root / "closed", "list": root / ".gitignore"}[
        what
    ]
    if what == "folder":
        put(stranger, "inside", "1")
    else:
        put(root, stranger.name, "1")
    stranger.chmod(0)
    enter = []
    if os.geteuid() == 0:
        os.chown(stranger, 12345, 12345)
        enter = ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
            pytest.skip("no user namespaces here")
    ran = subprocess.run(
        [*enter, sys.executable, "-c", SNAPSHOT, str(root)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert ran.stdout.startswith(f"CA5101 {stranger.name!r} may not be read"), ran
    way_out = "sudo chown -R 0" if enter else "chmod -R u+rX"
    assert f"Run `{way_out} {stranger}`" in ran.stdout
    stranger.chmod(0o700)


def test_no_program_that_the_users_repository_names_is_run(versioned, tmp_path):
    told = tmp_path / "told"
    put(tmp_path, "armed", f"#!/bin/sh\ntouch '{told}'\n", mode=0o755)
    git(versioned, "config", "core.fsmonitor", str(tmp_path / "armed"))
    git(versioned, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to("armed")
    put(versioned, ".gitignore", "kept\n")
    shown(GitRepository(versioned, versioned / ".cleveragents"))
    assert not told.exists()
    git(versioned, "status")
    assert told.exists()
