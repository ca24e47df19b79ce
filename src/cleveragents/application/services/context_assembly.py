"""From found fragments to one context: pure rules, the same result for the same fragments.

agree   one text for each line of a file: the better-ranked fragment is believed
rank    fragments that overlap are one place; places are ordered by reciprocal rank fusion
pack    the best places first, as whole lines, counted as they are rendered
order   files by their best place; within a file, lines in their order
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cleveragents.domain.fragment import Fragment

__all__ = [
    "Finding",
    "Origin",
    "Packed",
    "Passage",
    "Ranked",
    "approximate_tokens",
    "pack",
    "rank",
    "render",
]

#: The usual constant of reciprocal rank fusion: it keeps first places from deciding alone.
_RRF_K: Final = 60
#: Fewer lines of a cut fragment tell too little.
_CUT_LINES_MIN: Final = 5
#: A fragment that does not fit is cut to half of the room first, so that others get in too;
#: in the end the room that is left goes to the best of those that were cut.
_ROOM_SHARES: Final = (Fraction(1, 2), Fraction(1))
#: UTF-8 bytes per token: source code has 3 to 4, and a guess too high never breaks a budget.
_BYTES_PER_TOKEN: Final = 3

_FENCES: Final = re.compile("`{3,}")


class Origin(NamedTuple):
    """Who found a passage, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Whole lines of one file as they stand in a context, and everybody who found them."""

    path: str
    start_line: int
    end_line: int
    text: str
    origins: tuple[Origin, ...]


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


@dataclass(frozen=True, slots=True)
class Packed:
    """Passages in their order, the exact tokens of their rendering, and what is not in it."""

    passages: tuple[Passage, ...]
    tokens: int
    #: How many fragments have no line in it.
    omitted: int


class _Vote(NamedTuple):
    """What one strategy's ranking gives one of its fragments."""

    share: Fraction
    voter: int
    fragment: Fragment


