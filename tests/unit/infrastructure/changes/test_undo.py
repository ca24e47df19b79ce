from __future__ import annotations

import pytest

from cleveragents.domain.errors import ConflictError, PlanError
from cleveragents.infrastructure.changes.selection import Selection
from cleveragents.infrastructure.changes.undo import Undo
from unit.infrastructure.changes.worlds import PLAN, look, text, world


@pytest.fixture
def here(tmp_path):
    with world(tmp_path / "tree") as opened:
        yield opened


@pytest.fixture
def undoing(here):
    return Undo(here.store, here.changes.repository)


@pytest.fixture
def three(here):
    """Ann, Bob and Ann again changed one file in places of their own; all of it is applied."""
    here.work({"app.txt": text(l3="ann"), "ann.txt": b"ann\n"}, "ann")
    here.work({"app.txt": text(l3="ann", l10="bob"), "src/two.py": None}, "bob")
    here.work({"app.txt": text(l3="ann", l10="bob", l17="ann")}, "ann")
    here.applies.apply(PLAN)
    return here


def refused(code: str, action, *arguments, **options) -> PlanError:
    with pytest.raises(PlanError) as caught:
        action(*arguments, **options)
    assert caught.value.code == code, caught.value
    return caught.value


class TestLast:
    def test_last_apply_of_the_tree_is_that_of_any_plan(self, three, undoing):
        three.work({"src/one.py": b"one = 11\n"}, plan="p-2")
        second = three.applies.apply("p-2")
        assert undoing.last() == second
        assert undoing.last(PLAN).plan_id == PLAN

    def test_undo_after_undo_goes_further_back(self, three, undoing):
        first = undoing.last()
        three.work({"src/one.py": b"one = 11\n"}, plan="p-2")
        three.applies.apply("p-2")
        undoing.revert(undoing.last().id)
        assert undoing.last() == first
        undoing.revert(first.id)
        assert "any plan" in refused("CA4108", undoing.last).message

    @pytest.mark.usefixtures("three")
    def test_what_was_put_back_is_the_last_again(self, undoing):
        taken = undoing.revert(undoing.last().id)
        put = undoing.revert(taken.id)
        assert undoing.last() == put
        assert [undoing.puts_back(one) for one in (taken, put)] == [False, True]

    def test_plan_of_which_nothing_is_applied_has_nothing_to_take_back(self, here, undoing):
        here.work({"ann.txt": b"ann\n"})
        assert "plan `p-1`" in refused("CA4108", undoing.last, PLAN).message

    @pytest.mark.usefixtures("three")
    def test_unknown_plan_is_refused(self, undoing):
        refused("CA4107", undoing.last, "p-9")


