"""Which weights of the strategies are best, and whether that holds where they were not fitted.

Every strategy answers every case once; then all small whole weights are tried. For each repository
the weights that are best on the others are judged on it, beside those that the strategies declare.
Takes what `context.py` takes with `--cases`; `--shares FILE` keeps the answers for the next time.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from _cases import Case, cases_in, git_dir_of
from cleveragents.strategies.history import History
from cleveragents.strategies.lexical import Lexical
from cleveragents.strategies.names import Names
from cleveragents.strategies.references import References
from context import answers

NAMES: Final = (Lexical.name, Names.name, References.name, History.name)
DECLARED: Final = (Lexical.weight, 1, 1, 1)
WEIGHTS: Final = (1, 2, 3, 4)

Weights = tuple[int, ...]
#: Of each file, the part of the best score that each strategy gives it; and the truth.
Shares = tuple[dict[str, list[float]], list[str]]


def shares_of(case: Case, reports: Any) -> Shares:
    """Return what the strategies say about each file."""
    shares: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(NAMES))
    for report in reports:
        if report.name not in NAMES:
            continue
        top = max((one.score for one in report.fragments), default=1.0)
        for one in report.fragments:
            own = shares[one.path]
            at = NAMES.index(report.name)
            own[at] = max(own[at], one.score / top)
    return dict(shares), sorted(case.files)


def quality(cases: list[Shares], weights: Weights) -> float:
    """Return the mean of recall@5, recall@10 and MRR."""
    return fmean(_quality(shares, set(truth), weights) for shares, truth in cases)


def _quality(shares: dict[str, list[float]], truth: set[str], weights: Weights) -> float:
    worth = {
        path: sum(weight * share for weight, share in zip(weights, own, strict=True))
        for path, own in shares.items()
    }
    files = sorted(worth, key=lambda path: (-worth[path], path))
    ranks = [at for at, path in enumerate(files, 1) if path in truth]
    recalls = [sum(at <= k for at in ranks) / len(truth) for k in (5, 10)]
    return fmean([*recalls, 1 / ranks[0] if ranks else 0.0])


def collected(cases: Path, git_dirs: Path) -> dict[str, list[Shares]]:
    """Let the strategies answer all cases."""
    by_repository: dict[str, list[Case]] = defaultdict(list)
    for case in cases_in(cases):
        by_repository[case.repository].append(case)
    return {
        name: [
            shares_of(answer.case, answer.context.reports)
            for answer in answers(own, git_dir_of(name, git_dirs))
        ]
        for name, own in by_repository.items()
    }


def fitted(cases: dict[str, list[Shares]]) -> tuple[Weights, float]:
    """Return the best weights, the smaller ones first, and their quality."""
    grid = sorted(product(WEIGHTS, repeat=len(NAMES)), key=lambda one: (sum(one), one))
    scored = [(fmean(quality(own, one) for own in cases.values()), one) for one in grid]
    best, weights = max(scored, key=lambda pair: pair[0])
    return weights, best


def main() -> None:
    """Fit on all repositories, and on all but one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=Path, required=True, help="a list of cases")
    parser.add_argument("--git-dirs", type=Path, default=Path(), help="where the clones are")
    parser.add_argument("--shares", type=Path, help="where the answers are kept")
    options = parser.parse_args()
    if options.shares is not None and options.shares.exists():
        cases = json.loads(options.shares.read_text(encoding="utf-8"))
    else:
        cases = collected(options.cases, options.git_dirs)
        if options.shares is not None:
            options.shares.write_text(json.dumps(cases), encoding="utf-8")
    print(f"weights of {', '.join(NAMES)}; quality is the mean of r@5, r@10 and MRR\n")
    for name in cases:
        others = {other: own for other, own in cases.items() if other != name}
        weights, _ = fitted(others)
        print(
            f"  {name:<24} fitted on the others {weights} {quality(cases[name], weights):.3f}"
            f"   declared {DECLARED} {quality(cases[name], DECLARED):.3f}"
        )
    weights, best = fitted(cases)
    declared = fmean(quality(own, DECLARED) for own in cases.values())
    print(f"\n  fitted on all {weights} {best:.3f}   declared {DECLARED} {declared:.3f}")


if __name__ == "__main__":
    main()
