from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import zlib

import pytest

from cleveragents.infrastructure.apply.files import Files
from cleveragents.infrastructure.apply.survey import signature
from cleveragents.infrastructure.audit import verify_chain
from cleveragents.infrastructure.changes.user_commits import UserCommits
from unit.infrastructure.changes.test_plan_apply import die
from unit.infrastructure.changes.worlds import GIT, PLAN, ann_and_bob, copied, look, text, world


@pytest.fixture(autouse=True)
def plain_git(monkeypatch):
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    with world(tmp_path_factory.mktemp("here") / "tree", repository=True) as opened:
        ann_and_bob(opened)
    return opened.root


@pytest.fixture
def here(template, terminal, tmp_path):
    """A repository with a plan that two actors worked on; commands run from deep inside."""
    with copied(template, tmp_path) as opened:
        opened.terminal = terminal
        yield opened


def run(here, *arguments: str):
    return here.terminal.run("changes", *arguments)


def pasted(hint: str) -> list[list[str]]:
    """The commands of a hint, as a shell would read them."""
    return [shlex.split(one)[1:] for one in hint.split("`")[1::2]]


class TestApply:
    def test_plan_is_applied_and_the_way_back_is_told(self, here):
        answer = run(here, "apply", PLAN)
        (done,) = here.applies.applies()
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == (
            "Applied 3 files of plan `p-1`\n"
            f"\nhint: Run `cleveragents changes revert {done.id}` to take it back\n"
        )
        assert here.read("app.txt") == text(l3="ann", l10="bob")
        (back,) = pasted(answer.err.partition("hint:")[2])
        assert here.terminal.run(*back).err.startswith("Reverted 3 files of plan `p-1`\n")
        assert here.read("app.txt") == text()

    def test_one_file_is_one_file(self, here):
        answer = run(here, "apply", PLAN, "--path", "ann.txt")
        assert answer.err.startswith("Applied 1 file of plan `p-1`\n")

    def test_record_tells_the_same(self, here):
        answer = run(here, "apply", PLAN, "--actor", "bob", "--json")
        (record,) = answer.records
        (done,) = here.applies.applies()
        assert (answer.code, answer.err) == (0, "")
        assert record == {
            "kind": "apply",
            "id": done.id,
            "of": None,
            "plan": PLAN,
            "files": 2,
            "actors": ["bob"],
            "paths": [],
            "at": done.at,
        }

    @pytest.mark.parametrize("flags", [(), ("--json",), ("--dry-run",)], ids=str)
    def test_what_is_applied_already_is_nothing_to_do(self, here, flags):
        run(here, "apply", PLAN)
        before = look(here.root)
        answer = run(here, "apply", PLAN, *flags)
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == "Nothing to do: the tree is so already\n"
        assert look(here.root) == before

    def test_what_the_user_did_by_hand_is_noted(self, here):
        here.write("ann.txt", "ann\n")
        answer = run(here, "apply", PLAN, "--path", "ann.txt")
        assert answer.err.startswith("Applied 0 files of plan `p-1`: the tree was so already\n")

    def test_dry_run_shows_and_changes_nothing(self, here):
        before = look(here.root)
        answer = run(here, "apply", PLAN, "--dry-run")
        assert answer.code == 0
        assert " 3 files changed, 3 insertions(+), 3 deletions(-)\n" in answer.out
        assert answer.err == "Nothing was changed: this is what would be\n"
        records = run(here, "apply", PLAN, "--dry-run", "--json").records
        assert [(one["path"], one["dry_run"]) for one in records] == [
            ("ann.txt", True),
            ("app.txt", True),
            ("src/two.py", True),
        ]
        assert look(here.root) == before
        assert here.applies.applies() == ()

    def test_what_is_left_out_is_told_with_the_way_to_see_it(self, here):
        base = here.changes.trees.tree_of(PLAN).base
        here.work({"app.txt": text(l3="eve")}, "eve", start=base)
        answer = run(here, "apply", PLAN)
        assert answer.code == 0
        said, _, hint = answer.err.partition("\nLeft out: ")
        assert said.startswith("Applied 3 files")
        assert hint == (
            "1 changeset (1 in conflict, 0 not merged yet)\n"
            "hint: Run `cleveragents changes conflicts p-1` to see them\n"
        )
        (command,) = pasted(hint)
        assert here.terminal.run(*command).out.startswith("k-")

    def test_old_file_that_is_still_written_to_is_kept_and_told(self, here, monkeypatch):
        def late(point):
            if point == "before-done":
                file.write(b"late\n")
                file.flush()

        monkeypatch.setattr(Files, "reach", lambda _, point: late(point))
        with (here.root / "app.txt").open("ab") as file:
            answer = run(here, "apply", PLAN)
        (done,) = here.applies.applies()
        place = f".cleveragents/rescued/{done.id}"
        assert answer.err.startswith(
            f"warning: 'app.txt' was still written to while it was replaced\n  kept  {place}\n"
        )
        assert here.read(f"{place}/app.txt") == text() + b"late\n"

    def test_conflict_tells_the_place_and_commands_that_decide_it(self, here):
        here.write("app.txt", text(l3="mine"))
        before = look(here.root)
        answer = run(here, "apply", PLAN, "--actor", "ann")
        assert (answer.code, answer.out) == (5, "")
        assert answer.err == (
            "error[CA4102]: You and plan `p-1` changed the same place in `app.txt`;"
            " nothing was applied\n"
            "  app.txt  your line 3, the other's line 3\n"
            "\nhint: Run `cleveragents changes apply p-1 --actor=ann --take mine`"
            " to keep your version there,"
            " or `cleveragents changes apply p-1 --actor=ann --take plan` to take the plan's\n"
        )
        assert look(here.root) == before
        assert run(here, "apply", PLAN, "--actor", "ann", "--json").records[0]["code"] == ("CA4102")
        mine, _ = pasted(answer.err.partition("hint:")[2])
        assert here.terminal.run(*mine).code == 0
        assert here.read("app.txt") == text(l3="mine")

    def test_odd_names_can_be_named(self, here):
        names = ["-dash", "new\nline", "quo'te\""]
        here.work(dict.fromkeys(names, b"x\n"), plan="odd '\n plan")
        for name in names:
            assert run(here, "apply", "odd '\n plan", f"--path={name}").code == 0
            assert here.read(name) == b"x\n"
        answer = run(here, "revert", "odd '\n plan")
        assert answer.err.startswith("Reverted 1 file of plan `odd '  plan`\n")

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (("--commit", "--branch", "x"), "`--commit` and `--branch` exclude each other"),
            (("--message", "x"), "`--message` needs `--commit` or `--branch`"),
            (("--branch", ""), "`--branch` must be a name that git allows, got ''"),
        ],
        ids=["both", "message", "no-name"],
    )
    def test_what_cannot_be_meant_is_refused(self, here, flags, message):
        before = look(here.root)
        answer = run(here, "apply", PLAN, *flags)
        assert (answer.code, answer.out) == (2, "")
        assert message in answer.err
        assert look(here.root) == before


