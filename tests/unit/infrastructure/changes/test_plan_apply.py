from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents.domain.errors import PlanError, RequestError
from cleveragents.infrastructure.apply.files import Files
from cleveragents.infrastructure.apply.target import Recovered
from cleveragents.infrastructure.changes import apply_rows, plan_apply
from cleveragents.infrastructure.changes.plan_apply import PlanApply
from cleveragents.infrastructure.changes.selection import Selection
from cleveragents.infrastructure.store import Store
from cleveragents.testing import Gate, run_together
from cleveragents.workspace import PlanChanges
from unit.infrastructure.changes.worlds import (
    PLAN,
    ann_and_bob,
    copied,
    file,
    git,
    look,
    text,
    world,
)

ANN = Selection(actors=("ann",))
BOB = Selection(actors=("bob",))


def only(*paths: str) -> Selection:
    return Selection(paths=paths)


@pytest.fixture
def here(tmp_path):
    with world(tmp_path / "tree") as opened:
        yield opened


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    with world(tmp_path_factory.mktemp("two") / "tree") as here:
        ann_and_bob(here)
    return here.root


@pytest.fixture
def two(template, tmp_path):
    """A plan that Ann and Bob worked on."""
    with copied(template, tmp_path / "tree") as opened:
        yield opened


def refused(code: str, action, *arguments, **options) -> PlanError:
    with pytest.raises(PlanError) as caught:
        action(*arguments, **options)
    assert caught.value.code == code, caught.value
    return caught.value


