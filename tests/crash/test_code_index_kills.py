"""A process that is killed while it indexes leaves an index that is whole, or built again."""

from __future__ import annotations

import random
import subprocess
import sys

from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from crash.harness import FOLDER
from indexkit import LATER, PATIENT, everything, fresh_view, view_of, write

KILLS = 4


def test_index_is_never_wrong_after_death(tmp_path):
    chance = random.Random(3)
    root, cache = tmp_path / "tree", tmp_path / "cache"
    words = ["alpha", "beta", "gamma", "def alpha():", "    return beta"]
    write(root, {f"f{n}.py": "\n".join(chance.choices(words, k=40)) for n in range(150)})
    died = 0
    for number in range(KILLS):
        write(root, {f"f{number}.py": f"alpha {number}\n"})
        died += _killed_while_indexing(root, cache, wait_s=0.05 * (number + 1))
    with StoredCodeIndex(cache, limits=PATIENT, clocks=LATER) as index:
        view = view_of(index, root)
        assert view.missing == 0
        assert index._storage.trouble is None
        assert everything(view) == everything(fresh_view(root, tmp_path / "other"))
    assert died, "no process died while it worked"


def _killed_while_indexing(root, cache, *, wait_s: float) -> bool:
    """Start a process, kill it some time after it began, and say whether that cut it short."""
    with subprocess.Popen(
        [sys.executable, str(FOLDER / "indexer.py"), str(root), str(cache)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
        return "done" not in process.stdout.read()