class TestRevert:
    def test_plan_named_like_an_apply_can_be_reverted(self, here):
        here.work({"other.txt": b"x\n"}, plan="a-plan")
        run(here, "apply", "a-plan")
        assert run(here, "revert", "a-plan").code == 0
        assert not (here.root / "other.txt").exists()

    def test_dry_run_changes_nothing(self, here):
        run(here, "apply", PLAN)
        before = look(here.root)
        answer = run(here, "revert", PLAN, "--dry-run")
        assert "3 files changed" in answer.out
        assert answer.err == "Nothing was changed: this is what would be\n"
        assert look(here.root) == before

    def test_record_tells_what_was_taken_back(self, here):
        run(here, "apply", PLAN)
        (record,) = run(here, "revert", PLAN, "--json").records
        assert (record["kind"], record["of"]) == ("revert", here.applies.applies()[0].id)

    def test_later_edits_are_a_choice(self, here):
        run(here, "apply", PLAN)
        here.write("app.txt", text(l3="mine", l10="bob"))
        answer = run(here, "revert", PLAN)
        assert (answer.code, answer.out) == (5, "")
        assert "error[CA4103]" in answer.err
        _, plan = pasted(answer.err.partition("hint:")[2])
        assert here.terminal.run(*plan).code == 0
        assert here.read("app.txt") == text()

    def test_nothing_that_is_applied_is_nothing_to_revert(self, here):
        answer = run(here, "revert", PLAN)
        assert (answer.code, answer.out) == (1, "")
        assert "error[CA4108]: Nothing of plan `p-1` is applied" in answer.err
        assert "hint: Run `cleveragents changes apply p-1`" in answer.err


