"""The code index beside reading and tokenising every file once, and beside ripgrep.

    python benchmarks/index.py [--root FOLDER | --few-words] [--files 3000] [--processor]

Without a root, modules of the Python that runs this are copied into a tree; with `--few-words`
the files are made up of so few words that each stands in most of them, the worst for searches.
The yardstick is the least that a search by words needs: every file is read, its words are found
by one regular expression, split into parts, cut to stems and counted per file. Nothing is kept.
Goals are judged by wall time; with `--processor` by the processor time of this process and its
children, which leaves out waiting for disks: for machines that others keep busy. Both are printed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.application.source_tree import read_text, walk
from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.infrastructure.code_index.terms import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

#: Goals: a ratio to the yardstick, and milliseconds.
FIRST_INDEX_MAX: Final = 3.0
UPDATE_MS_MAX: Final = 50.0
QUERY_MS_MAX: Final = 150.0
ROUNDS: Final = 5
FIRST_ROUNDS: Final = 3
TASK: Final = "restore the log level of a handler when the session of a parametrized test ends"


class Spent(NamedTuple):
    """Milliseconds that something took."""

    wall: float
    processor: float


def main() -> int:
    """Measure, print, and say by the exit code whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    tree = parser.add_mutually_exclusive_group()
    tree.add_argument("--root", type=Path)
    tree.add_argument("--few-words", action="store_true", help="make the files up")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--processor", action="store_true", help="judge by processor time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "tree")
        if arguments.few_words:
            _make_up_sources(root, arguments.files)
        elif arguments.root is None:
            _copy_sources(root, arguments.files)
        else:
            # A copy, because one of its files is changed.
            shutil.copytree(arguments.root, root, symlinks=True)
        return _measure(root, Path(scratch), by_processor=arguments.processor)


def _copy_sources(root: Path, files: int) -> None:
    """Copy as many modules as asked for from the Python that runs this: real code, always there."""
    library = Path(sysconfig.get_path("stdlib"))
    for source in sorted(library.rglob("*.py"))[:files]:
        target = root / source.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _make_up_sources(root: Path, files: int) -> None:
    """Write modules of two classes each; their words are those of the task, and 80 more."""
    chance = random.Random(7)  # the same files every time
    syllables = [first + last for first in "bdfgkmst" for last in "aeiou"]
    words = [*TASK.split(), *(one + "nd" for one in syllables), *(one + "lk" for one in syllables)]

    def some(count: int, between: str = "_") -> str:
        return between.join(chance.choices(words, k=count))

    for number in range(files):
        lines = [f'"""{some(12, " ")}."""', ""]
        for _ in range(2):
            lines += [
                "",
                f"class {some(2).title().replace('_', '')}:",
                f'    """{some(8, " ")}."""',
            ]
            for _ in range(4):
                lines += ["", f"    def {some(1)}(self, {some(1)}, {some(1)}=None):"]
                for _ in range(chance.randint(4, 12)):
                    lines.append(f'        {some(2)} = self.{some(2)}({some(3)}, "{some(1)}")')
                lines.append(f"        return {some(2)}")
        target = root / f"package_{number % 40}" / f"{some(2)}_{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _measure(root: Path, scratch: Path, *, by_processor: bool) -> int:
    request = ContextRequest(TASK, root)
    once, first = [], []
    for number in range(FIRST_ROUNDS):  # interleaved; the best of each counts
        once.append(_spent(partial(_read_and_tokenise, root)))
        with StoredCodeIndex(scratch / f"cache-{number}") as index:
            first.append(_spent(partial(index.build, request, StopSignal())))
    updates, queries, searches = [], [], []
    with StoredCodeIndex(scratch / "cache-0") as index:
        paths = index.build(request, StopSignal()).paths
        sizes = sorted(((root / path).stat().st_size, path) for path in paths)
        target = root / sizes[len(sizes) // 2][1]
        for number in range(ROUNDS):
            changed = f"{target.read_text(encoding='utf-8')}\n# changed {number}\n"
            target.write_text(changed, encoding="utf-8")
            updates.append(_spent(partial(index.view, request, StopSignal())))
            queries.append(_spent(partial(_ask, index, request)))
            searches.append(_spent(partial(_ripgrep, root)))
    once_best, first_best = _best(once), _best(first)
    rows = [
        ("first index / read and tokenise once", _ratio(first_best, once_best), FIRST_INDEX_MAX),
        ("update of one file, ms", _middle(updates), UPDATE_MS_MAX),
        ("warm request, all searches, ms", _middle(queries), QUERY_MS_MAX),
    ]
    print(f"{len(paths)} files; read and tokenised once in {once_best.wall:.0f} ms of wall time\n")
    print(f"{'':40} {'wall':>8} {'processor':>9}")
    missed = False
    for name, figure, goal in rows:
        met = (figure.processor if by_processor else figure.wall) <= goal
        missed = missed or not met
        told = f"{figure.wall:8.2f} {figure.processor:9.2f}"
        print(f"{name:40} {told}  goal {goal:5.1f}  {'ok' if met else 'MISSED'}")
    if shutil.which("rg") is not None:
        ripgrep_ms = _middle(searches).wall
        print(f"{'ripgrep over the tree, ms':40} {ripgrep_ms:8.2f}")
        print(f"{'warm request / ripgrep':40} {_middle(queries).wall / ripgrep_ms:8.2f}")
    return int(missed)


def _read_and_tokenise(root: Path) -> None:
    for path in walk(root, StopSignal()):
        text = read_text(root / path)
        if text is not None:
            terms_of(text)


def _ask(index: StoredCodeIndex, request: ContextRequest) -> None:
    """Search in every way once, as the strategies of one request do."""
    view = index.view(request, StopSignal())
    terms = dict.fromkeys(view.terms_of(TASK), 1.0)
    view.files_like(terms)
    view.paths_like(terms)
    view.symbols_like(terms)
    view.history.commits_like(terms, 50)
    for hit in view.chunks_like(terms, 50):
        view.card(hit.path)
        view.text(hit.path)
    for hit in view.chunks_like(terms, 5):
        card = view.card(hit.path)
        for symbol in () if card is None else card.symbols[:5]:
            view.definitions(symbol.name)
            view.users(symbol.name)


def _ripgrep(root: Path) -> None:
    program = shutil.which("rg")
    if program is not None:
        words = [option for word in TASK.split() for option in ("-e", word)]
        subprocess.run([program, "-c", *words, str(root)], capture_output=True, check=False)


def _spent(work: Callable[[], object]) -> Spent:
    wall_s, processor_s = time.perf_counter(), _processor_s()
    work()
    now_s = time.perf_counter(), _processor_s()
    return Spent((now_s[0] - wall_s) * 1000, (now_s[1] - processor_s) * 1000)


def _processor_s() -> float:
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def _best(rounds: list[Spent]) -> Spent:
    return Spent(min(one.wall for one in rounds), min(one.processor for one in rounds))


def _middle(rounds: list[Spent]) -> Spent:
    return Spent(
        statistics.median(one.wall for one in rounds),
        statistics.median(one.processor for one in rounds),
    )


def _ratio(one: Spent, other: Spent) -> Spent:
    return Spent(one.wall / other.wall, one.processor / other.processor)


if __name__ == "__main__":
    sys.exit(main())
