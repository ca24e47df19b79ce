"""Whatever fails or dies, at whatever call: the tree is entirely old or entirely new."""

from __future__ import annotations

import errno
import itertools
import os
import random
from contextlib import suppress

import pytest

from cleveragents.domain.errors import CleverAgentsError
from unit.infrastructure.apply.forest import (
    FEW,
    HOME,
    check_clean,
    engine,
    look,
    old_or_new,
    plant,
    targets,
)

pytestmark = pytest.mark.long

ERRNOS = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO)


class Death(BaseException):
    """The process is gone: nothing after it reaches the file system."""


def at_call(number, failure, *, ever_after=False):
    """Raise at the n-th call of the file system, once or from then on."""
    passed = itertools.count(1)

    def fault(point):
        if not point.startswith("call:"):
            return
        reached = next(passed)
        if reached == number or (ever_after and reached > number):
            raise failure()

    fault.passed = lambda: next(passed) - 1
    return fault


def oserror(number):
    code = ERRNOS[number % len(ERRNOS)]
    return lambda: OSError(code, os.strerror(code))


def each_tree(tmp_path):
    """A tree for each number: a fresh one when the last is not as it was."""
    root, before = tmp_path, {}
    for number in itertools.count(1):
        if not before or look(root) != before:
            root = tmp_path / str(number)
            plant(root, FEW)
            (root / HOME).mkdir()
            before = look(root)
        yield number, root, before


@pytest.mark.usefixtures("quick", "road")
def test_tree_is_old_after_failure_of_any_one_call(tmp_path):
    outcomes = set()
    for number, root, before in each_tree(tmp_path):
        fault = at_call(number, oserror(number))
        code = None
        try:
            engine(root, fault=fault).apply("p1", targets(root, FEW))
        except CleverAgentsError as error:
            code = error.code
        # Without an error the rest was removed later, or the failure is beyond the last call.
        outcome = old_or_new(root, before, FEW)
        assert (code, outcome) in {("CA4105", "old"), (None, "new")}, number
        outcomes.add(outcome)
        engine(root).recover()
        check_clean(root)
        if fault.passed() < number:
            break
    assert outcomes == {"old", "new"}
    assert number > 80


@pytest.mark.usefixtures("quick", "road")
def test_journal_is_kept_when_the_disk_fails_for_good_and_recovery_ends_it(tmp_path):
    codes = set()
    for number, root, before in each_tree(tmp_path):
        fault = at_call(number, oserror(number), ever_after=True)
        try:
            engine(root, fault=fault).apply("p1", targets(root, FEW), note=b"n")
        except CleverAgentsError as error:
            codes.add(error.code)
            # If not even the decision to go back can be written, recovery goes forward.
            outcomes = {"old", "new"} if error.code == "CA4106" else {"old"}
        else:
            outcomes = {"new"}
        told = []
        engine(root, on_recovered=told.append).recover()
        outcome = old_or_new(root, before, FEW)
        assert outcome in outcomes, number
        assert [(one.outcome, one.note) for one in told] in ([(outcome, b"n")], [("old", b"")], [])
        check_clean(root)
        if fault.passed() < number:
            break
    assert codes == {"CA4105", "CA4106"}


@pytest.mark.usefixtures("quick", "road")
def test_recovery_ends_an_apply_that_died_before_any_call(tmp_path):
    outcomes = []
    for number, root, before in each_tree(tmp_path):
        fault = at_call(number, Death, ever_after=True)
        try:
            engine(root, fault=fault).apply("p1", targets(root, FEW), note=b"n")
        except Death:
            told = []
            engine(root, on_recovered=told.append).recover()
            outcomes.append(old_or_new(root, before, FEW))
            assert [one.outcome for one in told] in ([outcomes[-1]], []), number
        else:
            break
        check_clean(root)
    # From one moment on, every death leaves a new tree.
    assert outcomes == sorted(outcomes, reverse=True)
    assert set(outcomes) == {"old", "new"}


@pytest.mark.usefixtures("quick", "road")
@pytest.mark.parametrize("first", ["dies", "fails"])
def test_recovery_ends_a_recovery_that_died_before_any_call(tmp_path, first):
    """Either the apply died in its flip, or it failed and died while it was taken back."""
    chance = random.Random(first)
    for number, root, before in each_tree(tmp_path):
        dying = at_call(chance.randrange(50, 150), Death, ever_after=True)
        failing = at_call(chance.randrange(60, 90), oserror(number))

        def both(point, dying=dying, failing=failing):
            dying(point)
            if first == "fails":
                failing(point)

        with suppress(Death, CleverAgentsError):
            engine(root, fault=both).apply("p1", targets(root, FEW))
        again = at_call(number, Death, ever_after=True)
        try:
            engine(root, fault=again).recover()
        except Death:
            engine(root).recover()
        old_or_new(root, before, FEW)
        check_clean(root)
        if number > 80:
            break


@pytest.mark.usefixtures("quick")
def test_these_checks_catch_an_apply_without_a_journal(tmp_path, monkeypatch):
    """The planted bug: the flip begins, and nobody wrote down what it is about."""
    from cleveragents.infrastructure.apply import journal

    monkeypatch.setattr(journal, "commit", lambda *_: None)
    monkeypatch.setattr(journal, "flipped", lambda *_: None)
    mixed = 0
    for number, root, before in each_tree(tmp_path):
        fault = at_call(number, Death, ever_after=True)
        try:
            engine(root, fault=fault).apply("p1", targets(root, FEW))
        except Death:
            engine(root).recover()
            try:
                old_or_new(root, before, FEW)
            except (AssertionError, KeyError):
                mixed += 1
        else:
            break
    assert mixed > 20
