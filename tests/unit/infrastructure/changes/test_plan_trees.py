"""The tree of a plan: whatever is merged at once, nothing is lost and nothing silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings

from cleveragents.domain.conflict import ConflictState
from cleveragents.domain.errors import PlanError, RequestError, SandboxError
from cleveragents.infrastructure.changes import plan_trees as module
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.merge import merge
from cleveragents.infrastructure.git.repository import GitRepository, Write
from cleveragents.infrastructure.sqlite_changesets import SqliteChangesetStore
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together
from unit.infrastructure.changes.plans import FILE, LINK, PROGRAM, Plan, events, text
from unit.infrastructure.git.merge_worlds import by_git, worlds
from unit.infrastructure.git.user_trees import put


def refusal(call, *arguments):
    with pytest.raises(PlanError) as caught:
        call(*arguments)
    return caught.value.code


# -- beginning -----------------------------------------------------------------------------


def test_a_plan_begins_from_the_tree_as_it_stands(trees, root, plan, store):
    put(root, "a", "1")
    tree = trees.begin("p")
    assert tree.base == tree.head
    put(root, "a", "2")
    assert trees.begin("p") == tree == trees.tree_of("p")
    assert plan.files == {"a": b"1"}
    assert events(store, "plan.tree") == ["plan.tree"]


def test_a_plan_that_would_be_read_as_an_option_does_not_begin(trees, store):
    with pytest.raises(RequestError, match="does not begin with `-`, got '-p'"):
        trees.begin("-p")
    assert events(store, "plan.tree") == []


def test_callers_at_once_begin_one_tree_although_each_sees_another(store, repository, root):
    def begin(n):
        put(root, f"f{n}", "1")
        return PlanTrees(store, repository).begin("p")

    found = run_together([partial(begin, n) for n in range(8)])
    assert len(set(found)) == 1
    assert events(store, "plan.tree") == ["plan.tree"]


def test_plans_have_trees_of_their_own(trees, changesets, repository):
    one, other = (Plan(trees, changesets, repository, name) for name in ("one", "other"))
    one.merged({"a": b"1"})
    other.merged({"b": b"1"})
    assert (one.files, other.files) == ({"a": b"1"}, {"b": b"1"})
    assert len(trees.merges("one")) == 1


def test_unknown_names_are_refused(trees, plan, changesets):
    plan.trees.begin("p")
    for name in ("nothing", "\udce9"):
        assert refusal(trees.tree_of, name) == "CA4107"
        assert refusal(trees.merge, name) == "CA4107"
        assert refusal(trees.reject, name) == "CA4107"
        assert refusal(trees.conflict, name) == "CA4107"
        assert refusal(trees.resolve, name, "ours") == "CA4107"
        assert refusal(trees.seal, "p", name, "s", "t") == "CA4107"
        assert refusal(trees.seal, name, changesets.start("p"), "s", "t") == "CA4107"
        assert not trees.is_sealed(name)
    assert trees.merges("nothing") == ()
    assert trees.conflicts("nothing") == ()


def test_a_changeset_is_not_sealed_into_another_plan(trees, changesets):
    trees.begin("p")
    assert refusal(trees.seal, "p", changesets.start("q"), "s", "t") == "CA4108"


# -- merging -------------------------------------------------------------------------------


def test_the_first_changeset_is_taken_as_it_is(plan, store):
    start = plan.trees.begin("p").head
    outcome = plan.merged({"a": b"1"}, actor="ann")
    assert (outcome.state, outcome.conflicts) == ("merged", ())
    [row] = plan.trees.merges("p")
    assert (row.start, row.theirs, row.head, row.merged) == (start, outcome.head, outcome.head, 1)
    assert (row.actor, row.node, row.state) == ("ann", "n-ann", "merged")
    assert plan.trees.tree_of("p").base == start
    assert events(store, "changeset.sealed", "changeset.merged") == [
        "changeset.sealed",
        "changeset.merged",
    ]


def test_changesets_of_one_start_are_merged_in_the_order_of_their_coming(plan):
    plan.merged({"f": text()})
    start = plan.trees.tree_of("p").head
    late = plan.sealed({"f": text((2, "late"))}, start=start)
    plan.merged({"f": text((9, "early"))}, start=start)
    plan.trees.merge(late)
    assert plan.files == {"f": text((2, "late"), (9, "early"))}
    assert [row.merged for row in plan.trees.merges("p")] == [1, 3, 2]


def test_merging_and_sealing_again_changes_nothing(plan, store):
    changeset_id = plan.sealed({"a": b"1"})
    first = plan.trees.merge(changeset_id)
    plan.merged({"b": b"1"})
    said = events(store, "changeset.sealed", "changeset.merged")
    assert plan.trees.merge(changeset_id) == first
    plan.trees.seal("p", changeset_id, "other", "other")
    assert events(store, "changeset.sealed", "changeset.merged") == said
    assert plan.files == {"a": b"1", "b": b"1"}
    assert plan.trees.is_sealed(changeset_id)


def test_an_empty_changeset_is_merged_too(plan):
    start = plan.merged({"a": b"1"}).head
    plan.merged({"b": b"1"})
    changeset_id = plan.changesets.start("p")
    plan.trees.seal("p", changeset_id, start, start)
    assert plan.trees.merge(changeset_id).state == "merged"
    assert plan.files == {"a": b"1", "b": b"1"}


@pytest.fixture
def clash(plan):
    """Ann has merged line 3; what Bob made of it is in conflict."""
    plan.merged({"f": text(), "g": text()})
    start = plan.trees.tree_of("p").head
    plan.merged({"f": text((3, "ann"))}, actor="ann", start=start)
    return plan.merged({"f": text((3, "bob")), "new": b"1"}, actor="bob", start=start)


def test_a_conflict_leaves_the_tree_and_keeps_every_version(plan, clash, store):
    assert clash.state == "conflicted"
    assert plan.files == {"f": text((3, "ann")), "g": text()}
    [conflict] = clash.conflicts
    assert plan.trees.conflicts("p") == plan.trees.conflicts() == (conflict,)
    assert plan.trees.conflict(conflict.id) == conflict
    assert (conflict.path, conflict.kind, conflict.state) == ("f", "contents", ConflictState.OPEN)
    assert (conflict.ours.actor, conflict.theirs.actor) == ("ann", "bob")
    assert (conflict.ours.lines, conflict.theirs.lines) == (((3, 3),), ((3, 3),))
    assert conflict.theirs.changeset == clash.changeset_id
    sides = (conflict.base, conflict.ours, conflict.theirs)
    assert list(plan.repository.read([side.content_id for side in sides])) == [
        text(),
        text((3, "ann")),
        text((3, "bob")),
    ]
    assert events(store, "conflict.found") == ["conflict.found"]
    assert plan.trees.merges("p")[-1].state == "conflicted"


@pytest.mark.parametrize(
    ("take", "found"),
    [("ours", text((3, "ann"))), ("theirs", text((3, "bob"))), (b"by hand\n", b"by hand\n")],
    ids=["ours", "theirs", "content"],
)
def test_a_choice_merges_the_whole_changeset(plan, clash, store, take, found):
    [conflict] = clash.conflicts
    outcome = plan.trees.resolve(conflict.id, take)
    assert (outcome.state, outcome.head) == ("merged", plan.trees.tree_of("p").head)
    assert plan.files == {"f": found, "g": text(), "new": b"1"}
    assert plan.trees.conflict(conflict.id).state == ConflictState.RESOLVED
    assert events(store, "conflict.resolved", "changeset.merged")[-2:] == [
        "conflict.resolved",
        "changeset.merged",
    ]
    assert refusal(plan.trees.resolve, conflict.id, "ours") == "CA4108"


def test_a_choice_must_be_one(plan, clash):
    with pytest.raises(RequestError, match="mine"):
        plan.trees.resolve(clash.conflicts[0].id, "mine")


def test_a_choice_holds_although_the_tree_moved_elsewhere(plan, clash):
    plan.merged({"g": text((5, "meanwhile"))})
    assert plan.trees.resolve(clash.conflicts[0].id, "theirs").state == "merged"
    assert plan.files == {"f": text((3, "bob")), "g": text((5, "meanwhile")), "new": b"1"}


def test_a_choice_is_not_stretched_to_versions_that_nobody_saw(plan, clash):
    plan.merged({"f": text((3, "carl"))}, actor="carl")
    [first] = clash.conflicts
    outcome = plan.trees.resolve(first.id, "theirs")
    assert outcome.state == "conflicted"
    [second] = outcome.conflicts
    assert (second.id != first.id, second.ours.actor) == (True, "carl")
    assert plan.files["f"] == text((3, "carl"))
    assert plan.trees.resolve(second.id, "ours").state == "merged"
    assert plan.files["f"] == text((3, "carl"))
    assert [one.choice for one in plan.trees.conflicts("p")] == ["theirs", "ours"]


def test_an_open_conflict_that_changed_gives_way_to_what_it_became(plan, clash):
    plan.merged({"f": text((3, "carl"))}, actor="carl")
    again = plan.trees.merge(clash.changeset_id)
    states = [one.state for one in plan.trees.conflicts("p")]
    assert (again.state, states) == ("conflicted", [ConflictState.GONE, ConflictState.OPEN])
    assert refusal(plan.trees.resolve, clash.conflicts[0].id, "ours") == "CA4108"


def test_a_conflict_goes_when_the_tree_came_to_agree(plan, clash):
    plan.merged({"f": text((3, "bob"))})
    assert plan.trees.merge(clash.changeset_id).state == "merged"
    assert plan.files["new"] == b"1"


def test_trying_again_in_vain_keeps_the_conflict_that_people_know(plan, clash, store):
    again = plan.trees.merge(clash.changeset_id)
    assert again == clash
    assert len(plan.trees.conflicts("p")) == 1
    assert events(store, "conflict.found") == ["conflict.found"]


def test_a_choice_made_while_a_merge_is_worked_out_is_not_forgotten(
    plan, clash, store, monkeypatch
):
    [conflict] = clash.conflicts

    def slow(*arguments):
        monkeypatch.setattr(module, "merge", merge)
        # As another process would: it waits for no turn.
        PlanTrees(store, plan.repository).resolve(conflict.id, "theirs")
        return merge(*arguments)

    monkeypatch.setattr(module, "merge", slow)
    assert plan.trees.merge(clash.changeset_id).state == "merged"
    assert plan.files["f"] == text((3, "bob"))
    assert plan.trees.conflict(conflict.id).choice == "theirs"


def test_several_conflicts_wait_for_each_other(plan):
    start = plan.merged({"f": text(), "g": text(), "h": b"\0a"}).head
    plan.merged({"f": text((3, "a")), "g": None, "h": b"\0b"}, start=start)
    theirs = {"f": text((3, "b")), "g": text((1, "b")), "h": b"\0c", "i": b"1"}
    outcome = plan.merged(theirs, start=start)
    assert [one.kind for one in outcome.conflicts] == ["contents", "modify/delete", "binary"]
    f, g, h = (one.id for one in outcome.conflicts)
    half = plan.trees.resolve(g, "theirs")
    assert (half.state, [one.id for one in half.conflicts]) == ("conflicted", [f, h])
    assert "i" not in plan.files
    plan.trees.resolve(f, b"both\n")
    assert plan.trees.resolve(h, "ours").state == "merged"
    assert plan.files == {"f": b"both\n", "g": text((1, "b")), "h": b"\0b", "i": b"1"}


def test_choosing_a_deletion_deletes(plan):
    start = plan.merged({"f": text()}).head
    plan.merged({"f": None}, start=start)
    outcome = plan.merged({"f": text((3, "b"))}, start=start)
    plan.trees.resolve(outcome.conflicts[0].id, "ours")
    assert plan.files == {}


@pytest.mark.parametrize(
    ("take", "found"),
    [
        ("ours", {"t/x": b"1"}),
        ("theirs", {"t": b"theirs\n"}),
        (b"hand\n", {"t": b"hand\n"}),
    ],
    ids=["folder", "file", "content"],
)
def test_a_folder_or_a_file_can_be_chosen_and_no_name_of_git_is_left(plan, take, found):
    start = plan.merged({"t": b"base\n"}).head
    plan.merged({"t": None, "t/x": b"1"}, start=start)
    outcome = plan.merged({"t": b"theirs\n"}, start=start)
    [conflict] = outcome.conflicts
    assert (conflict.path, conflict.kind) == ("t", "file/directory")
    plan.trees.resolve(conflict.id, take)
    assert plan.files == found


@pytest.mark.parametrize(
    ("take", "mode", "data"),
    [("ours", LINK, b"x"), ("theirs", PROGRAM, b"p"), (b"hand", PROGRAM, b"hand")],
    ids=["link", "file", "content"],
)
def test_a_link_or_a_file_can_be_chosen(plan, take, mode, data):
    """What a person writes is a file, unless there are but links."""
    start = plan.merged({}).head
    plan.merged({"t": Write(LINK, b"x")}, start=start)
    outcome = plan.merged({"t": Write(PROGRAM, b"p")}, start=start)
    head = plan.trees.resolve(outcome.conflicts[0].id, take).head
    [(path, blob)] = plan.repository.files(head).items()
    assert (path, blob.mode, plan.files) == ("t", mode, {"t": data})


def test_links_alone_stay_links_whatever_is_written(plan):
    start = plan.merged({"t": Write(LINK, b"x")}).head
    plan.merged({"t": Write(LINK, b"y")}, start=start)
    outcome = plan.merged({"t": Write(LINK, b"z")}, start=start)
    head = plan.trees.resolve(outcome.conflicts[0].id, b"w").head
    assert plan.repository.files(head)["t"].mode == LINK


def test_a_rejected_changeset_stays_out(plan, clash, store):
    plan.trees.reject(clash.changeset_id)
    plan.trees.reject(clash.changeset_id)
    assert events(store, "changeset.rejected") == ["changeset.rejected"]
    assert plan.trees.merges("p")[-1].state == "rejected"
    assert [one.state for one in plan.trees.conflicts("p")] == [ConflictState.GONE]
    assert refusal(plan.trees.merge, clash.changeset_id) == "CA4108"
    assert refusal(plan.trees.resolve, clash.conflicts[0].id, "ours") == "CA4108"
    assert "new" not in plan.files


def test_rejecting_keeps_the_choices_that_were_made(plan):
    start = plan.merged({"f": text(), "g": text()}).head
    plan.merged({"f": text((1, "a")), "g": text((1, "a"))}, start=start)
    outcome = plan.merged({"f": text((1, "b")), "g": text((1, "b"))}, start=start)
    plan.trees.resolve(outcome.conflicts[0].id, "theirs")
    plan.trees.reject(outcome.changeset_id)
    assert [(one.state, one.choice) for one in plan.trees.conflicts("p")] == [
        (ConflictState.RESOLVED, "theirs"),
        (ConflictState.GONE, None),
    ]


def test_what_is_merged_cannot_be_rejected(plan):
    outcome = plan.merged({"a": b"1"})
    assert refusal(plan.trees.reject, outcome.changeset_id) == "CA4108"


def test_a_merge_that_is_rejected_meanwhile_does_not_count(plan, monkeypatch):
    plan.merged({"a": b"1"})
    start = plan.trees.tree_of("p").base
    changeset_id = plan.sealed({"b": b"1"}, start=start)

    def slow(*arguments):
        plan.trees.reject(changeset_id)
        return merge(*arguments)

    monkeypatch.setattr(module, "merge", slow)
    assert refusal(plan.trees.merge, changeset_id) == "CA4108"
    assert plan.files == {"a": b"1"}


def test_a_conflict_with_the_users_own_lines_names_no_changeset(plan, root):
    put(root, "f", text())
    start = plan.trees.begin("p").head
    changeset_id = plan.changesets.start("p")
    head = plan.repository.commit(start, {"f": Write(FILE, text((3, "unknown")))})
    plan.trees.seal("p", changeset_id, start, head)
    plan.trees.merge(changeset_id)
    [conflict] = plan.merged({"f": text((3, "b"))}, start=start).conflicts
    assert conflict.ours.changeset is None


def test_what_git_refuses_leaves_the_tree(plan):
    plan.merged({"a": b"1"})
    head = plan.trees.tree_of("p").head
    changeset_id = plan.changesets.start("p")
    alone = plan.repository.commit_tree(plan.repository.tree_of(head))
    plan.trees.seal("p", changeset_id, alone, alone)
    with pytest.raises(SandboxError, match="unrelated"):
        plan.trees.merge(changeset_id)
    assert plan.trees.tree_of("p").head == head


# -- at once -------------------------------------------------------------------------------


def merge_at_once(plan, store, count=12):
    """Merge in threads that know of each other as little as processes do."""
    start = plan.merged({"f": text(lines=4 * count)}).head
    sealed = [
        plan.sealed({"f": text((4 * n + 2, f"by {n}"), lines=4 * count)}, start=start)
        for n in range(count)
    ]
    mergers = [PlanTrees(store, plan.repository) for _ in sealed]
    jobs = [partial(merger.merge, one) for merger, one in zip(mergers, sealed, strict=True)]
    outcomes = run_together(jobs)
    assert {one.state for one in outcomes} == {"merged"}
    return sum(b"by %d\n" % n in plan.files["f"] for n in range(count))


def test_threads_merge_one_file_and_lose_nothing(plan, store):
    assert merge_at_once(plan, store) == 12
    assert sorted(row.merged for row in plan.trees.merges("p")) == list(range(1, 14))


def test_without_the_check_of_the_head_edits_are_lost(plan, store, monkeypatch):
    """The racy twin: a test that cannot fail proves nothing."""
    monkeypatch.setattr(module._Seen, "is_still_so", lambda *_: True)
    assert merge_at_once(plan, store) < 12


def test_threads_of_one_process_do_not_redo_each_others_merges(plan, monkeypatch):
    start = plan.merged({"f": b"1"}).head
    sealed = [plan.sealed({f"f{n}": b"1"}, start=start) for n in range(8)]
    done = []
    monkeypatch.setattr(module, "merge", lambda *those: done.append(those) or merge(*those))
    run_together([partial(plan.trees.merge, one) for one in sealed])
    assert len(done) == 7, "the first needs none"


MERGER = """
import sys
from pathlib import Path
from cleveragents.infrastructure.changes.plan_trees import PlanTrees
from cleveragents.infrastructure.git.repository import GitRepository
from cleveragents.infrastructure.store import Store
root, *changesets = sys.argv[1:]
home = Path(root) / ".cleveragents"
with Store(home / "state.db") as store:
    trees = PlanTrees(store, GitRepository(Path(root), home))
    print("ready", flush=True)
    sys.stdin.readline()
    for changeset in changesets:
        assert trees.merge(changeset).state == "merged"