class TestApply:
    def test_whole_plan_is_put_into_the_tree_and_written_down(self, two):
        done = two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.read("ann.txt") == b"ann\n"
        assert not (two.root / "src/two.py").exists()
        assert (done.kind, done.files, done.of_apply) == ("apply", 3, None)
        assert two.applies.applies() == (done,)
        assert two.events() == ["plan.tree", "plan.applied"]

    def test_what_is_applied_already_is_not_applied_again(self, two):
        two.applies.apply(PLAN)
        before = look(two.root)
        assert two.applies.apply(PLAN) is None
        assert two.applies.apply(PLAN, ANN) is None
        assert two.applies.apply(PLAN, only("app.txt")) is None
        assert look(two.root) == before
        assert len(two.applies.applies(PLAN)) == 1

    def test_plan_without_changes_has_nothing_to_apply(self, here):
        here.begin()
        assert here.applies.apply(PLAN) is None

    def test_one_actor_can_be_applied_and_the_rest_later(self, two):
        two.applies.apply(PLAN, BOB)
        assert two.read("app.txt") == text(l10="bob")
        assert not (two.root / "ann.txt").exists()
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.read("ann.txt") == b"ann\n"

    def test_actor_can_be_named_by_its_node(self, two):
        two.applies.apply(PLAN, Selection(actors=("node-ann",)))
        assert two.read("app.txt") == text(l3="ann")

    def test_all_actors_together_are_the_plan(self, two):
        two.applies.apply(PLAN, Selection(actors=("bob", "ann")))
        assert two.applies.apply(PLAN) is None

    @pytest.mark.parametrize("path", ["src", "src/", "src/*.py", "./src/two.py", "src/two.py"])
    def test_path_can_be_applied_and_the_rest_later(self, two, path):
        two.applies.apply(PLAN, only(path))
        assert not (two.root / "src/two.py").exists()
        assert two.read("app.txt") == text()
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")

    def test_path_of_one_actor_can_be_applied(self, two):
        two.applies.apply(PLAN, Selection(actors=("ann",), paths=("app.txt",)))
        assert two.read("app.txt") == text(l3="ann")
        assert not (two.root / "ann.txt").exists()

    def test_untouched_files_keep_their_times_and_replaced_ones_their_modes(self, here):
        for number, mode in enumerate((0o600, 0o664, 0o755)):
            here.write(f"mode-{number}", "old\n", mode)
        here.work({f"mode-{n}": file("new\n", 0o100755 if n == 2 else 0o100644) for n in range(3)})
        before = look(here.root)
        here.applies.apply(PLAN)
        after = look(here.root)
        assert {path for path in after if after[path] != before[path]} == {
            "mode-0",
            "mode-1",
            "mode-2",
        }
        assert [after[f"mode-{n}"][0] for n in range(3)] == ["0o100600", "0o100664", "0o100755"]

    def test_edits_of_the_user_meanwhile_are_merged_and_stay(self, two):
        two.write("app.txt", text(l18="mine"))
        two.write("src/one.py", "mine\n")
        two.write("new.txt", "mine\n")
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob", l18="mine")
        assert two.read("src/one.py") == b"mine\n"
        assert two.read("new.txt") == b"mine\n"

    def test_edit_of_a_file_that_the_user_renamed_meanwhile_follows_it(self, two):
        (two.root / "app.txt").rename(two.root / "moved.txt")
        two.applies.apply(PLAN)
        assert two.read("moved.txt") == text(l3="ann", l10="bob")
        assert not (two.root / "app.txt").exists()

    def test_same_edit_by_the_user_is_no_conflict(self, two):
        two.write("app.txt", text(l3="ann"))
        assert two.applies.apply(PLAN).files == 3

    def test_what_the_user_did_by_hand_counts_as_applied(self, here):
        """Else the plan's next change of that place would seem to be in the user's way."""
        here.work({"app.txt": text(l3="one")})
        here.write("app.txt", text(l3="one"))
        assert here.applies.apply(PLAN).files == 0
        here.work({"app.txt": text(l3="two")})
        here.applies.apply(PLAN)
        assert here.read("app.txt") == text(l3="two")

    @pytest.mark.parametrize("selection", [Selection(), ANN, only("app.txt")], ids=str)
    def test_plan_that_moved_on_is_applied_from_where_it_was(self, here, selection):
        here.work({"app.txt": text(l3="one")})
        here.applies.apply(PLAN, selection)
        here.work({"app.txt": text(l3="two")})
        here.write("app.txt", text(l3="one", l18="mine"))
        here.applies.apply(PLAN, selection)
        assert here.read("app.txt") == text(l3="two", l18="mine")

    def test_actor_whose_changes_others_built_on_is_in_already(self, here):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.apply(PLAN)
        here.work({"app.txt": text(l3="bob")}, "bob")
        here.applies.apply(PLAN)
        here.work({"src/one.py": b"more\n"}, "bob")
        assert here.applies.apply(PLAN, ANN) is None
        assert here.read("app.txt") == text(l3="bob")

    def test_two_plans_can_be_applied_to_one_tree(self, here):
        here.begin("p-2")
        here.work({"app.txt": text(l3="first")})
        here.work({"app.txt": text(l10="second")}, plan="p-2")
        one, two = here.applies.apply(PLAN), here.applies.apply("p-2")
        assert here.read("app.txt") == text(l3="first", l10="second")
        here.applies.revert(one.id)
        assert here.read("app.txt") == text(l10="second")
        here.applies.revert(two.id)
        assert here.read("app.txt") == text()

    def test_git_folder_of_the_user_is_not_touched(self, tmp_path):
        with world(tmp_path / "tree", repository=True) as here:
            here.write("src/one.py", "staged\n")
            here.git("add", "src/one.py")
            hook = here.root / ".git/hooks/post-index-change"
            hook.parent.mkdir(exist_ok=True)
            hook.write_text("#!/bin/sh\ntouch ran\n")
            hook.chmod(0o755)
            before = look(here.root / ".git")
            here.work({"app.txt": text(l3="ann"), "new.txt": b"new\n"})
            here.applies.revert(here.applies.apply(PLAN).id)
            here.applies.apply(PLAN)
            assert look(here.root / ".git") == before
            assert not (here.root / "ran").exists()


