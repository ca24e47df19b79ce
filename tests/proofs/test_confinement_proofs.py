"""Whether commands can be confined is answered and told once, in every order of two threads."""

from __future__ import annotations

from cleveragents.infrastructure.sandbox.confinement import Bubblewrap, Confiner
from proofs.racekit import prove, refute, without_lock

#: Two looks that differ, so that it shows whose answer was kept.
ANSWERS = ("it is not there", "it has no permission")


class World:
    """A confiner, what it told, and what each look finds."""

    def __init__(self, kind=Confiner, answers=ANSWERS):
        self.told = []
        self.looks = list(answers)
        self.confiner = kind(on_notice=self.told.append, probe=self.look)

    def look(self):
        return self.looks.pop()

    def without_lock(self):
        without_lock(self.confiner, "_lock")
        return self


class MemberTwin(Confiner):
    """Racy: asks whether anything was answered yet by the truth of a list, which is hard to see."""

    def __init__(self, **options):
        super().__init__(**options)
        self._answers = []

    def _find_out(self):
        fresh = self._probe()
        if not self._answers:
            self._answers.append(fresh)
            self._on_notice(fresh)
        return self._answers[0]


def ask(world):
    return world.confiner.bubblewrap()


def told_once(arena):
    return len(arena.subject.told) == 1 and list(arena.returned.values()) == [None] * 2


def answered_alike(arena):
    """The looks differ: one found it missing, one found it working."""
    answers = list(arena.returned.values())
    return len(set(answers)) == 1 and len(arena.subject.told) == (answers[0] is None)


def test_it_is_told_exactly_once():
    prove(World, [ask, ask], told_once)


def test_all_get_the_first_answer():
    answers = (ANSWERS[0], Bubblewrap("bwrap", ()))
    prove(lambda: World(answers=answers), [ask, ask], answered_alike)


def test_without_its_lock_it_is_told_twice():
    refute(lambda: World().without_lock(), [ask, ask], told_once)


def test_a_twin_that_asks_a_list_is_caught():
    refute(lambda: World(MemberTwin), [ask, ask], told_once)