class TestPart:
    def test_part_of_an_actor_goes_and_all_else_stays(self, three, undoing):
        three.write("app.txt", text(l3="ann", l6="you", l10="bob", l17="ann"))
        done = undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        assert three.read("app.txt") == text(l6="you", l10="bob")
        assert not (three.root / "ann.txt").exists()
        assert not (three.root / "src/two.py").exists()
        assert (done.kind, done.of_apply, done.actors) == ("revert", None, ("ann",))
        assert three.events()[-1] == "plan.reverted"

    def test_part_of_a_node_is_named_like_that_of_an_actor(self, three, undoing):
        undoing.carry_out(undoing.part_prospect(PLAN, "node-bob"))
        assert three.read("app.txt") == text(l3="ann", l17="ann")
        assert three.read("src/two.py") == b"two = 2\n"

    def test_level_knows_that_the_part_is_gone_and_the_rest_applies_again(self, three, undoing):
        before = look(three.root)
        gone = undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        assert len(three.applies.level(PLAN).changesets) == 1
        assert not undoing.puts_back(gone)
        three.applies.apply(PLAN)
        assert {name: one[2] for name, one in look(three.root).items()} == {
            name: one[2] for name, one in before.items()
        }

    def test_part_is_put_back_by_its_id(self, three, undoing):
        gone = undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        back = undoing.revert(gone.id)
        assert three.read("app.txt") == text(l3="ann", l10="bob", l17="ann")
        assert undoing.puts_back(back)
        assert len(three.applies.level(PLAN).changesets) == 3

    def test_undo_after_the_undo_of_a_part_takes_the_rest(self, three, undoing):
        """It must go further back, not put the part into the tree again."""
        undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        undoing.revert(undoing.last().id)
        assert three.read("app.txt") == text()
        assert three.read("src/two.py") == b"two = 2\n"
        assert three.applies.level(PLAN).changesets == frozenset()

    def test_part_of_an_apply_by_path_is_found_too(self, here, undoing):
        here.work({"app.txt": text(l3="ann"), "ann.txt": b"ann\n"}, "ann")
        here.applies.apply(PLAN, Selection(paths=("ann.txt",)))
        undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        assert not (here.root / "ann.txt").exists()
        assert here.read("app.txt") == text()

    def test_renamed_file_keeps_its_new_name_without_the_part(self, here, undoing):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.work({"app.txt": None, "new.txt": text(l3="ann")}, "bob")
        here.applies.apply(PLAN)
        undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        assert here.read("new.txt") == text()

    def test_part_that_others_build_on_is_refused_and_they_are_named(self, here, undoing):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.work({"src/one.py": b"one = 11\n"}, "eve")
        here.work({"app.txt": text(l3="bob")}, "bob")
        here.applies.apply(PLAN)
        before = look(here.root)
        error = refused("CA4108", undoing.part_prospect, PLAN, "ann")
        assert error.message == "Changes of `bob` build on those of 'ann'; nothing was reverted"
        assert error.facts["paths"] == "app.txt"
        assert error.hint.endswith("`cleveragents undo p-1`")
        assert look(here.root) == before

    def test_edit_of_the_same_place_is_told_with_both_ways_out(self, three, undoing):
        three.write("app.txt", text(l3="you", l10="bob", l17="ann"))
        error = refused("CA4103", undoing.part_prospect, PLAN, "ann")
        assert isinstance(error, ConflictError)
        assert error.message.startswith("What 'ann' changed was edited in the same place since")
        assert error.facts == {"app.txt": "your line 3, the other's line 3"}
        assert "`cleveragents undo p-1 --actor=ann --take mine`" in error.hint
        undoing.carry_out(undoing.part_prospect(PLAN, "ann", take="mine"))
        assert three.read("app.txt") == text(l3="you", l10="bob")

    def test_edits_of_several_files_are_counted(self, three, undoing):
        three.write("app.txt", text(l3="you", l10="bob", l17="ann"))
        three.write("ann.txt", b"you\n")
        assert "in 2 files" in refused("CA4103", undoing.part_prospect, PLAN, "ann").message

    def test_whole_apply_tells_of_edits_as_any_revert_does(self, three, undoing):
        three.write("app.txt", text(l3="you", l10="bob", l17="ann"))
        error = refused("CA4103", undoing.revert_prospect, undoing.last().id)
        assert error.message.startswith("Apply `a-")

    def test_part_that_is_not_applied_is_refused(self, three, undoing):
        three.work({"zoe.txt": b"zoe\n"}, "zoe")
        error = refused("CA4108", undoing.part_prospect, PLAN, "zoe")
        assert error.message == "Nothing of 'zoe' in plan `p-1` is in the tree"

    @pytest.mark.usefixtures("three")
    def test_part_of_nobody_is_refused(self, undoing):
        error = refused("CA4107", undoing.part_prospect, PLAN, "nobody")
        assert "`cleveragents changes show p-1`" in error.hint

    def test_part_without_any_apply_is_refused(self, here, undoing):
        here.work({"ann.txt": b"ann\n"})
        refused("CA4108", undoing.part_prospect, PLAN, "ann")

    @pytest.mark.usefixtures("three")
    def test_part_that_was_worked_out_before_another_apply_is_refused(self, undoing):
        prospect = undoing.part_prospect(PLAN, "ann")
        undoing.carry_out(undoing.part_prospect(PLAN, "bob"))
        refused("CA4104", undoing.carry_out, prospect)
