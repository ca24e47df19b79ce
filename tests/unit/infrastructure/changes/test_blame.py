from __future__ import annotations

import os

import pytest

from cleveragents.domain.budget import Scopes
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.changes.blame import Blame, author_facts
from cleveragents.infrastructure.changes.selection import Selection
from cleveragents.infrastructure.changes.undo import Undo
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from unit.infrastructure.changes.worlds import PLAN, file, text, world


@pytest.fixture
def here(tmp_path):
    with world(tmp_path / "tree") as opened:
        yield opened


@pytest.fixture
def blame(here):
    return Blame(here.store, here.changes.repository)


def writers(here, blame, path: str = "app.txt", line: int | None = None) -> dict[int, str]:
    """Return who wrote the lines that are not the user's."""
    lines = blame.lines(here.root / path, line)
    return {one.number: one.origin.actor for one in lines if one.origin is not None}


class TestWhoWroteIt:
    def test_every_line_names_the_attempt_that_wrote_it_and_the_rest_is_the_users(
        self, here, blame
    ):
        ann = here.work({"app.txt": text(l3="ann")}, "ann")
        here.work({"app.txt": text(l3="ann", l10="bob")}, "bob")
        done = here.applies.apply(PLAN)
        here.write("app.txt", text(l3="ann", l6="you", l10="bob"))
        lines = blame.lines(here.root / "app.txt")
        assert [line.number for line in lines] == list(range(1, 21))
        assert b"\n".join(line.text for line in lines) + b"\n" == here.read("app.txt")
        assert writers(here, blame) == {3: "ann", 10: "bob"}
        origin = lines[2].origin
        assert (origin.plan_id, origin.node, origin.changeset_id) == (PLAN, "node-ann", ann)
        assert (origin.apply_id, origin.applied_at) == (done.id, done.at)

    def test_one_line_is_asked_for_alone(self, here, blame):
        here.work({"app.txt": text(l3="ann", l4="ann")})
        here.applies.apply(PLAN)
        assert writers(here, blame, line=4) == {4: "ann"}
        assert writers(here, blame, line=5) == {}

    def test_lines_of_a_merge_belong_to_those_who_made_them(self, here, blame):
        base = here.begin()
        here.work({"app.txt": text(l3="ann")}, "ann", start=base)
        here.work({"app.txt": text(l15="bob")}, "bob", start=base)
        here.applies.apply(PLAN)
        assert writers(here, blame) == {3: "ann", 15: "bob"}

    def test_line_that_a_person_chose_belongs_to_the_changeset_of_the_conflict(self, here, blame):
        base = here.begin()
        here.work({"app.txt": text(l3="ann")}, "ann", start=base)
        here.work({"app.txt": text(l3="bob")}, "bob", start=base)
        (conflict,) = here.changes.trees.conflicts(PLAN)
        here.changes.trees.resolve(conflict.id, text(l3="both"))
        here.applies.apply(PLAN)
        assert writers(here, blame) == {3: "bob"}

    def test_lines_of_older_plans_are_asked_of_them(self, here, blame):
        here.work({"app.txt": text(l3="ann", l5="ann")}, "ann")
        here.applies.apply(PLAN)
        here.work({"app.txt": text(l3="ann", l5="bob")}, "bob", plan="p-2")
        here.applies.apply("p-2")
        assert writers(here, blame) == {3: "ann", 5: "bob"}

    def test_plans_that_ran_at_the_same_time_know_their_own_lines(self, here, blame):
        here.begin("p-2")
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.apply(PLAN)
        here.work({"app.txt": text(l15="bob")}, "bob", plan="p-2")
        here.applies.apply("p-2")
        assert writers(here, blame) == {3: "ann", 15: "bob"}

    def test_what_is_not_applied_wrote_nothing(self, here, blame):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.apply(PLAN)
        here.work({"app.txt": text(l3="ann", l8="bob")}, "bob")
        here.write("app.txt", text(l3="ann", l8="bob"))
        assert writers(here, blame) == {3: "ann"}

    def test_what_was_taken_back_wrote_nothing(self, here, blame):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.revert(here.applies.apply(PLAN).id)
        here.write("app.txt", text(l3="ann"))
        assert writers(here, blame) == {}

    def test_what_was_put_back_is_dated_by_that(self, here, blame):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.work({"app.txt": text(l3="ann", l8="bob")}, "bob")
        first = here.applies.apply(PLAN)
        undoing = Undo(here.store, here.changes.repository)
        undoing.carry_out(undoing.part_prospect(PLAN, "ann"))
        back = here.applies.apply(PLAN)
        lines = blame.lines(here.root / "app.txt")
        assert [lines[number].origin.apply_id for number in (2, 7)] == [back.id, first.id]

    def test_part_that_was_applied_by_its_path_is_known(self, here, blame):
        here.work({"app.txt": text(l3="ann"), "src/one.py": b"one = 11\n"}, "ann")
        done = here.applies.apply(PLAN, Selection(paths=("app.txt",)))
        (line,) = blame.lines(here.root / "app.txt", 3)
        assert line.origin.apply_id == done.id
        assert writers(here, blame, "src/one.py") == {}

    def test_part_of_some_actors_is_known_without_the_others(self, here, blame):
        base = here.begin()
        here.work({"app.txt": text(l3="ann")}, "ann", start=base)
        here.work({"app.txt": text(l10="bob")}, "bob", start=base)
        here.applies.apply(PLAN, Selection(actors=("bob",)))
        assert writers(here, blame) == {10: "bob"}

    @pytest.mark.parametrize("by_plan", [True, False], ids=["plan", "user"])
    def test_renamed_file_is_followed(self, here, blame, by_plan):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.apply(PLAN)
        if by_plan:
            moved = {"app.txt": None, "moved.txt": text(l3="ann", l9="bob")}
            here.work(moved, "bob", plan="p-2")
            here.applies.apply("p-2")
        else:
            (here.root / "app.txt").rename(here.root / "moved.txt")
        expected = {3: "ann", 9: "bob"} if by_plan else {3: "ann"}
        assert writers(here, blame, "moved.txt") == expected

    def test_last_line_without_an_end_counts(self, here, blame):
        here.work({"end.txt": b"one\r\ntwo"}, "ann")
        here.applies.apply(PLAN)
        assert [line.text for line in blame.lines(here.root / "end.txt")] == [b"one\r", b"two"]
        assert writers(here, blame, "end.txt") == {1: "ann", 2: "ann"}

    def test_name_of_any_bytes_is_a_name(self, here, blame):
        name = os.fsdecode(b"caf\xe9 \n:(glob)*")
        here.work({name: b"one\n"}, "ann")
        here.applies.apply(PLAN)
        assert writers(here, blame, name) == {1: "ann"}

    def test_empty_file_has_no_lines(self, here, blame):
        here.write("empty", "")
        assert blame.lines(here.root / "empty") == ()

    def test_file_is_reached_through_a_link_to_its_folder(self, here, blame, tmp_path):
        here.work({"src/one.py": b"one = 11\n"}, "ann")
        here.applies.apply(PLAN)
        (tmp_path / "link").symlink_to(here.root / "src")
        assert blame.lines(tmp_path / "link" / "one.py", 1)[0].origin.actor == "ann"


