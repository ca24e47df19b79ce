from __future__ import annotations

import os
import time

import pytest

from cleveragents.infrastructure.code_index import git_log
from cleveragents.infrastructure.code_index import past as past_module
from cleveragents.infrastructure.code_index.git_log import GitSilent, commits_of, head_of, hint_of
from cleveragents.infrastructure.code_index.history import FILES_MAX, Commit
from cleveragents.infrastructure.code_index.index import IndexLimits, StoredCodeIndex
from cleveragents.infrastructure.code_index.past import NOTHING_KNOWN, SILENCE_S, PastReader
from cleveragents.infrastructure.code_index.storage import Storage
from indexkit import LATER, PATIENT, commit, git, view_of, write

START = 1_700_000_000
DAY = 86_400


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    git(root, "init", "-q")
    return root


@pytest.fixture
def index(tmp_path):
    with StoredCodeIndex(tmp_path / "cache", limits=PATIENT, clocks=LATER) as index:
        yield index


def test_messages_lead_to_the_files_they_changed(index, root):
    commit(root, "Add the parser", {"parser.py": "a", "lexer.py": "b"}, at=START)
    commit(root, "Fix lexing\n\nof strings", {"lexer.py": "c"}, at=START + DAY)
    history = view_of(index, root).history
    assert history.commits == 2
    (hit,) = history.commits_like({"parser": 1.0}, 5)
    assert (hit.title, hit.files, hit.age_days) == (
        "Add the parser",
        ("lexer.py", "parser.py"),
        1.0,
    )
    assert history.commits_like({"str": 1.0, "string": 1.0}, 5)[0].title == "Fix lexing"
    assert history.commits_like({"parser": 1.0}, 0) == []
    assert history.changed_with("parser.py") == {"lexer.py": 1.0}
    assert (history.changes("lexer.py"), history.last_changed_days("lexer.py")) == (2, 0.0)
    assert (history.changes("none"), history.last_changed_days("none")) == (0, None)


def test_files_are_named_as_they_are_now(index, root):
    commit(root, "Add it", {"old.py": "a\n" * 30, 'odd "name"\n.py': "x"}, at=START)
    git(root, "mv", "old.py", "new.py")
    commit(root, "Rename it", {}, at=START + DAY)
    history = view_of(index, root).history
    assert history.commits_like({"add": 1.0}, 1)[0].files == ("new.py", 'odd "name"\n.py')
    assert history.changes("new.py") == 2


def test_only_ancestors_count_and_a_new_head_is_seen_at_once(index, root):
    first = commit(root, "First", {"a.py": "1"}, at=START)
    commit(root, "Second", {"a.py": "2"}, at=START + 1)
    assert view_of(index, root).history.commits == 2
    git(root, "checkout", "-q", first)
    assert view_of(index, root).history.commits == 1
    git(root, "checkout", "-q", "main")
    commit(root, "Third", {"a.py": "3"}, at=START + 2)
    assert [hit.title for hit in view_of(index, root).history.commits_like({"third": 1.0}, 1)] == [
        "Third"
    ]


def test_packed_references_are_seen(index, root):
    commit(root, "First", {"a.py": "1"}, at=START)
    git(root, "pack-refs", "--all")
    assert view_of(index, root).history.commits == 1
    commit(root, "Second", {"a.py": "2"}, at=START + 1)
    git(root, "pack-refs", "--all")
    assert view_of(index, root).history.commits == 2


def test_unchanged_head_costs_no_process(index, root, monkeypatch):
    commit(root, "First", {"a.py": "1"}, at=START)
    view_of(index, root)
    monkeypatch.setattr(git_log.subprocess, "run", None)
    assert view_of(index, root).history.commits == 1


def test_references_in_one_table_are_asked_of_git(index, root, monkeypatch):
    commit(root, "First", {"a.py": "1"}, at=START)
    monkeypatch.setattr(past_module, "hint_of", lambda _: None)
    assert view_of(index, root).history is view_of(index, root).history
    (root / ".git/reftable").mkdir()
    assert hint_of(str(root)) is None


def test_commits_are_read_once(index, root, tmp_path, monkeypatch):
    commit(root, "First", {"a.py": "1"}, at=START)
    view_of(index, root)
    monkeypatch.setattr(past_module, "commits_of", None)
    with StoredCodeIndex(tmp_path / "cache", limits=PATIENT, clocks=LATER) as other:
        assert view_of(other, root).history.commits == 1


def test_large_commits_and_merges_are_left_out(index, root):
    commit(root, "Huge", {f"f{n}.py": "x" for n in range(FILES_MAX + 1)}, at=START)
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "Side", {"s.py": "1"}, at=START + 1)
    git(root, "checkout", "-q", "main")
    commit(root, "Main", {"m.py": "1"}, at=START + 2)
    git(root, "merge", "-q", "side", "-m", "Merge", at=START + 3)
    history = view_of(index, root).history
    assert history.commits == 2
    assert history.commits_like({"merge": 1.0, "huge": 1.0}, 5) == []


def test_folder_of_a_repository_has_its_own_part(index, root):
    commit(root, "Both", {"in/a.py": "1", "out/b.py": "1"}, at=START)
    commit(root, "Out", {"out/b.py": "2"}, at=START)
    history = view_of(index, root / "in").history
    assert history.commits == 1
    assert history.commits_like({"both": 1.0}, 1)[0].files == ("a.py",)


