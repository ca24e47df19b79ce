"""How good the context of a task is: the task's words against the files that its commit changed.

`--repo PATH` takes cases from a repository's own history, `--cases FILE` a given list (one JSON
object per line: `repo`, `parent_commit`, `query`, `files`) with the clones in `--git-dirs FOLDER`.
Each case is answered at the commit before, so nothing of the answer is in the tree or its history.

r@k is the share of the changed files among the k best files, MRR the mean of 1 / rank of the first
of them, packed the share that the context for 8,000 tokens names, beside BM25 over whole files and
each strategy alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from _cases import Case, Checkout, cases_from, cases_in, git_dir_of
from cleveragents.application.services.acms_pipeline import (
    Context,
    ContextPipeline,
    ContextRequest,
    Outline,
    ParallelStrategyExecutor,
    Passage,
    StopSignal,
    approximate_tokens,
)
from cleveragents.application.services.context_assembly import pack
from cleveragents.application.services.context_ranking import Finding, rank
from cleveragents.bootstrap import usual_strategies
from cleveragents.infrastructure.code_index.index import StoredCodeIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cleveragents.application.code_index import CodeView

TOKENS_MAX: Final = 8000
DEADLINE_S: Final = 60.0
OURS: Final = "ours"
BM25: Final = "BM25 over files"
KEYS: Final = ("r@1", "r@5", "r@10", "MRR", "packed")
#: Averaged over the repositories that the goals were set for.
GOALS: Final = {"r@5": 0.90, "r@10": 0.94, "packed": 0.94}
GOAL_REPOSITORIES: Final = frozenset({"pallets/click", "tiangolo/fastapi", "pytest-dev/pytest"})

Figures = dict[str, float]


@dataclass
class Board:
    """The figures of every case, by repository and by who answered."""

    figures: dict[str, dict[str, list[Figures]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    index_s: dict[str, float] = field(default_factory=dict)
    query_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def mean(self, repositories: Iterable[str], name: str) -> Figures:
        """Return the mean over repositories of the mean over their cases."""
        each = [self.figures[one][name] for one in repositories]
        return {key: fmean(fmean(case[key] for case in cases) for cases in each) for key in KEYS}


def judged(files: Sequence[str], inside: Iterable[str], truth: frozenset[str]) -> Figures:
    """Compare an answer with the truth."""
    ranks = [at for at, path in enumerate(files, 1) if path in truth]
    found = {f"r@{k}": sum(at <= k for at in ranks) / len(truth) for k in (1, 5, 10)}
    first = 1 / ranks[0] if ranks else 0.0
    return {**found, "MRR": first, "packed": len(truth.intersection(inside)) / len(truth)}


def whole_files(view: CodeView, case: Case) -> Figures:
    """Answer by BM25 over whole files, packed as they are."""
    scores = view.files_like(dict.fromkeys(view.terms_of(case.task), 1.0))
    files = sorted(scores, key=lambda path: (-scores[path], path))
    inside, room = [], TOKENS_MAX
    for path in files:
        room -= approximate_tokens(f"{path}\n{view.text(path) or ''}\n")
        if room < 0:
            break
        inside.append(path)
    return judged(files, inside, case.files)


def named(passages: Iterable[Passage], outlines: Iterable[Outline]) -> set[str]:
    """Return the files that a context names, by lines or by an outline."""
    return {one.path for one in passages} | {one.path for one in outlines}


def ours(context: Context, case: Case) -> Mapping[str, Figures]:
    """Judge the whole context, and what each strategy alone would have given."""
    answers = {OURS: judged(context.files, named(context.fragments, context.outlines), case.files)}
    for report in context.reports:
        ranked = rank([Finding(report.fragments)])
        packed = pack(ranked, TOKENS_MAX, approximate_tokens)
        inside = named(packed.passages, packed.outlines)
        answers[report.name] = judged(ranked.files, inside, case.files)
    return answers


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to a case, and how long it took."""

    case: Case
    view: CodeView
    context: Context
    index_s: float
    query_s: float