class TestWhy:
    @pytest.fixture
    def both(self, here):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.work({"app.txt": text(l3="ann", l5="bob")}, "bob")
        here.applies.apply(PLAN)
        return here

    def test_cost_is_what_the_actor_was_billed_in_the_plan(self, both, blame):
        with DurableCostTracker(both.store) as tracker:
            tracker.record_usage("0.25", Scopes(plan=PLAN, actor="ann"))
            tracker.record_usage("0.06", Scopes(plan=PLAN, actor="ann"))
            tracker.record_usage("9", Scopes(plan="p-2", actor="ann"))
        lines = blame.lines(both.root / "app.txt")
        assert lines[2].origin.cost == Money.of("0.31")
        assert lines[4].origin.cost is None

    def test_cost_is_that_of_the_node_where_bills_name_nodes(self, both, blame):
        """Else every line of a `command` actor would cost what all of them cost together."""
        with DurableCostTracker(both.store) as tracker:
            of_bob = Scopes(plan=PLAN, actor="bob", labels=(f"node={PLAN}/node-bob",))
            tracker.record_usage("0.5", of_bob)
            tracker.record_usage("0.5", Scopes(plan=PLAN, actor="ann"))
            tracker.record_usage("9", Scopes(plan=PLAN, actor="bob", labels=("node=p-1/other",)))
        lines = blame.lines(both.root / "app.txt")
        assert lines[4].origin.cost == Money.of("0.5")
        assert lines[2].origin.cost is None

    def test_what_the_node_was_told_is_told(self, here, blame):
        here.work({"app.txt": text(l3="ann")}, "ann")
        here.applies.apply(PLAN)
        plant(here, '{"nodes": {"node-ann": {"actor": {"command": ["ruff", "format"]}}}}')
        (line,) = blame.lines(here.root / "app.txt", 3)
        assert line.origin.told == {"command": ["ruff", "format"]}

    @pytest.mark.parametrize(
        ("source", "node", "told"),
        [
            ('{"nodes": {"n": {"actor": {"python": "a:b"}}}}', "n[2]", {"python": "a:b"}),
            (
                '{"nodes": {"n": {}}, "defaults": {"actor": {"llm": {"prompt": "x"}}}}',
                "n",
                {"prompt": "x"},
            ),
            ('{"nodes": {"n": {"actor": {"scripted": []}}}}', "n", {}),
            ('{"nodes": {}}', "n", {}),
            ('{"nodes": {}}', None, {}),
        ],
        ids=["instance", "defaults", "scripted", "unknown", "no-node"],
    )
    def test_facts_of_an_author_are_those_of_the_plan(self, here, source, node, told):
        plant(here, source)
        with here.store.read() as connection:
            assert author_facts(connection, PLAN, node) == told
            assert author_facts(connection, "p-9", node) == {}


