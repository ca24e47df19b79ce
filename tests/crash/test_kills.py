"""What was acknowledged survives SIGKILL at any moment, and nothing is counted twice."""

from __future__ import annotations

import os
import random

import pytest

from crash.harness import Told, check, kill_after, start

#: `nox -s crash` sets it to 1,000.
KILLS = int(os.environ.get("CLEVERAGENTS_KILLS", "50"))


def test_nothing_acknowledged_is_lost_in_random_kills(tmp_path):
    """One store lives through all kills: each process goes on where the dead ones stopped."""
    chance, told = random.Random(KILLS), Told()
    path = tmp_path / "state.db"
    for number in range(KILLS):
        process = start(path, 8)
        told.listen(kill_after(process, chance.randrange(1, 400)))
        if number % 10 == 9 or number == KILLS - 1:
            check(path, told)
    assert told.count > KILLS


@pytest.mark.parametrize("point", ["before-begin", "before-write", "before-commit", "after-commit"])
@pytest.mark.parametrize("time", [1, 7, 40])
def test_store_is_whole_after_death_at(tmp_path, point, time):
    told = Told()
    process = start(tmp_path / "state.db", 4, point, time)
    stdout, errors = process.communicate(timeout=60)
    assert process.returncode == -9, errors
    told.listen(stdout.splitlines())
    check(tmp_path / "state.db", told)
