from __future__ import annotations

import pytest

from cleveragents.application.source_tree import FILE_BYTES_MAX
from cleveragents.domain.command import Command
from cleveragents.infrastructure.changes import attempt_changes
from cleveragents.infrastructure.changes.attempt_changes import merged_changes, own_changes
from cleveragents.infrastructure.git.repository import Write
from cleveragents.workspace import Workspace, WorkspaceOptions

FILE, LINK = 0o100644, 0o120000


@pytest.fixture(params=["overlay", "worktree", "copy"])
def workspace(request, tmp_path):
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("*.log\n")
    (root / "src" / "app.py").write_text("app = 1\n")
    (root / "src" / "old.py").write_text("old = 1\n")
    options = WorkspaceOptions(sandbox_kind=request.param, confinement="off")
    with Workspace(root, options=options) as workspace:
        if workspace.sandboxes.available()[request.param] is not None:
            pytest.skip(f"{request.param} is not available here")
        workspace.begin("p")
        yield workspace


def own(workspace, attempt):
    return own_changes(workspace.changes.repository, attempt.sandbox, attempt.files.tree)


def test_untouched_sandbox_differs_in_nothing(workspace):
    with workspace.attempt("p", "n") as attempt:
        assert own(workspace, attempt) == {}


def test_files_are_told_as_they_are_now(workspace):
    with workspace.attempt("p", "n") as attempt:
        attempt.files.write("src/new.py", b"new = 1\n")
        attempt.files.write("src/app.py", b"app = 2\n")
        attempt.files.remove("src/old.py")
        assert own(workspace, attempt) == {
            "src/new.py": b"new = 1\n",
            "src/app.py": b"app = 2\n",
            "src/old.py": None,
        }
        attempt.files.write("src/new.py", b"new = 2\n")
        assert own(workspace, attempt)["src/new.py"] == b"new = 2\n"


def test_what_a_command_wrote_is_told_too(workspace):
    with workspace.attempt("p", "n") as attempt:
        attempt.run_command(Command(("sh", "-c", "echo made > made.txt; rm src/old.py")))
        assert own(workspace, attempt) == {"made.txt": b"made\n", "src/old.py": None}


def test_what_nobody_should_read_is_never_told_with_a_content(workspace):
    with workspace.attempt("p", "n") as attempt:
        attempt.files.write("noise.log", b"ignored\n")
        attempt.files.write("large.txt", b"x" * (FILE_BYTES_MAX + 1))
        attempt.files.write("odd\nname.txt", b"x\n")
        (attempt.sandbox.path / "link.py").symlink_to("/etc/hosts")
        found = own(workspace, attempt)
        assert "odd\nname.txt" not in found
        assert set(found.values()) == {None}
        assert {"large.txt", "link.py"} <= found.keys()


def test_no_more_is_read_than_memory_has_room_for(workspace, monkeypatch):
    monkeypatch.setattr(attempt_changes, "ALL_BYTES_MAX", 12)
    with workspace.attempt("p", "n") as attempt:
        attempt.files.write("a.txt", b"12345678")
        attempt.files.write("b.txt", b"12345678")
        attempt.files.write("c.txt", b"1234")
        assert own(workspace, attempt) == {"a.txt": b"12345678", "b.txt": None, "c.txt": b"1234"}


def test_merged_changes_are_those_between_two_commits(workspace):
    repository = workspace.changes.repository
    base = workspace.changes.trees.tree_of("p").base
    writes = {
        "src/new.py": Write(FILE, b"new\n"),
        "src/old.py": None,
        "link": Write(LINK, b"src"),
        "odd\nname": Write(FILE, b"x"),
    }
    head = repository.commit(base, writes)
    assert merged_changes(repository, base, base) == {}
    assert merged_changes(repository, base, head) == {
        "src/new.py": b"new\n",
        "src/old.py": None,
        "link": None,
    }


def test_folder_in_the_place_of_a_file_hides_it(workspace):
    with workspace.attempt("p", "n") as attempt:
        attempt.files.remove("src/old.py")
        attempt.files.write("src/old.py/inner.py", b"inner\n")
        found = own(workspace, attempt)
        assert found["src/old.py/inner.py"] == b"inner\n"
        assert found.get("src/old.py") is None
