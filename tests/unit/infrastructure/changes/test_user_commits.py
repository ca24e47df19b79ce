from __future__ import annotations

import os
import subprocess

import pytest

from cleveragents.domain.errors import CleverAgentsError
from cleveragents.infrastructure.changes.user_commits import UserCommits
from unit.infrastructure.changes.worlds import GIT, PLAN, file, git, look, text, world


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    """Git of the user: no configuration but the repository's, and an author."""
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def here(tmp_path):
    with world(tmp_path / "tree", repository=True) as opened:
        yield opened


def commit(here, message: str = "Apply\n"):
    """Apply the plan and commit it, as the command does."""
    commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
    commits.check(prospect)
    made = commits.make(prospect, message)
    here.applies.carry_out(prospect)
    commits.commit(made)
    return made


def branch(here, name: str):
    commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
    commits.check(prospect, branch=name)
    made = commits.make(prospect, "On a branch\n")
    commits.branch(name, made)
    return made


def refused(code: str, here, name: str | None = None) -> CleverAgentsError:
    before, heads = look(here.root / ".git"), here.git("for-each-ref")
    commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
    with pytest.raises(CleverAgentsError) as caught:
        commits.check(prospect, branch=name)
    assert caught.value.code == code, caught.value
    assert (look(here.root / ".git"), here.git("for-each-ref")) == (before, heads)
    return caught.value


