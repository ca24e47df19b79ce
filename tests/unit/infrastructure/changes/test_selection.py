from __future__ import annotations

import os

import pytest

from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.changes.apply_rows import plan_state
from cleveragents.infrastructure.changes.selection import (
    EVERYTHING,
    Level,
    Selection,
    file_counts,
    next_level,
    selected_commit,
    shown,
)
from cleveragents.infrastructure.git.repository import GitRepository
from unit.infrastructure.changes.worlds import PLAN, text, world


@pytest.fixture
def here(tmp_path):
    with world(tmp_path / "tree") as opened:
        yield opened


def state(here):
    with here.store.read() as connection:
        return plan_state(connection, PLAN)[0]


def content(here, commit: str, path: str) -> bytes | None:
    blob = here.changes.repository.files(commit, [path]).get(path)
    return None if blob is None else b"".join(here.changes.repository.read([blob.oid]))


@pytest.mark.parametrize(
    ("given", "path", "meant"),
    [
        ("src", "src/a.py", True),
        ("src/", "src/deep/a.py", True),
        ("./src", "src/a.py", True),
        (".", "any/thing", True),
        ("./", "any/thing", True),
        ("src", "srcs/a.py", False),
        ("src/*.py", "src/deep/a.py", True),
        ("src/*.py", "src/a.txt", False),
        ("[x].txt", "[x].txt", True),
        ("[x].txt", "x.txt", True),
        ("SRC", "src/a.py", False),
        ("", "a", False),
        ("/", "a", False),
        ("-dash", "-dash", True),
        ("new\nline", "new\nline", True),
    ],
)
def test_path_is_a_file_a_folder_or_a_pattern(given, path, meant):
    assert Selection(paths=(given,)).has_path(path) == meant


def test_no_path_means_every_path():
    assert EVERYTHING.has_path("anything")


@pytest.mark.parametrize("path", ["typo.txt", "", "app.tx"])
def test_path_that_the_plan_never_changed_is_a_mistake(here, path):
    here.work({"app.txt": text(l3="ann")})
    with pytest.raises(PlanError, match="changes nothing on the path") as caught:
        selected_commit(here.changes.repository, state(here), Selection(paths=("app.txt", path)))
    assert caught.value.code == "CA4107"


def test_file_that_the_plan_changed_and_changed_back_can_still_be_named(here):
    here.work({"app.txt": text(l3="ann")})
    level = Level(state(here).tree.head)
    here.work({"app.txt": text()})
    found = next_level(here.changes.repository, state(here), level, Selection(paths=("app.txt",)))
    assert content(here, found.commit, "app.txt") == text()


def test_unknown_actor_is_refused(here):
    here.work({"app.txt": text(l3="ann")})
    with pytest.raises(PlanError, match="Actor 'eve' is not known") as caught:
        selected_commit(here.changes.repository, state(here), Selection(actors=("eve",)))
    assert caught.value.code == "CA4107"


def test_actor_that_builds_on_another_cannot_be_taken_alone(here):
    here.work({"app.txt": text(l3="ann")}, "ann")
    here.work({"app.txt": text(l3="bob")}, "bob")
    plan = state(here)
    with pytest.raises(PlanError, match=r"changes of 'bob' to `app\.txt` build on") as caught:
        selected_commit(here.changes.repository, plan, Selection(actors=("bob",)))
    assert caught.value.code == "CA4108"
    both = selected_commit(here.changes.repository, plan, Selection(actors=("bob", "ann")))
    assert both == plan.tree.head


def test_actor_that_builds_on_a_part_that_is_not_applied_cannot_be_added(here):
    here.work({"app.txt": text(l3="ann"), "src/one.py": b"ann\n"}, "ann")
    here.work({"app.txt": text(l3="bob")}, "bob")
    repository, plan = here.changes.repository, state(here)
    other = repository.commit(plan.tree.base, {"src/one.py": None})
    with pytest.raises(PlanError, match="build on those of another actor"):
        next_level(repository, plan, Level(other), Selection(actors=("ann",)))