class TestConflicts:
    def test_same_place_refuses_everything_and_is_told(self, two):
        two.write("app.txt", text(l3="mine"))
        before = look(two.root)
        error = refused("CA4102", two.applies.apply, PLAN)
        assert error.exit_code == 5
        assert error.message == (
            "You and plan `p-1` changed the same place in `app.txt`; nothing was applied"
        )
        assert error.facts == {"app.txt": "your line 3, the other's line 3"}
        assert error.hint == (
            "Run `cleveragents changes apply p-1 --take mine` to keep your version there,"
            " or `cleveragents changes apply p-1 --take plan` to take the plan's"
        )
        assert look(two.root) == before
        assert two.applies.applies() == ()

    def test_hint_repeats_what_was_selected(self, two):
        two.write("app.txt", text(l3="mine"))
        selection = Selection(actors=("ann",), paths=("*.txt",))
        error = refused("CA4102", two.applies.apply, PLAN, selection)
        assert "`cleveragents changes apply p-1 --actor=ann '--path=*.txt' --take mine`" in (
            error.hint
        )

    @pytest.mark.parametrize(("take", "third"), [("mine", "mine"), ("plan", "ann")])
    def test_chosen_side_wins_in_that_place_and_all_else_is_merged(self, two, take, third):
        two.write("app.txt", text(l3="mine", l18="mine too"))
        two.applies.apply(PLAN, take=take)
        assert two.read("app.txt") == text(l3=third, l10="bob", l18="mine too")
        assert two.read("ann.txt") == b"ann\n"

    def test_choice_is_remembered_by_the_next_apply(self, two):
        two.write("app.txt", text(l3="mine"))
        two.applies.apply(PLAN, take="mine")
        two.work({"ann.txt": b"more\n"})
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="mine", l10="bob")
        assert two.read("ann.txt") == b"more\n"

    @pytest.mark.parametrize(("take", "there"), [("mine", False), ("plan", True)])
    def test_file_that_the_user_deleted_is_a_choice(self, two, take, there):
        (two.root / "app.txt").unlink()
        error = refused("CA4102", two.applies.apply, PLAN)
        assert error.facts == {"app.txt": "you deleted or renamed it (modify/delete)"}
        two.applies.apply(PLAN, take=take)
        assert (two.root / "app.txt").exists() == there

    @pytest.mark.parametrize(("take", "there"), [("mine", True), ("plan", False)])
    def test_file_that_the_plan_deleted_is_a_choice(self, two, take, there):
        two.write("src/two.py", "mine\n")
        error = refused("CA4102", two.applies.apply, PLAN)
        assert error.facts == {"src/two.py": "deleted or renamed there (modify/delete)"}
        two.applies.apply(PLAN, take=take)
        assert (two.root / "src/two.py").exists() == there

    @pytest.mark.parametrize("take", ["mine", "plan"])
    def test_binary_file_is_taken_whole(self, here, take):
        here.write("image", b"\0old")
        here.work({"image": b"\0plan"})
        here.write("image", b"\0mine")
        assert refused("CA4102", here.applies.apply, PLAN).facts == {"image": "binary"}
        here.applies.apply(PLAN, take=take)
        assert here.read("image") == b"\0" + take.encode()

    @pytest.mark.parametrize("take", ["mine", "plan"])
    def test_new_file_of_both_is_taken_whole(self, here, take):
        here.work({"new.txt": b"plan\n"})
        here.write("new.txt", "mine\n")
        refused("CA4102", here.applies.apply, PLAN)
        here.applies.apply(PLAN, take=take)
        assert here.read("new.txt") == take.encode() + b"\n"

    @pytest.mark.parametrize(("take", "kept"), [("mine", "a.txt"), ("plan", "b.txt")])
    def test_file_that_both_renamed_has_one_name_in_the_end(self, here, take, kept):
        here.work({"app.txt": None, "b.txt": text()})
        (here.root / "app.txt").rename(here.root / "a.txt")
        error = refused("CA4102", here.applies.apply, PLAN)
        assert "in 3 files" in error.message
        here.applies.apply(PLAN, take=take)
        assert [one.name for one in here.root.glob("*.txt")] == [kept]

    @pytest.mark.parametrize("take", ["mine", "plan"])
    def test_file_against_folder_leaves_no_name_of_gits_making(self, here, take):
        here.work({"thing": b"a file\n"})
        here.write("thing/inside.txt", "a folder\n")
        refused("CA4102", here.applies.apply, PLAN)
        here.applies.apply(PLAN, take=take)
        found = {path for path in look(here.root) if path.startswith("thing")}
        assert found == ({"thing/inside.txt"} if take == "mine" else {"thing"})

    def test_execute_bit_of_the_other_side_stays(self, here):
        here.work({"app.txt": text(l3="plan")})
        here.write("app.txt", text(l3="mine"), 0o755)
        here.applies.apply(PLAN, take="plan")
        assert here.read("app.txt") == text(l3="plan")
        assert (here.root / "app.txt").stat().st_mode & 0o777 == 0o755

    def test_symbolic_link_is_taken_whole(self, here):
        (here.root / "link").symlink_to("app.txt")
        here.work({"link": file("src", 0o120000)})
        (here.root / "link").unlink()
        (here.root / "link").symlink_to("run.sh")
        refused("CA4102", here.applies.apply, PLAN)
        here.applies.apply(PLAN, take="plan")
        assert str((here.root / "link").readlink()) == "src"

    def test_ignored_file_is_never_written_over(self, here):
        here.work({"debug.log": b"plan\n"})
        here.write("debug.log", "mine\n")
        error = refused("CA4102", here.applies.apply, PLAN, take="plan")
        assert "an ignored file is there" in error.message
        assert here.read("debug.log") == b"mine\n"
        assert here.applies.applies() == ()

    @pytest.mark.parametrize("made", ["submodule", "not-checked-out", "repository"])
    def test_nothing_is_written_into_a_repository_that_came_since(self, tmp_path, made):
        """The plan made the folder; then the user put another repository in its place."""
        with world(tmp_path / "tree", repository=True) as here:
            here.work({"lib/new.py": b"plan\n"})
            if made == "repository":
                here.write("lib/theirs.py", "theirs\n")
                git(here.root / "lib", "init", "--quiet")
            else:
                (tmp_path / "other").mkdir()
                git(tmp_path / "other", "init", "--quiet")
                git(tmp_path / "other", "commit", "--quiet", "--allow-empty", "-m", "x")
                local = ("-c", "protocol.file.allow=always")
                here.git(*local, "submodule", "add", "-q", str(tmp_path / "other"), "lib")
            if made == "not-checked-out":
                here.git("submodule", "deinit", "-q", "-f", "lib")
            error = refused("CA4108", here.applies.apply, PLAN, take="plan")
            assert "`lib` is a repository of its own" in error.message
            assert not (here.root / "lib/new.py").exists()
            assert here.applies.applies() == ()

    def test_folder_beside_a_new_submodule_is_applied_as_ever(self, tmp_path):
        with world(tmp_path / "tree", repository=True) as here:
            here.work({"lib/new.py": b"plan\n"})
            (here.root / "library").mkdir()
            git(here.root / "library", "init", "--quiet")
            here.applies.apply(PLAN)
            assert here.read("lib/new.py") == b"plan\n"

    def test_unknown_side_is_refused(self, two):
        with pytest.raises(RequestError, match="must be `mine` or `plan`, got 'ours'"):
            two.applies.apply(PLAN, take="ours")