class TestCommit:
    def test_head_moves_on_by_exactly_the_files_of_the_plan(self, here):
        first = here.git("rev-parse", "HEAD").strip()
        here.work({"app.txt": text(l3="ann"), "new.sh": file("x\n", 0o100755), "src/two.py": None})
        made = commit(here, "Say it\n\nin full\n")
        assert here.git("rev-parse", "HEAD").strip() == made.id
        assert here.git("rev-parse", "HEAD^").strip() == first == made.parent
        assert here.git("log", "-1", "--format=%B%an") == "Say it\n\nin full\nA U Thor\n"
        assert here.git("diff-tree", "-r", "--name-status", "HEAD^", "HEAD").split() == [
            *("M", "app.txt"),
            *("A", "new.sh"),
            *("D", "src/two.py"),
        ]
        assert here.git("ls-tree", "HEAD", "new.sh").startswith("100755")
        assert here.git("status", "--porcelain") == ""
        assert here.git("symbolic-ref", "HEAD").strip() == "refs/heads/main"

    def test_edits_and_staged_changes_of_other_files_stay_as_they_are(self, here):
        here.write("src/one.py", "staged\n")
        here.git("add", "src/one.py")
        here.write("src/one.py", "edited\n")
        here.write("untracked", "mine\n")
        here.work({"app.txt": text(l3="ann")})
        commit(here)
        assert here.git("status", "--porcelain") == "MM src/one.py\n?? untracked\n"
        assert here.git("show", ":src/one.py") == "staged\n"

    @pytest.mark.parametrize("name", ["new\nline", "*", ":(glob)x", "-dash", os.fsdecode(b"\xe9")])
    def test_files_of_any_name_are_committed(self, here, name):
        here.work({name: b"new\n", "app.txt": text(l3="ann")})
        commit(here)
        assert here.git("status", "--porcelain") == ""
        assert here.git("ls-tree", "-z", "--name-only", "HEAD").split("\0").count(name) == 1

    def test_file_can_become_a_folder_and_a_folder_a_file(self, here):
        here.work({"app.txt": None, "app.txt/part": b"1\n", "src/deep/three.py": None})
        here.work({"src/deep": b"a file now\n"})
        commit(here)
        assert here.git("status", "--porcelain") == ""
        assert here.git("ls-tree", "-r", "--name-only", "HEAD", "app.txt/", "src/").split() == [
            "app.txt/part",
            "src/deep",
            "src/one.py",
            "src/two.py",
        ]

    def test_symbolic_link_is_committed_as_one(self, here):
        here.work({"link": file("app.txt", 0o120000)})
        commit(here)
        assert here.git("ls-tree", "HEAD", "link").startswith("120000")
        assert here.git("status", "--porcelain") == ""

    def test_line_ends_are_converted_as_the_user_has_set_it(self, here):
        here.git("config", "core.autocrlf", "true")
        here.work({"new.txt": b"one\r\ntwo\r\n"})
        commit(here)
        assert here.git("cat-file", "blob", "HEAD:new.txt") == "one\ntwo\n"
        assert here.read("new.txt") == b"one\r\ntwo\r\n"
        assert here.git("status", "--porcelain") == ""

    @pytest.mark.parametrize("by", ["plan", "user"])
    def test_filters_of_the_attributes_are_applied(self, here, by):
        """Also if the plan itself brings the attributes, or they are not committed yet."""
        here.git("config", "filter.loud.clean", "tr a-z A-Z")
        here.git("config", "filter.loud.smudge", "tr A-Z a-z")
        attributes = b"*.loud filter=loud\n"
        if by == "user":
            here.write(".gitattributes", attributes)
            here.work({"a.loud": b"quiet\n"})
        else:
            here.work({"a.loud": b"quiet\n", ".gitattributes": attributes})
        commit(here)
        assert here.git("cat-file", "blob", "HEAD:a.loud") == "QUIET\n"
        assert here.read("a.loud") == b"quiet\n"

    def test_execute_bit_is_kept_where_the_user_does_not_trust_it(self, here):
        here.git("config", "core.fileMode", "false")
        here.work({"tool": file("x\n", 0o100755)})
        commit(here)
        assert here.git("ls-tree", "HEAD", "tool").startswith("100755")

    def test_no_hook_of_the_user_runs(self, here):
        for name in ("reference-transaction", "post-index-change", "pre-commit", "post-commit"):
            hook = here.root / ".git/hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/sh\ntouch '{here.root}/ran-{name}'\n")
            hook.chmod(0o755)
        here.work({"app.txt": text(l3="ann")})
        branch(here, "other")
        commit(here)
        assert list(here.root.glob("ran-*")) == []

    def test_detached_head_moves_on_too(self, here):
        here.git("checkout", "--quiet", "--detach")
        here.work({"app.txt": text(l3="ann")})
        made = commit(here)
        assert here.git("rev-parse", "HEAD").strip() == made.id
        assert here.git("rev-parse", "main").strip() == made.parent

    def test_work_tree_of_another_repository_is_committed_to(self, tmp_path):
        with world(tmp_path / "main", repository=True) as first:
            first.git("worktree", "add", "--quiet", "../other")
        with world(tmp_path / "other") as here:
            here.git("add", ".")
            here.git("commit", "--quiet", "--allow-empty", "--message", "second")
            here.work({"app.txt": text(l3="ann")})
            made = commit(here)
            assert here.git("rev-parse", "HEAD", "other").split() == [made.id, made.id]
            assert here.git("status", "--porcelain") == ""

    def test_tree_below_the_top_of_the_repository_is_committed_in_its_place(self, tmp_path):
        git(tmp_path, "init", "--quiet", "--initial-branch=main")
        (tmp_path / ".gitattributes").write_text("*.crlf text eol=crlf\n")
        with world(tmp_path / "inner") as here:
            git(tmp_path, "add", ".")
            git(tmp_path, "commit", "--quiet", "--message", "first")
            here.work({"app.txt": text(l3="ann"), "x.crlf": b"1\r\n", "src/one.py": None})
            commit(here)
            assert here.git("status", "--porcelain") == ""
            assert here.git("diff-tree", "-r", "--name-only", "HEAD^", "HEAD").split() == [
                "inner/app.txt",
                "inner/src/one.py",
                "inner/x.crlf",
            ]
            assert here.git("cat-file", "blob", "HEAD:inner/x.crlf") == "1\n"

    def test_head_that_moved_meanwhile_is_not_moved_again(self, here):
        here.work({"app.txt": text(l3="ann")})
        commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
        made = commits.make(prospect, "late\n")
        here.applies.carry_out(prospect)
        here.git("commit", "--quiet", "--allow-empty", "--message", "between")
        with pytest.raises(CleverAgentsError) as caught:
            commits.commit(made)
        assert caught.value.code == "CA5101"
        assert caught.value.facts["kept"].startswith("the files are applied, ")
        assert here.git("log", "-1", "--format=%s") == "between\n"
        assert here.git("status", "--porcelain") == " M app.txt\n"

    def test_busy_index_is_refused_before_anything_is_changed(self, here):
        here.work({"app.txt": text(l3="ann")})
        (here.root / ".git/index.lock").touch()
        error = refused("CA4108", here)
        assert error.message == "Another git process works on the index; nothing was changed"

    @pytest.mark.parametrize(
        ("begin", "says", "ends"),
        [
            (["merge", "clash"], "a merge", "git merge --abort"),
            (["cherry-pick", "clash"], "a cherry-pick", "git cherry-pick --abort"),
            (["revert", "--no-edit", "HEAD~1"], "a revert", "git revert --abort"),
            (["rebase", "clash"], "a rebase", "git rebase --abort"),
            (["rebase", "--apply", "clash"], "a rebase", "git rebase --abort"),
            (["bisect", "start"], "a bisect", "git bisect reset"),
        ],
        ids=lambda one: "-".join(one[:2]) if isinstance(one, list) else "",
    )
    def test_unfinished_operation_of_git_is_refused_and_can_be_ended_as_told(
        self, here, begin, says, ends
    ):
        """The next commit would end it, as one that has nothing to do with it."""
        for name in ("first\n", "second\n"):
            here.write("clashing", name)
            here.git("add", "clashing")
            here.git("commit", "-qm", name)
        here.git("checkout", "-q", "-b", "clash", "HEAD~2")
        here.write("clashing", "otherwise\n")
        here.git("add", "clashing")
        here.git("commit", "-qm", "clash")
        here.git("checkout", "-q", "main")
        here.work({"app.txt": text(l3="ann")})
        environment = {**os.environ, **GIT}
        subprocess.run(
            ["git", *begin], cwd=here.root, env=environment, capture_output=True, check=False
        )
        error = refused("CA4112", here)
        assert says in error.message
        assert f"`{ends}`" in error.hint
        here.git(*ends.split()[1:])
        UserCommits(here.changes.repository).check(here.applies.prospect(PLAN))

    def test_branch_can_be_made_in_the_middle_of_a_bisect(self, here):
        here.work({"app.txt": text(l3="ann")})
        here.git("bisect", "start")
        branch(here, "side")

    def test_index_that_gets_busy_meanwhile_leaves_head_where_it_is(self, here):
        """Or the next commit of the user would silently take the plan's changes back."""
        here.work({"app.txt": text(l3="ann")})
        commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
        made, head = commits.make(prospect, "late\n"), here.git("rev-parse", "HEAD")
        here.applies.carry_out(prospect)
        (here.root / ".git/index.lock").touch()
        with pytest.raises(CleverAgentsError) as caught:
            commits.commit(made)
        assert "--commit` again" in caught.value.hint
        assert here.git("rev-parse", "HEAD") == head
        (here.root / ".git/index.lock").unlink()
        assert here.git("status", "--porcelain") == " M app.txt\n"

    def test_nothing_is_left_in_our_own_folder(self, here):
        here.work({"app.txt": text(l3="ann")})
        commit(here)
        assert list((here.root / ".cleveragents").glob("commit-*")) == []