"""


def start_process(root, program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, str(root), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_eight_processes_merge_one_file_and_lose_nothing(plan, root):
    start = plan.merged({"f": text(lines=96)}).head
    sealed = [
        plan.sealed({"f": text((4 * n + 2, f"by {n}"), lines=96)}, start=start) for n in range(24)
    ]
    processes = [start_process(root, MERGER, *sealed[n::8]) for n in range(8)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert all(b"by %d\n" % n in plan.files["f"] for n in range(24))
    assert sorted(row.merged for row in plan.trees.merges("p")) == list(range(1, 26))


DYING = MERGER.replace(
    'with Store(home / "state.db") as store:',
    "import os, signal\n"
    "def die(point):\n"
    "    if point == 'before-commit' and armed: os.kill(os.getpid(), signal.SIGKILL)\n"
    "armed = []\n"
    'with Store(home / "state.db", fault=die) as store:',
).replace("    sys.stdin.readline()\n", "    sys.stdin.readline()\n    armed.append(1)\n")


def test_a_kill_between_the_objects_and_the_transaction_leaves_the_old_tree(plan, root):
    plan.merged({"a": b"1"})
    before = plan.trees.tree_of("p")
    changeset_id = plan.sealed({"b": b"1"}, start=before.base)
    process = start_process(root, DYING, changeset_id)
    process.communicate("\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert plan.trees.tree_of("p") == before
    assert plan.trees.merges("p")[-1].state == "sealed"
    assert plan.files == {"a": b"1"}
    assert plan.trees.merge(changeset_id).state == "merged"
    assert plan.files == {"a": b"1", "b": b"1"}


# -- against git itself --------------------------------------------------------------------


def by_plan(folder, tree, sides):
    """Merge what actors made into a plan's tree; a changeset in conflict stays out of it."""
    for path, data in tree.items():
        put(folder, path, data)
    repository = GitRepository(folder, folder / ".cleveragents")
    with Store(folder / ".cleveragents" / "state.db") as store:
        trees = PlanTrees(store, repository)
        plan = Plan(trees, SqliteChangesetStore(store), repository)
        start = trees.begin("p").head
        sealed = [plan.sealed(dict.fromkeys(tree) | side, start=start) for side in sides]
        outcomes = [trees.merge(one).state for one in sealed]
        return outcomes, {path: ("-", data) for path, data in plan.files.items()}


@settings(max_examples=int(os.environ.get("MERGE_EXAMPLES", "8")))
@given(world=worlds())
def test_merges_are_those_of_git_or_both_are_conflicts(world):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        assert by_plan(Path(one), *world) == by_git(Path(other), *world)
