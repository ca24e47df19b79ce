from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cleveragents.cli.main import main
from unit.infrastructure.changes.worlds import GIT, PLAN, file, git, text, world


@pytest.fixture
def here(terminal, tmp_path):
    """A tree with a plan that two actors worked on; commands run from a folder deep inside."""
    with world(tmp_path) as opened:
        opened.work({"app.txt": text(l3="ann"), "ann.txt": b"ann\n"}, "ann")
        opened.work({"app.txt": text(l3="ann", l10="bob"), "src/two.py": None}, "bob")
        opened.terminal = terminal
        yield opened


@pytest.fixture
def torn(here):
    """A third actor came too late with line 3."""
    base = here.changes.trees.tree_of(PLAN).base
    here.work({"app.txt": text(l3="eve")}, "eve", start=base)
    return here.changes.trees.conflicts(PLAN)[0]


def run(here, *arguments: str):
    return here.terminal.run("changes", *arguments)


class TestNothingYet:
    def test_show_says_so_and_leaves_no_trace(self, terminal):
        answer = terminal.run("changes", "show")
        assert (answer.code, answer.out) == (0, "")
        assert answer.err.startswith("No plans with changes yet\n  store  ")
        assert not terminal.path.parent.exists()

    def test_books_without_plans_are_no_plans(self, terminal):
        terminal.run("budget", "set", "day", "5")
        assert terminal.run("changes", "show").err.startswith("No plans with changes yet\n")
        assert not (terminal.path.parent / "git").exists()

    def test_there_are_no_conflicts(self, terminal):
        answer = terminal.run("changes", "conflicts")
        assert (answer.code, answer.out) == (0, "")
        assert answer.err.startswith("No conflicts\n")

    @pytest.mark.parametrize(
        "arguments",
        [
            ("show", "p-9"),
            ("diff", "p-9"),
            ("apply", "p-9"),
            ("revert", "p-9"),
            ("conflicts", "p-9"),
            ("resolve", "p-9", "--take", "ours"),
        ],
        ids=" ".join,
    )
    @pytest.mark.parametrize("some", [True, False], ids=["plans", "no-plans"])
    def test_name_that_nothing_has_is_refused(self, terminal, request, arguments, some):
        if some:
            request.getfixturevalue("here")
        answer = terminal.run("changes", *arguments)
        assert (answer.code, answer.out) == (1, "")
        assert "error[CA4107]" in answer.err
        assert "'p-9' is not known" in answer.err
        assert "hint: Run `cleveragents changes " in answer.err

    @pytest.mark.parametrize("name", ["o'dd\n", os.fsdecode(b"caf\xe9"), "; rm", "a-nothing"])
    def test_odd_name_is_refused_like_any_other(self, here, name):
        for action in ("show", "diff", "apply", "revert"):
            answer = run(here, action, name)
            assert (answer.code, answer.out) == (1, ""), answer
            assert "error[CA4107]" in answer.err


class TestShow:
    @pytest.mark.usefixtures("torn")
    def test_plans_are_listed_with_what_became_of_them(self, here):
        answer = run(here, "show")
        assert (answer.code, answer.err) == (0, "")
        assert answer.out == (
            "plan  merged  conflicted  sealed  rejected  applied\n"
            "p-1        2           1       0         0  no\n"
        )
        (record,) = run(here, "show", "--json").records
        assert (record["plan"], record["merged"], record["applied"]) == (PLAN, 2, "no")

    def test_one_plan_is_listed_with_its_changesets_and_applies(self, here):
        run(here, "apply", PLAN, "--actor", "ann", "--path", "ann.txt")
        run(here, "revert", PLAN)
        answer = run(here, "show", PLAN)
        assert (answer.code, answer.err) == (0, "")
        lines = answer.out.splitlines()
        assert lines[0].split() == ["changeset", "actor", "node", "state", "files"]
        assert lines[1].split()[1:] == ["ann", "node-ann", "merged", "2"]
        first, second = here.applies.applies()
        assert lines[3].startswith(f"apply {first.id}: 1 file, 20")
        assert lines[4].startswith(f"revert {second.id} of {first.id}: 1 file, 20")
        *changesets, applied, back = run(here, "show", PLAN, "--json").records
        assert [one["actor"] for one in changesets] == ["ann", "bob"]
        assert (applied["kind"], applied["paths"], applied["actors"]) == (
            "apply",
            ["ann.txt"],
            ["ann"],
        )
        assert back["of"] == applied["id"]