def test_choice_in_a_conflict_is_part_of_the_actors_changes(here):
    """What was decided against is no change of anybody's any more."""
    base = here.begin()
    here.work({"app.txt": text(l3="ann")}, "ann")
    here.work({"app.txt": text(l3="bob", l10="bob")}, "bob", start=base)
    (conflict,) = here.changes.trees.conflicts(PLAN)
    here.changes.trees.resolve(conflict.id, text(l3="both", l10="bob"))
    repository, plan = here.changes.repository, state(here)
    assert selected_commit(repository, plan, Selection(actors=("ann", "bob"))) == selected_commit(
        repository, plan, EVERYTHING
    )


def test_changesets_that_are_not_merged_are_no_part_of_it(here):
    base = here.begin()
    here.work({"app.txt": text(l3="ann")}, "ann")
    here.work({"app.txt": text(l3="bob")}, "bob", start=base)
    plan = state(here)
    assert content(here, selected_commit(here.changes.repository, plan, EVERYTHING), "app.txt") == (
        text(l3="ann")
    )
    assert selected_commit(here.changes.repository, plan, Selection(actors=("bob",))) == base


def test_level_knows_which_changesets_are_in_it_whole(here):
    ann = here.work({"app.txt": text(l3="ann"), "new.txt": b"new\n"}, "ann")
    bob = here.work({"src/one.py": b"bob\n"}, "bob")
    repository, plan = here.changes.repository, state(here)
    base = Level(plan.tree.base)
    assert next_level(repository, plan, base, EVERYTHING).changesets == {ann, bob}
    assert next_level(repository, plan, base, Selection(actors=("bob",))).changesets == {bob}
    some = next_level(repository, plan, base, Selection(paths=("app.txt",)))
    assert some.changesets == frozenset()
    both = next_level(repository, plan, some, Selection(actors=("ann",)))
    assert both.changesets == {ann}
    assert content(here, both.commit, "new.txt") == b"new\n"


def test_level_that_has_it_all_stays_the_same_commit(here):
    here.work({"app.txt": text(l3="ann")}, "ann")
    repository, plan = here.changes.repository, state(here)
    level = next_level(repository, plan, Level(plan.tree.base), Selection(actors=("ann",)))
    assert next_level(repository, plan, level, Selection(actors=("ann",))) == level


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("src/a.py", "`src/a.py`"),
        ("new\nline", "'new\\nline'"),
        (os.fsdecode(b"caf\xe9"), "`caf\\udce9`"),
    ],
)
def test_path_is_shown_on_one_line(path, told):
    assert shown(path) == told


# -- few calls of git ----------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch):
    made, plain = [], GitRepository.git

    def counted(repository, *arguments, **options):
        made.append(arguments[0])
        return plain(repository, *arguments, **options)

    monkeypatch.setattr(GitRepository, "git", counted)
    return made


def test_files_of_all_changesets_are_counted_by_one_call(here, calls):
    here.work({"app.txt": None, "moved.txt": text(), "new.txt": b"new\n"})
    here.work({"moved.txt": text(), "0" * 40: b"a name like an id\n", "new\nline": b""})
    here.work({"moved.txt": text()})
    repository, rows = here.changes.repository, state(here).merges
    expected = [len(repository.changes(row.start, row.theirs, renames=True)) for row in rows]
    calls.clear()
    assert file_counts(repository, rows) == expected == [2, 2, 0]
    assert calls == ["diff-tree"]
    assert file_counts(repository, ()) == []


def test_steps_of_one_actor_in_a_row_are_merged_at_once(here, calls):
    here.work({"app.txt": text(l3="ann")}, "ann")
    for number in range(4):
        here.work({f"{number}.txt": b"bob\n", "app.txt": text(l3="ann", l18=f"{number}")}, "bob")
    repository, plan = here.changes.repository, state(here)
    calls.clear()
    commit = selected_commit(repository, plan, Selection(actors=("bob",)))
    assert calls.count("merge-tree") == 1
    assert len(calls) < 10
    assert content(here, commit, "app.txt") == text(l18="3")
    assert content(here, commit, "0.txt") == b"bob\n"
