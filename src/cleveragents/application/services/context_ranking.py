"""From found fragments to one order: pure rules, the same result for the same fragments.

share   a strategy's scores become parts of its best one; scores of two are never compared
file    its worth is the sum over the strategies: weight times its best share
place   fragments that overlap are one place, worth the sum of their best shares
order   places by their own worth times that of their file
agree   one version of a file, and one text for each line: the better fragment is believed
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cleveragents.domain.fragment import Fragment

__all__ = ["Finding", "Ranked", "rank"]

#: What a strategy's vote of one is split into: whole numbers add up to the same in any order.
_VOTE: Final = 2**32


@dataclass(frozen=True, slots=True)
class Finding:
    """All fragments of one strategy, and how much its ranking counts."""

    fragments: tuple[Fragment, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Ranked:
    """Fragments, the best first, and the one agreed text of each line that they hold."""

    fragments: tuple[Fragment, ...]
    texts: Mapping[str, Mapping[int, str]]
    #: How many contradicted a better fragment about the text of a line, and were left out.
    contradicted: int
    #: The best first.
    files: tuple[str, ...]


class _Vote(NamedTuple):
    """What one strategy gives one of its fragments."""

    share: int
    voter: int
    fragment: Fragment


def rank(findings: Sequence[Finding]) -> Ranked:
    """Order the fragments of all strategies; neither arrival nor duplicates change the order."""
    votes = [vote for voter, finding in enumerate(findings) for vote in _votes(voter, finding)]
    votes.sort(key=lambda vote: (-vote.share, _identity(vote.fragment)))
    believed, texts = _agree(votes)
    files = _files(believed)
    ranked = [
        (worth * files[place[0].fragment.path], vote)
        for worth, place in _places(believed)
        for vote in place
    ]
    ranked.sort(key=lambda pair: (-pair[0], -pair[1].share, _identity(pair[1].fragment)))
    return Ranked(
        tuple(vote.fragment for _, vote in ranked),
        texts,
        contradicted=len(votes) - len(believed),
        files=tuple(sorted(files, key=lambda path: (-files[path], path))),
    )


def _votes(voter: int, finding: Finding) -> Iterator[_Vote]:
    """Share the weight by score; a place found twice counts once, with the better score."""
    unique = set(finding.fragments)
    best: dict[tuple[str, int, int, str], float] = {}
    for fragment in unique:
        lines = _lines_of(fragment)
        best[lines] = max(fragment.score, best.get(lines, fragment.score))
    top = max(best.values(), default=0)
    floor = min(0, min(best.values(), default=0))
    for fragment in unique:
        share = _share(best[_lines_of(fragment)], floor, top)
        yield _Vote(finding.weight * share, voter, fragment)


def _share(score: float, floor: float, top: float) -> int:
    """Return the part of the best score; never 0, because who found something says something."""
    if score == top:
        return _VOTE
    # Fractions, because the difference of two floats may be beyond every float.
    part = (Fraction(score) - Fraction(floor)) / (Fraction(top) - Fraction(floor))
    return max(1, int(part * _VOTE))


def _lines_of(fragment: Fragment) -> tuple[str, int, int, str]:
    return fragment.path, fragment.start_line, fragment.end_line, fragment.text


def _identity(fragment: Fragment) -> tuple[str, int, int, str, str, str, str]:
    return *_lines_of(fragment), fragment.source, fragment.reason, fragment.version


def _agree(votes: Sequence[_Vote]) -> tuple[list[_Vote], dict[str, dict[int, str]]]:
    """Keep the fragments, from the best on, that agree about their file and every line of it.

    Lines that touch become one passage: without the version of the file, those of two readings
    could be put together to what the file never held.
    """
    believed: list[_Vote] = []
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    versions: dict[str, str] = {}
    for vote in votes:
        fragment = vote.fragment
        version = fragment.version or versions.get(fragment.path, "")
        if versions.get(fragment.path, version) != version:
            continue
        known = texts[fragment.path]
        lines = dict(enumerate(fragment.lines, fragment.start_line))
        if all(known.get(number, text) == text for number, text in lines.items()):
            known.update(lines)
            believed.append(vote)
            if version:
                versions[fragment.path] = version
    return believed, dict(texts)


def _places(votes: Sequence[_Vote]) -> Iterator[tuple[int, list[_Vote]]]:
    """Gather fragments that overlap; a place is worth the best vote of each strategy, added up."""
    in_order = sorted(votes, key=lambda vote: _identity(vote.fragment))
    for _, in_file in groupby(in_order, key=lambda vote: vote.fragment.path):
        place: list[_Vote] = []
        end_line = 0
        for vote in in_file:
            if place and vote.fragment.start_line > end_line:
                yield _worth(place), place
                place = []
            place.append(vote)
            end_line = max(end_line, vote.fragment.end_line)
        yield _worth(place), place


def _files(votes: Sequence[_Vote]) -> dict[str, int]:
    """Return what each file is worth: the best vote of each strategy, added up."""
    of_file: dict[str, list[_Vote]] = defaultdict(list)
    for vote in votes:
        of_file[vote.fragment.path].append(vote)
    return {path: _worth(own) for path, own in of_file.items()}


def _worth(place: Sequence[_Vote]) -> int:
    best: dict[int, int] = {}
    for vote in place:
        best[vote.voter] = max(vote.share, best.get(vote.voter, vote.share))
    return sum(best.values())