def test_work_tree_and_shallow_clone_have_history(index, root, tmp_path):
    commit(root, "First", {"a.py": "1"}, at=START)
    commit(root, "Second", {"a.py": "2"}, at=START + 1)
    git(root, "worktree", "add", "-q", str(tmp_path / "work"), "HEAD~1")
    assert view_of(index, tmp_path / "work").history.commits == 1
    git(root, "clone", "-q", "--depth", "1", f"file://{root}", str(tmp_path / "shallow"))
    assert view_of(index, tmp_path / "shallow").history.commits == 1


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.py": ""}, "History is left out: the folder is not in a git repository"),
        ({".git/HEAD": "ref: refs/heads/main", "a.py": ""}, "`git rev-parse` refused"),
    ],
    ids=["no-repository", "broken-repository"],
)
def test_without_a_repository_the_rest_works(index, tmp_path, files, said):
    write(tmp_path / "plain", files)
    view = view_of(index, tmp_path / "plain")
    assert view.paths == ("a.py",)
    assert any(said in note for note in view.notes)


def test_repository_without_commits_has_no_history(index, root):
    write(root, {"a.py": "x"})
    view = view_of(index, root)
    assert view.history.commits == 0
    assert any(
        note.startswith("History is left out: `git rev-parse` refused") for note in view.notes
    )


def test_git_that_is_missing_or_does_not_start_is_told(root, monkeypatch, tmp_path):
    monkeypatch.setattr(git_log.shutil, "which", lambda _: None)
    with pytest.raises(GitSilent, match="the program `git` is not installed"):
        head_of(str(root), 5)
    monkeypatch.setattr(git_log.shutil, "which", lambda _: str(tmp_path / "none"))
    with pytest.raises(GitSilent, match="`git` could not be started"):
        head_of(str(root), 5)


def test_git_that_hangs_is_not_asked_again_for_a_while(root, tmp_path, monkeypatch):
    hanging = tmp_path / "git"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o700)
    commit(root, "First", {"a.py": "1"}, at=START)
    monkeypatch.setattr(git_log.shutil, "which", lambda _: str(hanging))
    monkeypatch.setattr(past_module, "GIT_S_MAX", 0.05)
    now = [0.0]
    reader = PastReader(str(root), Storage(tmp_path / "cache"), lambda: now[0])
    past = reader.refreshed(NOTHING_KNOWN, day=1, later=False)
    assert past.note == "History is left out: `git rev-parse` took longer than 0.05 s"
    write(root, {".git/HEAD": "0" * 40})
    assert reader.refreshed(past, day=1, later=False) is past
    monkeypatch.undo()
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    now[0] = SILENCE_S
    assert reader.refreshed(past, day=1, later=False).history.commits == 1


def test_history_in_portions_is_told_and_finished(root, tmp_path, monkeypatch):
    for number in range(3):
        commit(root, f"Number {number}", {"a.py": str(number)}, at=START + number)
    monkeypatch.setattr(past_module, "COMMITS_AT_ONCE", 2)
    with StoredCodeIndex(tmp_path / "cache", limits=IndexLimits(0.0, 0.0), clocks=LATER) as index:
        view = view_of(index, root)
        assert "History is not read yet; the work goes on in the background" in view.notes
        thread = index._thread
        if thread is not None:
            thread.join(30)
        assert view_of(index, root).history.commits == 3
        commit(root, "Number 3", {"a.py": "3"}, at=START + 4)
        assert view_of(index, root).history.commits == 0  # never that of another commit


def test_unread_history_of_the_same_head_is_used_meanwhile(root, tmp_path, monkeypatch):
    for number in range(3):
        commit(root, f"Number {number}", {"a.py": str(number)}, at=START + number)
    monkeypatch.setattr(past_module, "COMMITS_AT_ONCE", 2)
    reader = PastReader(str(root), Storage(tmp_path / "cache"), time.monotonic)
    part = reader.refreshed(NOTHING_KNOWN, day=1, later=False)
    assert (part.unread, part.history.commits) == (True, 2)
    assert reader.refreshed(part, day=1, later=True) is part
    assert reader.refreshed(part, day=1, later=False).history.commits == 3


def test_commits_without_old_contents_are_read_without_renames(root, monkeypatch):
    name = commit(root, "First", {"a.py": "1"}, at=START)
    run = git_log._git

    def refusing(folder, arguments, timeout_s, given=b""):
        if "--find-renames" in arguments:
            raise GitSilent("missing contents")
        return run(folder, arguments, timeout_s, given)

    monkeypatch.setattr(git_log, "_git", refusing)
    assert [one.files for one in commits_of(str(root), [name], 5)] == [("a.py",)]


def test_commit_comes_back_as_it_was_packed():
    one = Commit("ab", 1, "tïtle", {1: 2}, ("a", "b\udcff"), (("a", "c"),))
    assert Commit.unpacked(one.packed()) == one


def test_variables_of_another_repository_do_not_lead_astray(index, root, tmp_path, monkeypatch):
    commit(root, "First", {"a.py": "1"}, at=START)
    monkeypatch.setitem(os.environ, "GIT_DIR", str(tmp_path / "elsewhere"))
    assert view_of(index, root).history.commits == 1