class TestRevert:
    def test_last_apply_is_taken_back(self, two):
        before = look(two.root)
        done = two.applies.apply(PLAN)
        back = two.applies.revert(done.id)
        after = look(two.root)
        assert {path: (one[0], one[2]) for path, one in after.items()} == {
            path: (one[0], one[2]) for path, one in before.items()
        }
        assert (back.kind, back.of_apply, back.files) == ("revert", done.id, 3)
        assert two.events("plan.") == ["plan.tree", "plan.applied", "plan.reverted"]
        assert two.applies.standing(PLAN) == ()

    def test_later_edits_elsewhere_stay(self, two):
        done = two.applies.apply(PLAN)
        two.write("app.txt", text(l3="ann", l10="bob", l18="mine"))
        two.applies.revert(done.id)
        assert two.read("app.txt") == text(l18="mine")

    @pytest.mark.parametrize(("take", "third"), [("mine", "mine"), ("plan", "line 3")])
    def test_later_edits_in_the_same_place_refuse_it(self, two, take, third):
        done = two.applies.apply(PLAN)
        two.write("app.txt", text(l3="mine", l10="bob"))
        before = look(two.root)
        error = refused("CA4103", two.applies.revert, done.id)
        assert error.exit_code == 5
        assert f"changes revert {done.id} --take mine`" in error.hint
        assert "was edited in the same place since, in `app.txt`; nothing was reverted" in (
            error.message
        )
        assert look(two.root) == before
        two.applies.revert(done.id, take=take)
        assert two.read("app.txt") == text(l3=third)

    def test_revert_can_be_reverted_again_and_again(self, two):
        last = two.applies.apply(PLAN)
        new, old = look(two.root)["app.txt"][2], text()
        for turn in range(4):
            last = two.applies.revert(last.id)
            assert two.read("app.txt") == (new if turn % 2 else old)
            assert bool(two.applies.standing(PLAN)) == bool(turn % 2)
        assert two.applies.apply(PLAN) is None

    def test_reverted_plan_can_be_applied_again(self, two):
        two.applies.revert(two.applies.apply(PLAN).id)
        again = two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.applies.last_standing(PLAN) == again

    def test_apply_is_taken_back_once(self, two):
        done = two.applies.apply(PLAN)
        back = two.applies.revert(done.id)
        error = refused("CA4108", two.applies.revert, done.id)
        assert error.hint == f"Run `cleveragents changes revert {back.id}` to put it back"
        assert two.applies.revert(back.id)
        refused("CA4108", two.applies.revert, back.id)

    def test_apply_that_was_put_back_can_be_taken_back_by_its_own_name(self, two):
        done = two.applies.apply(PLAN)
        redone = two.applies.revert(two.applies.revert(done.id).id)
        assert two.applies.revert(done.id).of_apply == redone.id
        assert two.read("app.txt") == text()

    def test_applies_can_be_taken_back_out_of_order(self, two):
        first, second = two.applies.apply(PLAN, ANN), two.applies.apply(PLAN, BOB)
        two.applies.revert(first.id)
        assert two.read("app.txt") == text(l10="bob")
        assert two.applies.standing(PLAN) == (second,)
        assert not (two.root / "ann.txt").exists()
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.read("ann.txt") == b"ann\n"

    def test_redo_out_of_order_brings_the_same_changes_back(self, two):
        first = two.applies.apply(PLAN, ANN)
        two.applies.apply(PLAN, BOB)
        back = two.applies.revert(first.id)
        two.applies.revert(back.id)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.applies.apply(PLAN) is None
        assert two.applies.apply(PLAN, ANN) is None

    def test_apply_that_a_later_one_built_on_needs_a_choice(self, here):
        here.work({"app.txt": text(l3="one")})
        first = here.applies.apply(PLAN)
        here.work({"app.txt": text(l3="two"), "ann.txt": b"later\n"})
        here.applies.apply(PLAN)
        refused("CA4103", here.applies.revert, first.id)
        here.applies.revert(first.id, take="plan")
        assert here.read("app.txt") == text()
        assert here.read("ann.txt") == b"later\n"
        # No marker of a merge is in what is held for the plan's level.
        here.applies.apply(PLAN)
        assert here.read("app.txt") == text(l3="two")

    def test_empty_apply_can_be_taken_back_too(self, here):
        here.work({"app.txt": text(l3="one")})
        here.write("app.txt", text(l3="one"))
        done = here.applies.apply(PLAN)
        assert here.applies.revert(done.id).files == 0
        assert here.applies.standing(PLAN) == ()

    def test_what_was_never_applied_cannot_be_taken_back(self, two):
        refused("CA4107", two.applies.revert, "a-none")
        refused("CA4107", two.applies.last_standing, "p-none")
        error = refused("CA4108", two.applies.last_standing, PLAN)
        assert error.hint == "Run `cleveragents changes apply p-1`"