class TestLeftOver:
    """The commit of an apply that died between its files and HEAD."""

    CHANGES = {"app.txt": text(l3="ann"), "new\n*.txt": b"new\n", "src/two.py": None}  # noqa: RUF012  # never changed

    def made(self, here):
        here.work(self.CHANGES)
        commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
        made = commits.make(prospect, "late\n")
        here.applies.carry_out(prospect, commit=made.id)
        return commits, made

    def test_commit_that_was_not_reached_is_found_and_made(self, here):
        commits, made = self.made(here)
        assert here.applies.applies()[-1].commit == made.id
        found = commits.left_over(made.id)
        assert (found.id, found.parent, sorted(found.paths)) == (
            made.id,
            made.parent,
            sorted(made.paths),
        )
        commits.commit(found)
        assert here.git("rev-parse", "HEAD").strip() == made.id
        assert here.git("status", "--porcelain") == ""
        assert commits.left_over(made.id) is None

    @pytest.mark.parametrize("path", CHANGES, ids=["edited", "edited-new", "back-again"])
    def test_files_that_are_others_by_now_are_not_committed(self, here, path):
        commits, made = self.made(here)
        here.write(path, "mine\n")
        assert commits.left_over(made.id) is None

    def test_commit_that_is_gone_is_nothing(self, here):
        commits, _ = self.made(here)
        assert commits.left_over("0" * 40) is None