class TestAsGit:
    def test_commit_holds_the_plan_and_says_so(self, here):
        answer = run(here, "apply", PLAN, "--commit")
        assert (answer.code, answer.out) == (0, "")
        commit = here.git("rev-parse", "HEAD").strip()
        assert answer.err.startswith(
            f"Committed 3 files to HEAD as {commit[:12]}\nApplied 3 files of plan `p-1`\n\nhint: "
        )
        assert here.git("log", "-1", "--format=%B").strip() == (
            "Apply plan p-1\n\nCleverAgents-Plan: p-1"
        )
        assert here.git("status", "--porcelain", "--untracked-files=no") == ""

    def test_commit_is_a_record_too(self, here):
        answer = run(here, "apply", PLAN, "--commit", "--message", "Mine", "--json")
        commit, applied = answer.records
        assert (applied["kind"], commit["kind"], commit["where"]) == ("apply", "commit", "HEAD")
        assert here.git("log", "-1", "--format=%H %s").split() == [commit["commit"], "Mine"]

    def test_commit_that_was_not_reached_is_made_the_next_time(self, here):
        commits = UserCommits(here.changes.repository)
        prospect = here.applies.prospect(PLAN)
        made = commits.make(prospect, "Apply\n")
        here.applies.carry_out(prospect, commit=made.id)
        answer = run(here, "apply", PLAN, "--commit")
        assert (answer.code, answer.err) == (0, f"Committed 3 files to HEAD as {made.id[:12]}\n")
        assert here.git("rev-parse", "HEAD").strip() == made.id
        answer = run(here, "apply", PLAN, "--commit")
        assert answer.err == "Nothing to do: the tree is so already\n"

    def test_busy_index_is_refused_before_anything_is_changed(self, here):
        (here.root / ".git/index.lock").touch()
        before = look(here.root)
        answer = run(here, "apply", PLAN, "--commit")
        assert (answer.code, look(here.root)) == (1, before)
        assert "error[CA4108]: Another git process works on the index" in answer.err
        assert here.applies.applies() == ()

    def test_branch_leaves_the_tree_alone(self, here):
        before = look(here.root)
        answer = run(here, "apply", PLAN, "--branch", "plans/one")
        assert (answer.code, answer.out) == (0, "")
        assert answer.err.startswith("Committed 3 files to branch `plans/one` as ")
        assert look(here.root) == before
        assert here.git("show", "plans/one:ann.txt") == "ann\n"

    @pytest.mark.parametrize("flags", [("--commit",), ("--branch", "new")], ids=" ".join)
    def test_what_git_would_refuse_is_refused_before_anything_is_changed(self, here, flags):
        here.git("config", "core.safecrlf", "true")
        here.git("config", "core.autocrlf", "input")
        here.work({"mixed.txt": b"one\r\ntwo\n"})
        before, refs = look(here.root), here.git("for-each-ref")
        answer = run(here, "apply", PLAN, *flags)
        assert answer.code == 1
        assert "error[CA5101]" in answer.err
        assert (look(here.root), here.git("for-each-ref")) == (before, refs)
        assert here.applies.applies() == ()

    def test_uncommitted_edits_are_refused(self, here):
        here.write("app.txt", text(l18="mine"))
        answer = run(here, "apply", PLAN, "--commit")
        assert (answer.code, answer.out) == (1, "")
        assert "error[CA4108]: `app.txt` has edits of yours that are not committed" in answer.err
        assert run(here, "apply", PLAN).code == 0

    def test_nothing_new_makes_no_commit(self, here):
        here.write("ann.txt", "ann\n")
        here.git("add", "ann.txt")
        here.git("commit", "--quiet", "--message", "by hand")
        head = here.git("rev-parse", "HEAD")
        answer = run(here, "apply", PLAN, "--path", "ann.txt", "--commit")
        assert answer.err.startswith("Applied 0 files")
        assert here.git("rev-parse", "HEAD") == head