def plant(here, source: str) -> None:
    values = (PLAN, source, "d", "done", 0.0)
    insert = "INSERT INTO plans (id, source, digest, state, created) VALUES (?, ?, ?, ?, ?)"
    here.store.write(lambda tx: tx.execute(insert, values))


class TestRefusals:
    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("nowhere.txt", "is not there"),
            ("src", "is a folder"),
            ("../outside.txt", "lies outside of the tree"),
            ("noise.log", "is ignored"),
            (".cleveragents/state.db", "is ignored"),
            ("picture", "is binary and has no lines"),
            ("link", "is a link"),
        ],
    )
    def test_what_has_no_lines_of_the_tree_is_refused(self, here, blame, path, why):
        (here.root.parent / "outside.txt").write_text("out\n")
        here.write("noise.log", "noise\n")
        here.write("picture", b"\x89PNG\0")
        (here.root / "link").symlink_to("app.txt")
        with pytest.raises(RequestError, match=why):
            blame.lines(here.root / path)

    @pytest.mark.parametrize("line", [0, 21], ids=str)
    def test_line_beyond_the_file_is_refused(self, here, blame, line):
        with pytest.raises(RequestError, match=f"has the lines 1 to 20, got {line}"):
            blame.lines(here.root / "app.txt", line)

    def test_line_of_an_empty_file_is_refused(self, here, blame):
        here.write("empty", "")
        with pytest.raises(RequestError, match="is empty, got line 1"):
            blame.lines(here.root / "empty", 1)

    def test_looking_changes_nothing(self, here, blame):
        here.work({"app.txt": text(l3="ann"), "run": file("x", 0o100755)})
        here.applies.apply(PLAN)
        events = here.events()
        blame.lines(here.root / "app.txt")
        assert here.events() == events