class TestBranch:
    def test_new_branch_holds_the_plan_and_nothing_else_moves(self, here):
        here.work({"app.txt": text(l3="ann"), "new.txt": b"new\n"})
        before, head = look(here.root), here.git("rev-parse", "HEAD")
        index = (here.root / ".git/index").read_bytes()
        made = branch(here, "plans/one")
        assert here.git("rev-parse", "plans/one").strip() == made.id
        assert here.git("diff", "--name-only", "main", "plans/one").split() == [
            "app.txt",
            "new.txt",
        ]
        assert (look(here.root), here.git("rev-parse", "HEAD")) == (before, head)
        assert (here.root / ".git/index").read_bytes() == index
        assert here.applies.applies() == ()

    def test_branch_that_is_there_is_refused(self, here):
        here.work({"app.txt": text(l3="ann")})
        here.git("branch", "taken")
        error = refused("CA4108", here, "taken")
        assert error.message == "The branch `taken` is there already"

    def test_branch_that_another_made_meanwhile_is_refused(self, here):
        here.work({"app.txt": text(l3="ann")})
        commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
        made = commits.make(prospect, "x")
        here.git("branch", "taken")
        with pytest.raises(CleverAgentsError, match="already exists") as caught:
            commits.branch("taken", made)
        assert caught.value.code == "CA5101"
        assert here.git("rev-parse", "taken").strip() == made.parent

    @pytest.mark.parametrize("name", ["", "-x", "a b", "a..b", "@{-1}", "HEAD", "x.lock", "a\nb"])
    def test_name_that_git_does_not_allow_is_refused(self, here, name):
        here.work({"app.txt": text(l3="ann")})
        here.git("checkout", "--quiet", "-b", "other")
        here.git("checkout", "--quiet", "main")
        error = refused("CA1005", here, name)
        assert error.exit_code == 2
        assert f"must be a name that git allows, got {name!r}" in error.message


class TestRefusals:
    @pytest.mark.parametrize("edit", ["edited", "staged", "untracked", "deleted", "nested"])
    def test_uncommitted_edits_of_the_same_files_are_refused(self, here, edit):
        if edit == "untracked":
            here.write("new.txt", "mine\n")
            here.work({"new.txt": b"mine\nplan\n"})
        elif edit == "nested":
            here.work({"app.txt": None, "app.txt/part": b"1\n"})
            here.git("rm", "--quiet", "app.txt")
            here.write("app.txt", text())
        elif edit == "deleted":
            (here.root / "src/two.py").unlink()
            here.work({"src/two.py/part": b"1\n"})
        else:
            here.write("app.txt", text(l18="mine"))
            here.work({"app.txt": text(l3="ann", l18="mine")})
            if edit == "staged":
                here.git("add", "app.txt")
        error = refused("CA4108", here)
        assert "has edits of yours that are not committed" in error.message

    def test_folder_without_a_repository_is_refused(self, tmp_path):
        with world(tmp_path / "tree") as here:
            here.work({"app.txt": text(l3="ann")})
            with pytest.raises(CleverAgentsError, match="is no git repository") as caught:
                UserCommits(here.changes.repository).check(here.applies.prospect(PLAN))
            assert caught.value.code == "CA4108"

    def test_repository_without_a_commit_is_refused(self, tmp_path):
        with world(tmp_path / "tree") as here:
            here.git("init", "--quiet")
            here.work({"app.txt": text(l3="ann")})
            assert "has no commit that this one could follow" in refused("CA4108", here).message

    def test_git_that_does_not_know_the_user_is_refused(self, here, monkeypatch):
        for name in GIT:
            if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER")):
                monkeypatch.delenv(name)
        monkeypatch.delenv("EMAIL", raising=False)
        here.git("config", "user.useConfigOnly", "true")
        here.work({"app.txt": text(l3="ann")})
        error = refused("CA5101", here)
        assert error.exit_code == 3
        assert "Git does not know who you are" in error.message
        here.git("config", "user.name", "Known")
        here.git("config", "user.email", "known@example.org")
        commit(here)
        assert here.git("log", "-1", "--format=%an") == "Known\n"