class TestDiff:
    def test_plan_is_shown_as_a_patch_that_git_can_apply(self, here, tmp_path):
        patch = run(here, "diff", PLAN).out
        assert patch.startswith("diff --git a/ann.txt b/ann.txt\nnew file mode 100644\n")
        git(tmp_path, "init", "--quiet")
        (tmp_path / "patch").write_text(patch)
        git(tmp_path, "apply", "patch")
        assert here.read("app.txt") == text(l3="ann", l10="bob")

    def test_part_of_it_is_shown(self, here):
        ann = run(here, "diff", PLAN, "--actor", "ann").out
        assert "+ann" in ann
        assert "+bob" not in ann
        only = run(here, "diff", PLAN, "--path", "src").out
        assert [line for line in only.splitlines() if line.startswith("diff")] == [
            "diff --git a/src/two.py b/src/two.py"
        ]

    def test_changeset_is_shown_as_it_was_made(self, here):
        first, second = (row.changeset_id for row in here.changes.trees.merges(PLAN))
        whole = run(here, "diff", PLAN, "--changeset", second).out
        assert "+bob" in whole
        assert "+ann" not in whole
        some = run(here, "diff", PLAN, "--changeset", second, "--path", "*.py").out
        assert "src/two.py" in some
        assert "app.txt" not in some
        none = run(here, "diff", PLAN, "--changeset", first, "--path", "src")
        assert (none.code, none.out) == (0, "")

    def test_changeset_of_another_plan_is_refused(self, here):
        answer = run(here, "diff", PLAN, "--changeset", "c-9")
        assert (answer.code, answer.out) == (1, "")
        assert "error[CA4107]: Sealed changeset 'c-9' is not known" in answer.err
        assert "hint: Run `cleveragents changes show p-1` to see them" in answer.err

    def test_changeset_has_one_actor_anyway(self, here):
        answer = run(here, "diff", PLAN, "--changeset", "c-9", "--actor", "ann")
        assert (answer.code, answer.out) == (2, "")
        assert "exclude each other" in answer.err

    def test_lines_are_counted(self, here):
        answer = run(here, "diff", PLAN, "--stat")
        assert " 3 files changed, 3 insertions(+), 3 deletions(-)\n" in answer.out

    def test_records_tell_each_file(self, here):
        records = run(here, "diff", PLAN, "--json").records
        assert [(one["change"], one["path"]) for one in records] == [
            ("create", "ann.txt"),
            ("modify", "app.txt"),
            ("delete", "src/two.py"),
        ]

    @pytest.mark.parametrize("flags", [(), ("--stat",), ("--json",)], ids=str)
    def test_plan_that_changed_nothing_says_so(self, here, flags):
        here.begin("p-2")
        answer = run(here, "diff", "p-2", *flags)
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == "Plan `p-2` changed nothing here\n"

    def test_path_that_the_plan_never_touched_is_refused(self, here):
        for action in ("diff", "apply"):
            answer = run(here, action, PLAN, "--path", "typo")
            assert (answer.code, answer.out) == (1, "")
            assert "error[CA4107]: Plan `p-1` changes nothing on the path 'typo'" in answer.err

    @pytest.mark.parametrize(
        ("when", "colored"),
        [
            (("auto", "a terminal", ""), True),
            (("auto", "a terminal", "NO_COLOR"), False),
            (("auto", "a pipe", ""), False),
            (("always", "a pipe", "NO_COLOR"), True),
            (("never", "a terminal", ""), False),
        ],
        ids=str,
    )
    def test_color_is_for_terminals(self, here, monkeypatch, when, colored):
        color, reader, no_color = when
        monkeypatch.setenv("NO_COLOR", no_color)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: reader == "a terminal", raising=False)
        for flags in ((), ("--stat",)):
            out = run(here, "diff", PLAN, "--color", color, *flags).out
            assert ("\x1b[" in out) == colored

    def test_bytes_that_are_no_text_come_through_as_they_are(self, here, tmp_path):
        name, data = os.fsdecode(b"caf\xe9"), b"\xff\xfe\n"
        here.work({name: data, "binary": file(b"\0\1"), "src/one.py": b"latin: \xe9\n"})
        command = [sys.executable, "-m", "cleveragents", "changes", "diff", PLAN]
        done = subprocess.run(
            command, cwd=tmp_path / "deep", capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"+latin: \xe9\n" in done.stdout
        assert b"GIT binary patch" in done.stdout
        (tmp_path / "patch").write_bytes(done.stdout)
        git(tmp_path, "init", "--quiet")
        git(tmp_path, "apply", "patch")
        assert (tmp_path / name).read_bytes() == data
        assert here.read("binary") == b"\0\1"

    def test_reader_that_goes_away_is_no_failure(self, here, tmp_path):
        here.work({"big.txt": b"line\n" * 100_000})
        command = f"'{sys.executable}' -m cleveragents changes diff {PLAN} | head -n 1"
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout == b"diff --git a/ann.txt b/ann.txt\n"


class TestConflicts:
    def test_conflict_is_shown_with_commands_that_decide_it(self, here, torn):
        answer = run(here, "conflicts")
        assert (answer.code, answer.err) == (5, "")
        assert answer.out == (
            f"{torn.id}  app.txt  (contents)\n"
            "  ours    bob, line 3\n"
            "  theirs  eve, line 3\n"
            "  plan    p-1\n"
            f"  decide  cleveragents changes resolve {torn.id} --take ours\n"
            f"  or      cleveragents changes resolve {torn.id} --take theirs\n"
        )
        (record,) = run(here, "conflicts", PLAN, "--json").records
        assert (record["id"], record["state"], record["path"]) == (torn.id, "open", "app.txt")
        assert record["theirs"]["actor"] == "eve"
        assert record["base"]["lines"] == []

    @pytest.mark.parametrize(
        ("flags", "third"), [(("--take", "ours"), "ann"), (("--take", "theirs"), "eve")]
    )
    def test_side_that_is_taken_is_merged(self, here, torn, flags, third):
        answer = run(here, "resolve", torn.id, *flags)
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == (f"Merged changeset `{torn.theirs.changeset}` into its plan's tree\n")
        assert f"+{third}\n" in run(here, "diff", PLAN, "--path", "app.txt").out
        assert run(here, "conflicts").err.startswith("No conflicts\n")
        assert run(here, "conflicts", PLAN).code == 0

    def test_content_of_a_file_can_be_taken(self, here, torn, tmp_path):
        (tmp_path / "mine").write_bytes(text(l3="mine"))
        answer = run(here, "resolve", torn.id, "--with", str(tmp_path / "mine"), "--json")
        (record,) = answer.records
        assert (answer.code, record["state"], record["open_conflicts"]) == (0, "merged", [])
        assert "+mine" in run(here, "diff", PLAN).out

    def test_changeset_waits_for_its_last_conflict(self, here):
        base = here.changes.trees.tree_of(PLAN).base
        here.work({"app.txt": text(l3="eve"), "ann.txt": b"eve\n"}, "eve", start=base)
        first, second = here.changes.trees.conflicts(PLAN)
        answer = run(here, "resolve", first.id, "--take", "ours")
        assert (answer.code, answer.out) == (5, "")
        assert answer.err.startswith(
            f"Chosen; 1 conflict of this changeset to go:\n{second.id}  app.txt"
        )
        waiting = run(here, "conflicts", "--json")
        assert [one["state"] for one in waiting.records] == ["resolved", "open"]
        assert run(here, "resolve", second.id, "--take", "theirs", "--json").code == 0

    def test_still_open_conflicts_are_records_too(self, here):
        base = here.changes.trees.tree_of(PLAN).base
        here.work({"app.txt": text(l3="eve"), "ann.txt": b"eve\n"}, "eve", start=base)
        first, second = here.changes.trees.conflicts(PLAN)
        answer = run(here, "resolve", first.id, "--take", "ours", "--json")
        assert (answer.code, answer.records[0]["open_conflicts"]) == (5, [second.id])

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            ((), "needs one of `--take ours`, `--take theirs` and `--with FILE`"),
            (("--take", "ours", "--with", "x"), "needs one of"),
            (("--with", "no/such"), "`--with` must name a file to read, got 'no/such'"),
            (("--with", "nul\0"), "`--with` must name a file to read"),
        ],
        ids=["none", "both", "missing", "nul"],
    )
    def test_choice_that_is_none_is_refused(self, here, torn, flags, message):
        answer = run(here, "resolve", torn.id, *flags)
        assert (answer.code, answer.out) == (2, "")
        assert message in answer.err

    def test_path_of_a_conflict_cannot_break_the_lines(self, here):
        base = here.changes.trees.tree_of(PLAN).base
        for actor in ("x", "y"):
            here.work({"new\nline": actor.encode()}, actor, start=base)
        answer = run(here, "conflicts")
        assert "  'new\\nline'  (add/add)\n" in answer.out