class TestAtOnce:
    def test_second_of_two_that_looked_at_once_is_refused(self, two):
        first, second = two.applies.prospect(PLAN, ANN), two.applies.prospect(PLAN, BOB)
        two.applies.carry_out(first)
        before = look(two.root)
        refused("CA4104", two.applies.carry_out, second)
        assert look(two.root) == before
        two.applies.apply(PLAN, BOB)
        assert two.read("app.txt") == text(l3="ann", l10="bob")

    def test_two_reverts_of_one_apply_count_once(self, two):
        """Neither changes a file, so only the books can tell that the second is too late."""
        two.write("app.txt", text(l3="ann", l10="bob"))
        two.write("ann.txt", "ann\n")
        (two.root / "src/two.py").unlink()
        done = two.applies.apply(PLAN)
        one, other = two.applies.revert_prospect(done.id), two.applies.revert_prospect(done.id)
        two.applies.carry_out(one)
        refused("CA4104", two.applies.carry_out, other)

    def test_edit_between_look_and_apply_refuses_it(self, two):
        prospect = two.applies.prospect(PLAN)
        two.write("app.txt", text(l18="late"))
        before = look(two.root)
        refused("CA4102", two.applies.carry_out, prospect)
        assert look(two.root) == before

    def test_tree_that_never_rests_is_refused(self, two, monkeypatch):
        numbers = itertools.count()

        def busy(_, paths):
            two.write("src/one.py", f"{next(numbers)}\n")
            return tuple(None for _ in paths)

        monkeypatch.setattr(plan_apply, "signatures", busy)
        error = refused("CA4108", two.applies.prospect, PLAN)
        assert "edited faster than it can be compared" in error.message

    def test_tree_that_comes_to_rest_is_compared_anew(self, two, monkeypatch):
        real, edits = plan_apply.signatures, iter([text(l18="late")])

        def once(root, paths):
            for data in edits:
                two.write("app.txt", data)
            return real(root, paths)

        monkeypatch.setattr(plan_apply, "signatures", once)
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob", l18="late")

    def test_plan_that_moves_on_while_another_applies_is_never_taken_back(self, here, monkeypatch):
        """A look at an old tree with a new level would revert what came between."""
        here.work({"app.txt": text(l3="one")})
        real = plan_apply.next_level

        def late(repository, plan, level, selection):
            monkeypatch.setattr(plan_apply, "next_level", real)
            here.work({"app.txt": text(l3="two")})
            here.applies.apply(PLAN)
            return real(repository, plan, level, selection)

        monkeypatch.setattr(plan_apply, "next_level", late)
        refused("CA4104", here.applies.apply, PLAN)
        assert here.read("app.txt") == text(l3="two")

    def test_threads_apply_one_after_the_other_or_are_told(self, two):
        other = PlanChanges(two.root, two.store).applies

        def attempt(applies, selection):
            try:
                return "" if applies.apply(PLAN, selection) else "idle"
            except PlanError as error:
                return error.code

        said = run_together([lambda: attempt(two.applies, ANN), lambda: attempt(other, BOB)] * 2)
        assert set(said) <= {"", "idle", "CA4104"}
        assert len(two.applies.applies()) == said.count("") >= 1
        two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")

    def test_apply_waits_for_the_one_that_runs(self, two):
        gate = Gate()

        def hold(point):
            if point == "after-journal":
                gate.pass_through()

        slow = PlanChanges(two.root, two.store).applies
        slow._engine._files = Files(hold)

        def second():
            gate.wait_for(1)
            prospect = two.applies.prospect(PLAN, only("src"))
            gate.open()
            return refused("CA4104", two.applies.carry_out, prospect)

        run_together([lambda: slow.apply(PLAN, ANN), second])
        assert two.read("app.txt") == text(l3="ann")
        assert (two.root / "src/two.py").exists()