def answers(cases: Iterable[Case], git_dir: Path) -> Iterator[Answer]:
    """Answer the cases of one repository, each at the commit before."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        StoredCodeIndex(Path(scratch) / "index") as index,
        ParallelStrategyExecutor() as executor,
    ):
        checkout = Checkout(git_dir, Path(scratch) / "tree")
        pipeline = ContextPipeline(executor, usual_strategies(index))
        for case in cases:
            checkout.move_to(case.parent)
            request = ContextRequest(case.task, checkout.root, tokens_max=TOKENS_MAX)
            started_s = time.perf_counter()
            view = index.build(request, StopSignal())
            built_s = time.perf_counter()
            context = pipeline.build(request, deadline_s=DEADLINE_S)
            answered_s = time.perf_counter()
            yield Answer(case, view, context, built_s - started_s, answered_s - built_s)


def measure(cases: Iterable[Case], git_dir: Path, board: Board) -> None:
    """Put the figures of one repository on the board."""
    for answer in answers(cases, git_dir):
        name = answer.case.repository
        board.index_s.setdefault(name, answer.index_s)
        board.query_s[name].append(answer.query_s)
        own = board.figures[name]
        own[BM25].append(whole_files(answer.view, answer.case))
        for source, figures in ours(answer.context, answer.case).items():
            own[source].append(figures)


def show(board: Board) -> None:
    """Print a table for each repository, and one for all."""
    groups = {name: [name] for name in board.figures}
    groups["all"] = list(board.figures)
    if board.figures.keys() >= GOAL_REPOSITORIES:
        groups["goals"] = sorted(GOAL_REPOSITORIES)
    for title, repositories in groups.items():
        print(f"\n{title:<24}" + "".join(f"{key:>8}" for key in KEYS))
        for name in board.figures[repositories[0]]:
            mean = board.mean(repositories, name)
            print(f"  {name:<22}" + "".join(f"{mean[key]:8.3f}" for key in KEYS))
        if title in board.index_s:
            query_ms = 1000 * median(board.query_s[title])
            print(f"  first index {board.index_s[title]:.2f} s, median query {query_ms:.0f} ms")


def missed(board: Board) -> list[str]:
    """Say which goals were missed."""
    sentences = []
    for repository in board.figures:
        own, other = (board.mean([repository], name) for name in (OURS, BM25))
        sentences += [
            f"{repository}: {key} is {own[key]:.3f}, and {other[key]:.3f} by {BM25}"
            for key in KEYS
            if own[key] < other[key]
        ]
    everywhere = list(board.figures)
    mean = board.mean(everywhere, OURS)
    for name in board.figures[everywhere[0]].keys() - {OURS}:
        alone = board.mean(everywhere, name)
        better = [key for key in KEYS if alone[key] > mean[key]]
        if better or alone == mean:
            sentences.append(f"{name} alone is as good by {better or KEYS}")
    if board.figures.keys() >= GOAL_REPOSITORIES:
        mean = board.mean(GOAL_REPOSITORIES, OURS)
        sentences += [
            f"{key} is {mean[key]:.3f}, and should be {goal:.2f}"
            for key, goal in GOALS.items()
            if mean[key] < goal
        ]
    return sentences


def asked() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--repo", type=Path, help="a repository with its history (default: ours)")
    source.add_argument("--cases", type=Path, help="a list of cases")
    parser.add_argument("--git-dirs", type=Path, default=Path(), help="where the clones are")
    parser.add_argument("--only", help="take only the repositories whose name holds this")
    parser.add_argument("--count", type=int, default=50, help="how many cases per repository")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and say whether the goals were reached."""
    options = asked()
    by_repository: dict[str, list[Case]] = defaultdict(list)
    git_dirs: dict[str, Path] = {}
    if options.cases is None:
        repository = options.repo or Path(__file__).parent.parent
        inside = repository / ".git"
        git_dir = inside if inside.exists() else repository
        for case in cases_from(git_dir, options.count):
            by_repository[case.repository].append(case)
            git_dirs[case.repository] = git_dir
    else:
        for case in cases_in(options.cases):
            if options.only is None or options.only in case.repository:
                by_repository[case.repository].append(case)
                git_dirs[case.repository] = git_dir_of(case.repository, options.git_dirs)
    board = Board()
    for repository, cases in by_repository.items():
        print(f"{repository}: {len(cases)} cases", file=sys.stderr)
        measure(cases[: options.count], git_dirs[repository], board)
    show(board)
    sentences = missed(board)
    print("\n" + "\n".join(sentences or ["All goals were reached"]))
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