class TestTrouble:
    def test_git_that_is_missing_is_said(self, here, monkeypatch):
        from cleveragents.infrastructure.git import program

        program.git_program.cache_clear()
        monkeypatch.setattr(program.shutil, "which", lambda _: None)
        answer = run(here, "diff", PLAN)
        program.git_program.cache_clear()
        assert (answer.code, answer.out) == (3, "")
        assert "error[CA1006]: The program `git` is not installed" in answer.err

    def test_folder_that_cannot_be_written_is_said(self, here, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(13, "Permission denied", ".cleveragents/git")

        monkeypatch.setattr("cleveragents.infrastructure.git.repository.tempfile.mkdtemp", denied)
        monkeypatch.setattr(
            "cleveragents.infrastructure.git.repository.tempfile.TemporaryDirectory", denied
        )
        answer = run(here, "apply", PLAN)
        assert (answer.code, answer.out) == (1, "")
        assert (
            "error[CA6007]: The folder of CleverAgents cannot be used: Permission denied\n"
            "  path  .cleveragents/git\n"
        ) in answer.err

    def test_store_that_is_damaged_is_said(self, here):
        here.store.close()
        here.terminal.path.write_bytes(b"no store" * 1000)
        answer = run(here, "show", "--json")
        assert (answer.code, answer.records[0]["code"]) == (1, "CA6004")

    def test_help_says_what_each_word_means(self, capsys):
        for words in ((), ("apply",), ("diff",), ("revert",), ("resolve",)):
            with pytest.raises(SystemExit) as caught:
                main(["changes", *words, "--help"])
            assert caught.value.code == 0
        assert "take this file's content" in capsys.readouterr().out


@pytest.fixture(autouse=True)
def plain_git(monkeypatch):
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
