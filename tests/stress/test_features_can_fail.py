"""A scenario about the same moment that passes without the locks promises nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.stress
def test_every_scenario_about_the_same_moment_fails_without_the_locks():
    done = subprocess.run(
        [sys.executable, "-m", "behave", "--tags=@concurrency", "--format=progress"],
        cwd=ROOT,
        env={**os.environ, "CLEVERAGENTS_TWIN": "racy"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    passed, failed = re.search(r"(\d+) scenarios? passed, (\d+) failed", done.stdout).groups()
    assert (int(passed), int(failed) >= 8) == (0, True), done.stdout[-3000:]
