"""What all-or-nothing costs: our apply of 5,000 changed files against `git apply` of the same.

A repository of 20,000 files of about 4 KB, each round on fresh copies on the same disk, the two
in turns. Ours is given the new contents as bytes, makes everything durable twice (before the
point of no return, and before it says done) and compares every file with what was seen;
`git apply` does none of this, and syncs nothing. What it costs to read these contents from git
by one `git cat-file --batch` instead, while they are staged, is printed apart.
Before each turn the disk is synced, so that nobody pays for the copies. These are removed at the
end only: ext4 avoids inodes that were freed a moment ago, which makes whoever comes next slow.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from _yardstick import Goals
from cleveragents.infrastructure.apply.survey import signatures
from cleveragents.infrastructure.apply.target import Target
from cleveragents.infrastructure.apply.tree_apply import TreeApply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

FOLDERS: Final = 400
FILES: Final = 50
CHANGED: Final = 5_000
ROUNDS: Final = 5
#: The last named point of each phase, as the engine passes them.
PHASES: Final = {
    "after-stage": "stage",
    "after-sync": "sync the staged",
    "before-journal": "compare, prepare the journal",
    "after-journal": "make the journal valid",
    "after-flip": "flip",
    "before-done": "verify, sync the tree",
    "after-done": "drop the journal",
    "after-clean": "remove the old files",
}


def git(folder: Path, *words: str) -> bytes:
    """Run git in a folder, untouched by the settings of whoever runs this."""
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE
    ).stdout


def make_repository(folder: Path) -> tuple[Path, dict[str, str]]:
    """Commit 20,000 files and return the patch of 5,000 of them, and their new blobs by path."""
    chance = random.Random(1)
    words = [f"{chance.getrandbits(48):x}" for _ in range(2_000)]
    paths = [f"p{d % 20}/d{d}/f{f}.txt" for d in range(FOLDERS) for f in range(FILES)]
    texts = {}
    for path in paths:
        lines = [" ".join(chance.choices(words, k=6)) for _ in range(50)]
        texts[path] = lines
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("\n".join(lines) + "\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")
    for path in chance.sample(paths, CHANGED):
        lines = texts[path]
        lines[10], lines[40] = "changed here", "and there"
        (folder / path).write_text("\n".join(lines) + "\n")
    git(folder, "add", "-A")
    patch = folder.parent / "changes.patch"
    patch.write_bytes(git(folder, "diff", "--cached", "--binary"))
    rows = git(folder, "diff", "--cached", "--raw", "--no-abbrev", "-z").decode().split("\0")
    blobs = {path: row.split()[3] for row, path in zip(rows[::2], rows[1::2], strict=False)}
    git(folder, "commit", "-qm", "after")
    git(folder, "checkout", "-q", "HEAD~")
    git(folder, "repack", "-adq")
    return patch, blobs


def contents(repository: Path, blobs: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Read blobs one after the other from one process of git."""
    with tempfile.TemporaryFile() as asked:  # a pipe would fill while nobody reads the answers
        asked.write("".join(f"{blob}\n" for blob in blobs.values()).encode())
        asked.seek(0)
        with subprocess.Popen(
            ["git", "cat-file", "--batch", "--buffer"],
            cwd=repository,
            stdin=asked,
            stdout=subprocess.PIPE,
        ) as reader:
            assert reader.stdout is not None
            for path in blobs:
                size = int(reader.stdout.readline().split()[2])
                yield path, reader.stdout.read(size + 1)[:-1]


def ours(root: Path, targets: Iterable[Target]) -> dict[str, float]:
    """Apply, and return the seconds of each phase."""
    spent: dict[str, float] = {}
    last = time.perf_counter()

    def passed(point: str) -> None:
        nonlocal last
        if point in PHASES:
            now = time.perf_counter()
            spent[point] = spent.get(point, 0.0) + now - last
            last = now

    TreeApply(root, root / ".cleveragents", fault=passed).apply("bench", targets)
    return spent


def seconds(work: Callable[[], object]) -> float:
    """Measure one turn on a disk that has nothing else to write of ours."""
    os.sync()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def one_round(folder: Path, repository: Path, patch: Path, blobs: dict[str, str]) -> list[float]:
    """Return the seconds of both, of reading, and of our phases, each on a fresh copy."""
    folder.mkdir()
    copies = folder / "git", folder / "ours"
    for copy in copies:
        subprocess.run(["cp", "-a", repository, copy], check=True)
    theirs = seconds(lambda: git(copies[0], "apply", str(patch)))
    started = time.perf_counter()
    news = dict(contents(copies[1], blobs))
    reading = time.perf_counter() - started
    targets = [
        Target(path, news[path], None, seen)
        for path, seen in zip(news, signatures(copies[1], news), strict=True)
    ]
    phases: dict[str, float] = {}
    mine = seconds(lambda: phases.update(ours(copies[1], targets)))
    for path in blobs:
        assert (copies[0] / path).read_bytes() == (copies[1] / path).read_bytes(), path
    return [theirs, mine, reading, *(phases[point] for point in PHASES)]


def main() -> None:
    """Measure, print and judge."""
    goals = Goals()
    base = Path(tempfile.mkdtemp(dir=Path.cwd(), prefix=".bench-apply-"))
    try:
        repository = base / "repository"
        patch, blobs = make_repository(repository)
        rounds = [
            one_round(base / str(number), repository, patch, blobs) for number in range(ROUNDS)
        ]
    finally:
        shutil.rmtree(base)
    middle = [statistics.median(column) for column in zip(*rounds, strict=True)]
    print(f"{CHANGED:,} of {FOLDERS * FILES:,} files, median of {ROUNDS} rounds:")
    print(f"  git apply (syncs nothing)          {middle[0] * 1e3:7.0f} ms")
    print(f"  ours (durable, all or nothing)     {middle[1] * 1e3:7.0f} ms")
    for name, spent in zip(PHASES.values(), middle[3:], strict=True):
        print(f"    {name:<32} {spent * 1e3:7.0f} ms   {spent / middle[1]:4.0%}")
    with_reading = statistics.median((one[1] + one[2]) / one[0] for one in rounds)
    print(f"  reading the contents from git      {middle[2] * 1e3:7.0f} ms", end="   ")
    print(f"(with it {with_reading:.2f} of git apply)")
    ratio = statistics.median(mine / theirs for theirs, mine, *_ in rounds)
    goals.at_most("5,000-file apply, ratio to git apply", ratio, 1.5)
    goals.finish()


if __name__ == "__main__":
    main()