class TestInterrupted:
    """Whatever is asked next, an apply that died is seen to first, and told."""

    @pytest.mark.parametrize(
        "command", [("changes", "show"), ("settings",), ("budget", "list"), ("audit", "verify")]
    )
    def test_any_command_finishes_it(self, here, command):
        die(here.root, "mid-flip")
        answer = here.terminal.run(*command)
        assert answer.code == 0
        (done,) = here.applies.applies()
        assert answer.err.startswith(
            f"warning[CA4109]: Apply `{done.id}` died half-way and was finished\n"
        )
        assert here.read("app.txt") == text(l3="ann", l10="bob")
        assert here.events() == ["plan.tree", "plan.applied"]
        with here.store.read() as connection:
            assert verify_chain(connection).holds
        assert "warning" not in here.terminal.run(*command).err

    @pytest.mark.parametrize("point", ["after-stage", "before-journal"])
    def test_one_that_had_not_begun_is_taken_back(self, here, point):
        before = look(here.root)
        die(here.root, point)
        answer = here.terminal.run("settings", "--json")
        assert "died half-way and was taken back\n" in answer.err
        assert len(answer.records) > 5
        assert look(here.root) == before
        assert here.applies.applies() == ()

    def test_file_that_was_edited_since_is_left_alone_and_told(self, here):
        """One edit stops the apply, so it is taken back; the other is in a file put in place."""
        die(here.root, "mid-flip", times=3)
        here.write("ann.txt", "edited in between\n")
        here.write("app.txt", "this too\n")
        answer = here.terminal.run("settings")
        assert "died half-way and was taken back\n  edited since, left as it is  'ann.txt'\n" in (
            answer.err
        )
        assert here.read("ann.txt") == b"edited in between\n"
        assert here.read("app.txt") == b"this too\n"
        assert (here.root / "src/two.py").exists()

    def test_store_that_cannot_be_opened_is_told_and_hides_nothing(self, here):
        die(here.root, "mid-flip")
        here.store.close()
        kept = here.terminal.path.read_bytes()
        here.terminal.path.write_bytes(b"damaged" * 1000)
        answer = here.terminal.run("settings")
        assert (answer.code, answer.out) == (1, "")
        assert "error[CA600" in answer.err
        assert "was finished in the tree\n" in answer.err
        assert here.read("app.txt") == text(l3="ann", l10="bob")
        here.terminal.path.write_bytes(kept)
        answer = here.terminal.run("changes", "show")
        assert "died half-way and was finished\n" in answer.err
        assert answer.out.splitlines()[1].split()[-1].startswith("a-")

    @pytest.mark.parametrize("note", ["", "[]", "null"])
    def test_journal_of_a_stranger_is_not_followed_and_stops_no_command(self, here, note):
        body = {"apply": "x1", "note": note, "made": [], "removed": [], "seal": [0, 0]}
        seen = list(signature(here.root, "app.txt").plain())
        body["operations"] = [["app.txt", 0, "0", seen, None]]
        data = json.dumps(body).encode()
        folder = here.root / ".cleveragents" / "apply" / "x1"
        folder.mkdir(parents=True)
        (folder / "seal").touch()
        (folder / "journal").write_bytes(
            b"cleveragents apply 1 %08x\n%s" % (zlib.crc32(data), data)
        )
        before = look(here.root)
        for command in (
            ("changes", "show"),
            ("settings",),
            ("changes", "apply", PLAN, "--dry-run"),
        ):
            answer = here.terminal.run(*command)
            assert answer.code == 0
            assert answer.err.startswith(
                "warning[CA4106]: The journal of apply `x1` cannot be followed: it was not made"
            )
            assert "then move it away" in answer.err
        assert run(here, "apply", PLAN).code == 1
        assert look(here.root) == before
        shutil.rmtree(folder)
        assert run(here, "apply", PLAN).code == 0

    def test_commit_that_was_to_be_made_is_told(self, here, monkeypatch):
        commits, prospect = UserCommits(here.changes.repository), here.applies.prospect(PLAN)
        made = commits.make(prospect, "Apply\n")

        def die(_, point):
            if point == "before-done":
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Files, "reach", die)
            with pytest.raises(KeyboardInterrupt):
                here.applies.carry_out(prospect, commit=made.id)
        answer = here.terminal.run("settings")
        assert "died half-way and was finished\n" in answer.err
        (command,) = pasted(answer.err.partition("hint:")[2])
        assert here.terminal.run(*command).code == 0
        assert here.git("rev-parse", "HEAD").strip() == made.id

    def test_one_that_runs_is_left_alone(self, here):
        program = (
            "import sys\nfrom pathlib import Path\n"
            "from cleveragents.infrastructure.apply.files import Files\n"
            "from cleveragents.infrastructure.store import Store\n"
            "from cleveragents.workspace import PlanChanges\n"
            "def wait(point):\n"
            "    if point == 'after-journal':\n"
            "        print('here', flush=True)\n"
            "        sys.stdin.readline()\n"
            "root = Path(sys.argv[1])\n"
            "with Store(root / '.cleveragents' / 'state.db') as store:\n"
            "    applies = PlanChanges(root, store).applies\n"
            "    applies._engine._files = Files(wait)\n"
            "    applies.apply('p-1')\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, str(here.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout.readline() == "here\n"
            answer = here.terminal.run("settings")
            assert (answer.code, answer.err) == (0, "")
            other.communicate("go\n", timeout=60)
        assert other.returncode == 0
        assert other.returncode != -signal.SIGKILL
        assert here.read("app.txt") == text(l3="ann", l10="bob")