DYING = """
import os, signal, sys
from pathlib import Path
from cleveragents.infrastructure.apply.files import Files
from cleveragents.infrastructure.store import Store
from cleveragents.workspace import PlanChanges

root, point, times, verb, name = Path(sys.argv[1]), *sys.argv[2:]
reached = []

def die(at):
    reached.append(at)
    if reached.count(point) == int(times):
        os.kill(os.getpid(), signal.SIGKILL)

applies = PlanChanges(root, Store(root / ".cleveragents" / "state.db")).applies
applies._engine._files = Files(die)
getattr(applies, verb)(name)
"""

POINTS = {
    "after-stage": "old",
    "before-journal": "old",
    "after-journal": "new",
    "mid-flip": "new",
    "after-flip": "new",
    "before-done": "new",
    "after-done": "new",
}


def die(root: Path, point: str, verb: str = "apply", name: str = PLAN, *, times: int = 1) -> None:
    """Apply, or revert, in a process that kills itself when it comes to a point."""
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(root), point, str(times), verb, name],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


class TestDeath:
    @pytest.mark.parametrize(("point", "outcome"), POINTS.items())
    def test_tree_and_books_agree_after_death_at(self, two, point, outcome):
        before = look(two.root)
        die(two.root, point)
        found = two.applies.recover()
        assert [one.outcome for one in found] == ([] if point == "after-done" else [outcome])
        assert (look(two.root) == before) == (outcome == "old")
        assert len(two.applies.applies()) == (outcome == "new")
        last = {"old": ["apply.undone"], "new": ["plan.applied"]}[outcome]
        assert two.events() == ["plan.tree", *last]
        assert two.applies.recover() == ()
        if outcome == "old":
            two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")

    def test_death_in_a_revert_ends_the_same_way(self, two):
        done = two.applies.apply(PLAN)
        die(two.root, "mid-flip", "revert", done.id)
        two.applies.recover()
        assert two.read("app.txt") == text()
        assert two.applies.standing(PLAN) == ()

    def test_next_look_recovers_first(self, two):
        die(two.root, "mid-flip")
        assert two.applies.apply(PLAN) is None
        assert two.read("app.txt") == text(l3="ann", l10="bob")

    def test_apply_that_could_not_be_written_down_is_written_down_later(self, two, monkeypatch):
        def full(*_):
            raise OSError("no room")

        with monkeypatch.context() as patch:
            patch.setattr(apply_rows, "record", full)
            with pytest.raises(OSError, match="no room"):
                two.applies.apply(PLAN)
        assert two.read("app.txt") == text(l3="ann", l10="bob")
        assert two.applies.apply(PLAN) is None
        assert two.events() == ["plan.tree", "plan.applied"]

    def test_what_was_told_twice_is_written_down_once(self, two):
        from cleveragents.infrastructure.apply.target import Recovered

        gone = Recovered("a-gone", "old", b"")
        two.applies._recovered(gone)
        two.applies._recovered(gone)
        assert two.events() == ["plan.tree", "apply.undone"]

    def test_processes_apply_one_after_the_other_or_are_told(self, two):
        program = (
            "import sys\nfrom pathlib import Path\n"
            "from cleveragents.infrastructure.store import Store\n"
            "from cleveragents.infrastructure.changes.selection import Selection\n"
            "from cleveragents.workspace import PlanChanges\n"
            "root = Path(sys.argv[1])\n"
            "with Store(root / '.cleveragents' / 'state.db') as store:\n"
            "    applies = PlanChanges(root, store).applies\n"
            "    prospect = applies.prospect('p-1', Selection(actors=(sys.argv[2],)))\n"
            "    print('ready', flush=True)\n"
            "    sys.stdin.readline()\n"
            "    try:\n"
            "        applies.carry_out(prospect)\n"
            "    except Exception as error:\n"
            "        print(error.code)\n"
        )
        others = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(two.root), actor],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for actor in ("ann", "bob")
        ]
        for one in others:
            assert one.stdout.readline() == "ready\n"
        said = run_together([lambda one=one: one.communicate("go\n", 60)[0] for one in others])
        assert sorted(said) == ["", "CA4104\n"]
        (done,) = two.applies.applies()
        changed = {("ann",): text(l3="ann"), ("bob",): text(l10="bob")}[done.actors]
        assert two.read("app.txt") == changed


