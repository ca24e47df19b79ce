"""An apply that is killed at any moment leaves a tree that is entirely old or entirely new."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from cleveragents.domain.changeset import FileMode
from cleveragents.infrastructure.apply.tree_apply import TreeApply
from crash.applier import HOME, NOTE, look, plant, wanted
from crash.harness import FOLDER

#: `nox -s crash` sets it to 1,000; each costs a second or more, so 200 are the most.
KILLS = min(int(os.environ.get("CLEVERAGENTS_KILLS", "8")), 200)
#: A sixth of the files is not touched.
FEW, MANY = 480, 2_400

POINTS = [
    ("after-stage", 1),
    ("after-sync", 1),
    ("after-check", 1),
    ("before-journal", 1),
    ("after-journal", 1),
    ("mid-flip", 1),
    ("mid-flip", 60),
    ("mid-flip", 200),
    ("mid-flip", 400),
    ("after-flip", 1),
    ("before-done", 1),
    ("after-done", 1),
    ("mid-clean", 100),
    ("after-clean", 1),
]
BACK = [("after-mark", 1), ("mid-rollback", 1), ("mid-rollback", 200), ("after-rollback", 1)]


class Ground:
    """One tree that lives through all kills: when an apply succeeds, the next one leads back."""

    def __init__(self, root, files):
        self.root = root
        self.files = files
        plant(root, files)
        self.to = "b"
        self.before = look(root)

    def start(self, *words):
        arguments = [FOLDER / "applier.py", self.root, self.files, self.to, *words]
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def recover(self):
        told = []
        TreeApply(self.root, self.root / HOME, on_recovered=told.append).recover()
        return told

    def judge(self):
        """Return `old` or `new`; fail when it is neither, or when something is left over."""
        assert {one.name for one in (self.root / HOME).iterdir()} <= {".gitignore", "apply.lock"}
        now = look(self.root)
        if now == self.before:
            return "old"
        changes = wanted(self.files, self.to)
        untouched = {path: seen for path, seen in self.before.items() if path not in changes}
        assert {path: now.get(path) for path in untouched} == untouched
        present = {path: change for path, change in changes.items() if change[0] is not None}
        mixed = [path for path in changes if (path in now) != (path in present)]
        mixed += [path for path in now if path not in present and path not in untouched]
        assert not mixed, f"mixed: {mixed[:5]}"
        for path, (content, mode) in present.items():
            assert (now[path][0], FileMode(now[path][1])) == (content, mode), f"mixed: {path}"
        self.to = "a" if self.to == "b" else "b"
        self.before = now
        return "new"


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Ground(tmp_path_factory.mktemp("ground"), FEW)


def begun(process):
    assert process.stdout.readline() == "begin\n"


def finish(process):
    words, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return words.split()


def kill_after(process, seconds):
    """Let it run for a moment, unless it dies by itself; say whether it was killed in time."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    return "end" not in finish(process)


@pytest.mark.parametrize(("point", "time"), POINTS, ids=[f"{p}-{n}" for p, n in POINTS])
def test_tree_is_old_or_new_after_death_at(ground, point, time):
    process = ground.start("apply", point, time)
    finish(process)
    assert process.returncode == -9
    told = ground.recover()
    names = [name for name, _ in POINTS]
    is_new = names.index(point) >= names.index("after-journal")
    is_over = names.index(point) >= names.index("after-done")
    assert [one.outcome for one in told] == ([] if is_over else ["new" if is_new else "old"])
    assert not is_new or is_over or told[0].note == NOTE
    assert ground.judge() == ("new" if is_new else "old")


@pytest.mark.parametrize(("point", "time"), BACK, ids=[f"{p}-{n}" for p, n in BACK])
def test_tree_is_old_after_death_while_it_is_taken_back_at(ground, point, time):
    process = ground.start("fail", point, time)
    finish(process)
    assert process.returncode == -9
    assert [one.outcome for one in ground.recover()] == ["old"]
    assert ground.judge() == "old"


@pytest.mark.parametrize("point", ["mid-flip", "after-flip", "after-done", "mid-clean"])
def test_recovery_that_dies_is_recovered(ground, point):
    finish(ground.start("apply", "mid-flip", 140))
    process = ground.start("recover", point, 80 if point.startswith("mid") else 1)
    finish(process)
    assert process.returncode == -9
    ground.recover()
    assert ground.judge() == "new"


def test_rollback_that_dies_in_recovery_is_recovered(ground):
    finish(ground.start("fail", "mid-rollback", 100))
    finish(ground.start("recover", "mid-rollback", 300))
    ground.recover()
    assert ground.judge() == "old"


def test_tree_is_old_or_new_after_kills_at_random_moments(tmp_path):
    """By the clock, or at a random call; a third hits the recovery of what was killed before."""
    ground, chance, started = Ground(tmp_path, MANY), random.Random(KILLS), time.perf_counter()
    process = ground.start("apply")
    begun(process)
    begin = time.perf_counter()
    assert "end" in finish(process)
    length_s = time.perf_counter() - begin
    outcomes, in_time = [ground.judge()], 0
    for number in range(KILLS):
        what = "fail" if number % 4 == 3 else "apply"
        calls = ("any", chance.randrange(1, 34_000)) if number % 2 else ()
        process = ground.start(what, *calls)
        begun(process)
        in_time += kill_after(process, 60 if calls else chance.random() * length_s)
        if number % 3 == 2:
            process = ground.start("recover", "any", chance.randrange(1, 20_000))
            finish(process)
        ground.recover()
        outcomes.append(ground.judge())
    print(f"{KILLS} kills, {in_time} in time, {outcomes.count('new') - 1} new,", end=" ")
    print(f"{outcomes.count('old')} old, {time.perf_counter() - started:.0f} s")
    assert in_time > KILLS // 2
    assert set(outcomes) == {"old", "new"}


def test_these_checks_catch_an_apply_without_a_journal(tmp_path):
    """The planted bug must be seen as what it is: neither old nor new."""
    ground = Ground(tmp_path, FEW)
    process = ground.start("bare", "mid-flip", 200)
    finish(process)
    assert process.returncode == -9
    ground.recover()
    with pytest.raises(AssertionError, match="mixed"):
        ground.judge()


def test_two_processes_apply_one_after_the_other(ground):
    processes = [ground.start("wait") for _ in range(2)]
    for process in processes:
        begun(process)
    # Both have looked at the old tree by now.
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    words = sorted(finish(process) for process in processes)
    # The second compared with the old tree, so it is refused; or it waited too long.
    assert words in ([["CA4102", "end"], ["end"]], [["CA4104", "end"], ["end"]])
    assert ground.judge() == "new"
