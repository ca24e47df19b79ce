"""Whatever is applied and taken back, in whatever order: the books and the tree agree."""

from __future__ import annotations

import random

import pytest

from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.changes.plan_apply import PlanApply
from cleveragents.infrastructure.changes.selection import Selection
from unit.infrastructure.changes.worlds import LINES, PLAN, world

pytestmark = pytest.mark.long

FILES = ("a.txt", "b.txt", "c.txt")
#: Plans write above, the user below; the line between keeps their places apart.
PLANS_LAST = 14
#: What may be refused: a place that a later apply changed, or that another actor built on.
REFUSALS = {None, "CA4102", "CA4103", "CA4108", "CA4107"}


class Story:
    """Random work, applies, reverts and edits of one plan, with what must hold after each."""

    def __init__(self, here, seed: int) -> None:
        self.here = here
        self.chance = random.Random(seed)
        for path in FILES:
            here.write(path, "".join(f"{line}\n" for line in LINES))
        here.begin()

    def lines(self, commit: str, path: str) -> list[str]:
        repository = self.here.changes.repository
        blob = repository.files(commit, [path])[path]
        return b"".join(repository.read([blob.oid])).decode().splitlines()

    def mine(self, path: str) -> list[str]:
        return self.here.read(path).decode().splitlines()

    def work(self, step: int) -> None:
        path, number = self.chance.choice(FILES), self.chance.randrange(PLANS_LAST)
        lines = self.lines(self.here.changes.trees.tree_of(PLAN).head, path)
        lines[number] = f"plan {step}"
        actor = self.chance.choice(("ann", "bob"))
        self.here.work({path: "".join(f"{line}\n" for line in lines).encode()}, actor)

    def edit(self, step: int) -> None:
        path, number = self.chance.choice(FILES), self.chance.randrange(PLANS_LAST + 1, 20)
        lines = self.mine(path)
        lines[number] = f"mine {step}"
        self.here.write(path, "".join(f"{line}\n" for line in lines))

    def apply(self, _: int) -> None:
        actors = self.chance.choice([(), (), ("ann",), ("bob",)])
        paths = self.chance.choice([(), (), ("a.txt",), ("[bc].txt",)])
        self.here.applies.apply(PLAN, Selection(actors=actors, paths=paths))

    def revert(self, _: int) -> None:
        done = self.here.applies.applies(PLAN)
        if done:
            self.here.applies.revert(self.chance.choice(done).id)

    def go_on(self, step: int) -> None:
        before = {path: self.mine(path)[PLANS_LAST:] for path in FILES}
        act = self.chance.choice([self.work, self.edit, self.apply, self.apply, self.revert])
        refusal = None
        try:
            act(step)
        except PlanError as error:
            refusal = error.code
        assert refusal in REFUSALS
        if act != self.edit:
            assert {path: self.mine(path)[PLANS_LAST:] for path in FILES} == before
        self.check()

    def check(self) -> None:
        level = self.here.applies.level(PLAN)
        for path in FILES:
            told = self.lines(level.commit, path)[:PLANS_LAST]
            assert self.mine(path)[:PLANS_LAST] == told, "the level is what the tree has"


@pytest.mark.parametrize("seed", range(4))
def test_level_is_what_the_tree_has_of_the_plan_whatever_was_done(tmp_path, seed):
    with world(tmp_path / "tree") as here:
        story = Story(here, seed)
        for step in range(16):
            story.go_on(step)
        here.applies.apply(PLAN)
        head = here.changes.trees.tree_of(PLAN).head
        for path in FILES:
            assert story.mine(path)[:PLANS_LAST] == story.lines(head, path)[:PLANS_LAST]


def test_story_notices_a_level_that_forgets_what_was_taken_back(tmp_path, monkeypatch):
    """The planted bug: a revert that leaves the level as it was."""
    monkeypatch.setattr(PlanApply, "_level_without", lambda _, __, done, ___: done[-1].level)
    caught = 0
    for seed in range(6):
        with world(tmp_path / str(seed)) as here:
            story = Story(here, seed)
            try:
                for step in range(16):
                    story.go_on(step)
            except AssertionError:
                caught += 1
                break
    assert caught