def test_names_of_any_bytes_are_applied_and_taken_back(tmp_path):
    names = ["a b", "new\nline", "quo\"te's", "-dash", ":(glob)*", os.fsdecode(b"caf\xe9"), "*"]
    with world(tmp_path / "tree") as here:
        here.work({f"{name}/{name}": name.encode("utf-8", "surrogateescape") for name in names})
        done = here.applies.apply(PLAN, only(*names))
        assert done.files == len(names)
        for name in names:
            path = os.fsencode(here.root / name / name)
            assert Path(os.fsdecode(path)).read_bytes() == os.fsencode(name)
        here.applies.revert(done.id)
        assert not any((here.root / name).exists() for name in names)


def test_conflict_in_a_file_of_any_name_is_told_on_one_line(here):
    here.write("new\nline", "old\n")
    here.work({"new\nline": b"plan\n"})
    here.write("new\nline", "mine\n")
    error = refused("CA4102", here.applies.apply, PLAN)
    assert "in 'new\\nline'; nothing" in error.message
    assert "\n" not in "".join(error.facts)


def test_clock_of_the_applies_is_a_parameter(two):
    applies = PlanApply(two.store, two.changes.repository, clock=lambda: 7.0)
    assert applies.apply(PLAN).at == 7.0
    assert applies.level(PLAN).commit == two.changes.trees.tree_of(PLAN).head


def test_tree_inside_a_repository_can_be_the_root(tmp_path):
    git(tmp_path, "init", "--quiet")
    with world(tmp_path / "inner") as here:
        here.work({"app.txt": text(l3="ann")})
        here.applies.apply(PLAN)
        assert here.read("app.txt") == text(l3="ann")


def test_store_opened_again_knows_what_was_applied(tmp_path):
    with world(tmp_path / "tree") as here:
        here.work({"app.txt": text(l3="ann")})
        done = here.applies.apply(PLAN)
    with Store(here.store.path) as store:
        assert PlanChanges(here.root, store).applies.applies() == (done,)


def test_an_apply_that_was_no_plans_is_not_written_down(two):
    apply_rows.record_recovered(two.store, Recovered("x1", "new", b""), 1.0)
    assert two.applies.applies() == ()