def approximate_tokens(text: str) -> int:
    """Guess the tokens of a text, rather too many than too few."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def render(passages: Iterable[Passage]) -> str:
    """Return the text that a model reads: each passage fenced, under its path and lines."""
    return "\n".join(_block(one.path, one.start_line, one.end_line, one.text) for one in passages)


def rank(findings: Sequence[Finding]) -> Ranked:
    """Order the fragments of all strategies; neither arrival nor duplicates change the order."""
    votes = [vote for voter, finding in enumerate(findings) for vote in _votes(voter, finding)]
    votes.sort(key=lambda vote: (-vote.share, _identity(vote.fragment)))
    believed, texts = _agree(votes)
    ranked = [(worth, vote) for worth, place in _places(believed) for vote in place]
    ranked.sort(key=lambda pair: (-pair[0], -pair[1].share, _identity(pair[1].fragment)))
    fragments = tuple(vote.fragment for _, vote in ranked)
    return Ranked(fragments, texts, contradicted=len(votes) - len(believed))


def pack(ranked: Ranked, tokens_max: int, count_tokens: Callable[[str], int]) -> Packed:
    """Choose lines, the best fragments first, whose rendering has at most `tokens_max` tokens.

    A fragment that does not fit is cut after a line or skipped; smaller ones still get in.
    """
    page = _Page(ranked, tokens_max, count_tokens)
    for share in _ROOM_SHARES:
        for fragment in ranked.fragments:
            page.add(fragment, share)
    omitted = sum(not page.shows(fragment) for fragment in ranked.fragments)
    return Packed(page.passages(), page.tokens, omitted + ranked.contradicted)


def _votes(voter: int, finding: Finding) -> Iterator[_Vote]:
    """Share the weight by rank; equal scores share a rank, and a place found twice counts once."""
    unique = set(finding.fragments)
    best: dict[tuple[str, int, int, str], float] = {}
    for fragment in unique:
        lines = _lines_of(fragment)
        best[lines] = max(fragment.score, best.get(lines, fragment.score))
    ascending = sorted(best.values())
    for fragment in unique:
        better = len(ascending) - bisect_right(ascending, best[_lines_of(fragment)])
        yield _Vote(Fraction(finding.weight, _RRF_K + 1 + better), voter, fragment)


def _lines_of(fragment: Fragment) -> tuple[str, int, int, str]:
    return fragment.path, fragment.start_line, fragment.end_line, fragment.text


def _identity(fragment: Fragment) -> tuple[str, int, int, str, str, str]:
    return *_lines_of(fragment), fragment.source, fragment.reason


def _agree(votes: Sequence[_Vote]) -> tuple[list[_Vote], dict[str, dict[int, str]]]:
    """Keep the fragments, from the best on, that agree about the text of every line."""
    believed: list[_Vote] = []
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    for vote in votes:
        known = texts[vote.fragment.path]
        lines = dict(enumerate(vote.fragment.lines, vote.fragment.start_line))
        if all(known.get(number, text) == text for number, text in lines.items()):
            known.update(lines)
            believed.append(vote)
    return believed, dict(texts)


def _places(votes: Sequence[_Vote]) -> Iterator[tuple[Fraction, list[_Vote]]]:
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


def _worth(place: Sequence[_Vote]) -> Fraction:
    best: dict[int, Fraction] = {}
    for vote in place:
        best[vote.voter] = max(vote.share, best.get(vote.voter, vote.share))
    return sum(best.values(), Fraction(0))


def _block(path: str, start_line: int, end_line: int, text: str) -> str:
    # Longer than any fence in the text, so that no text can end its block.
    fence = "`" * (max(map(len, _FENCES.findall(text)), default=2) + 1)
    return f"{path}:{start_line}-{end_line}\n{fence}\n{text}\n{fence}\n"


class _Page:
    """The lines chosen so far; at every moment their rendering fits."""

    def __init__(self, ranked: Ranked, tokens_max: int, count_tokens: Callable[[str], int]) -> None:
        self._ranked = ranked
        self._tokens_max = tokens_max
        self._count_tokens = count_tokens
        # Best file first: in the order in which the ranking first names them.
        self._chosen: dict[str, set[int]] = {found.path: set() for found in ranked.fragments}
        self._blocks: dict[str, str] = dict.fromkeys(self._chosen, "")
        self.tokens = self._count("")

    def shows(self, fragment: Fragment) -> bool:
        """Say whether any line of the fragment is on the page."""
        return not self._chosen[fragment.path].isdisjoint(_numbers(fragment))

    def add(self, fragment: Fragment, share: Fraction) -> None:
        """Add the missing lines: all if they fit, else as many as fit into a share of the room."""
        missing = [n for n in _numbers(fragment) if n not in self._chosen[fragment.path]]
        if not missing or self._take(fragment.path, missing, self._tokens_max):
            return
        limit = self.tokens + int((self._tokens_max - self.tokens) * share)
        fits, too_many = _CUT_LINES_MIN, len(missing)
        if fits >= too_many or not self._take(fragment.path, missing[:fits], limit):
            return
        while too_many - fits > 1:
            middle = (fits + too_many) // 2
            if self._take(fragment.path, missing[:middle], limit):
                fits = middle
            else:
                too_many = middle

    def passages(self) -> tuple[Passage, ...]:
        """Return what is on the page, in its order."""
        found_in: dict[str, list[Fragment]] = defaultdict(list)
        for fragment in self._ranked.fragments:
            found_in[fragment.path].append(fragment)
        return tuple(
            Passage(path, start, end, self._text(path, start, end), _origins(found, start, end))
            for path, found in found_in.items()
            for start, end in _stretches(self._chosen[path])
        )

    def _take(self, path: str, numbers: Sequence[int], limit: int) -> bool:
        """Add the lines if the page then has at most `limit` tokens, headings included."""
        texts, before = self._ranked.texts[path], self._chosen[path]
        # Counted alone first: of thousands that do not fit, few need the whole page counted.
        alone = "\n".join(texts[number] for number in numbers if number not in before)
        if self.tokens + self._count(alone) > limit:
            return False
        chosen = before.union(numbers)
        block = "\n".join(
            _block(path, start, end, self._text(path, start, end))
            for start, end in _stretches(chosen)
        )
        blocks = {**self._blocks, path: block}
        tokens = self._count("\n".join(filter(None, blocks.values())))
        if tokens > limit:
            return False
        self._chosen[path], self._blocks, self.tokens = chosen, blocks, tokens
        return True

    def _text(self, path: str, start: int, end: int) -> str:
        texts = self._ranked.texts[path]
        return "\n".join(texts[number] for number in range(start, end + 1))

    def _count(self, text: str) -> int:
        tokens = self._count_tokens(text)
        if type(tokens) is not int or tokens < 0:
            raise RequestError(f"`count_tokens` must give a whole number from 0, got {tokens!r}")
        return tokens


def _numbers(fragment: Fragment) -> range:
    return range(fragment.start_line, fragment.end_line + 1)


def _stretches(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return the first and last of each run of consecutive line numbers."""
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        lines = [number for _, number in run]
        yield lines[0], lines[-1]


def _origins(found: Iterable[Fragment], start: int, end: int) -> tuple[Origin, ...]:
    touching = (one for one in found if one.start_line <= end and one.end_line >= start)
    return tuple(sorted({Origin(one.source, one.reason) for one in touching}))
