"""From found fragments to one context: pure rules, the same result for the same fragments.

agree   one text for each line of a file: the better-ranked fragment is believed
rank    fragments that overlap are one place; places are ordered by reciprocal rank fusion
pack    the best places first, as whole lines; what is rendered is counted as a whole
order   files by their best place; within a file, lines in their order
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
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
#: What a strategy's vote of one is split into: whole numbers add up to the same in any order.
_VOTE: Final = 2**64
#: Fewer lines of a cut fragment tell too little.
_CUT_LINES_MIN: Final = 5
#: By what the room for a fragment that does not fit is divided, round by round: only half of it
#: first, so that others get in too; then what is left goes to the best of those that were cut.
#: Estimates are rather too high, so each round leaves some room to the next.
_ROOM_DIVISORS: Final = (2, 1, 1, 1)
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

    share: int
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
    for divisor in _ROOM_DIVISORS:
        for fragment in ranked.fragments:
            page.add(fragment, divisor)
        page.confirm()
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
        yield _Vote(finding.weight * _VOTE // (_RRF_K + 1 + better), voter, fragment)


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


def _worth(place: Sequence[_Vote]) -> int:
    best: dict[int, int] = {}
    for vote in place:
        best[vote.voter] = max(vote.share, best.get(vote.voter, vote.share))
    return sum(best.values())


def _block(path: str, start_line: int, end_line: int, text: str) -> str:
    # Longer than any fence in the text, so that no text can end its block.
    fence = "`" * (max(map(len, _FENCES.findall(text)), default=2) + 1)
    return f"{path}:{start_line}-{end_line}\n{fence}\n{text}\n{fence}\n"


class _Page:
    """The lines chosen so far: estimated as they are added, and confirmed as a whole.

    An estimate counts each line, and a heading for each stretch of lines, once: adding costs
    what is added, not what the page holds already. Only `confirm` counts the rendered text.
    """

    def __init__(self, ranked: Ranked, tokens_max: int, count_tokens: Callable[[str], int]) -> None:
        self._ranked = ranked
        self._tokens_max = tokens_max
        self._count_tokens = count_tokens
        # Best file first: in the order in which the ranking first names them.
        self._chosen: dict[str, set[int]] = {found.path: set() for found in ranked.fragments}
        self._added: list[tuple[str, int]] = []  # the chosen lines in the order of their choice
        self._line_costs: dict[tuple[str, int], int] = {}
        self._heading_costs: dict[str, int] = {}
        #: Exact after `confirm`, an estimate after `add`.
        self.tokens = self._tokens_of_nothing = self._count("")
        self._confirmed = 0, self.tokens  # how many of the added lines, and their exact tokens

    def shows(self, fragment: Fragment) -> bool:
        """Say whether any line of the fragment is on the page."""
        return not self._chosen[fragment.path].isdisjoint(_numbers(fragment))

    def add(self, fragment: Fragment, divisor: int) -> None:
        """Add the missing lines: all if they fit, else as many as fit into a part of the room."""
        path, chosen = fragment.path, self._chosen[fragment.path]
        limit = self.tokens + (self._tokens_max - self.tokens) // divisor
        missing: list[int] = []
        tokens = self.tokens
        fits = 0, tokens  # how many of the missing lines, and the tokens with them
        for shown, number in enumerate(_numbers(fragment), 1):
            if number not in chosen:
                tokens += self._cost(path, number)
                if tokens > self._tokens_max:
                    break
                chosen.add(number)
                missing.append(number)
            if tokens <= limit and shown >= _CUT_LINES_MIN:
                fits = len(missing), tokens
        else:
            fits = len(missing), tokens
        cut, self.tokens = fits
        self._added.extend((path, number) for number in missing[:cut])
        chosen.difference_update(missing[cut:])

    def confirm(self) -> None:
        """Count the rendered text; where estimates were too low, take the last lines back."""
        (fits, tokens), too_many = self._confirmed, len(self._added) + 1
        probe = len(self._added)
        while too_many - fits > 1:
            counted = self._count(self._rendered(self._added[:probe]))
            if counted <= self._tokens_max:
                fits, tokens = probe, counted
            else:
                too_many = probe
            probe = (fits + too_many) // 2
        for path, number in self._added[fits:]:
            self._chosen[path].remove(number)
        del self._added[fits:]
        self._confirmed, self.tokens = (fits, tokens), tokens

    def passages(self) -> tuple[Passage, ...]:
        """Return what is on the page, in its order."""
        found_in: dict[str, list[Fragment]] = defaultdict(list)
        for fragment in self._ranked.fragments:
            found_in[fragment.path].append(fragment)
        stretches = {path: list(_stretches(numbers)) for path, numbers in self._chosen.items()}
        return tuple(
            Passage(path, start, end, self._text(path, start, end), origins)
            for path, found in found_in.items()
            for (start, end), origins in zip(
                stretches[path], _origins(found, stretches[path]), strict=True
            )
        )

    def _cost(self, path: str, number: int) -> int:
        """Estimate what one more line costs; one that joins two stretches saves a heading."""
        chosen = self._chosen[path]
        cost = self._line_costs.get((path, number))
        if cost is None:
            cost = self._count(self._ranked.texts[path][number] + "\n") - self._tokens_of_nothing
            self._line_costs[path, number] = cost
        headings = 1 - (number - 1 in chosen) - (number + 1 in chosen)
        return cost + headings * self._heading_cost(path) if headings else cost

    def _heading_cost(self, path: str) -> int:
        """Estimate one heading of the file and its fences, which are rarely longer than usual."""
        cost = self._heading_costs.get(path)
        if cost is None:
            last = max(self._ranked.texts[path])
            cost = self._count(_block(path, last, last, "")) - self._tokens_of_nothing
            self._heading_costs[path] = cost
        return cost

    def _rendered(self, lines: Iterable[tuple[str, int]]) -> str:
        chosen: dict[str, list[int]] = {path: [] for path in self._chosen}
        for path, number in lines:
            chosen[path].append(number)
        return "\n".join(
            _block(path, start, end, self._text(path, start, end))
            for path, numbers in chosen.items()
            for start, end in _stretches(numbers)
        )

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


def _origins(
    found: Iterable[Fragment], stretches: Sequence[tuple[int, int]]
) -> list[tuple[Origin, ...]]:
    """Return for each stretch of a file who found a line of it."""
    starts = [start for start, _ in stretches]
    ends = [end for _, end in stretches]
    origins: list[set[Origin]] = [set() for _ in stretches]
    for one in found:
        origin = Origin(one.source, one.reason)
        for index in range(bisect_left(ends, one.start_line), bisect_right(starts, one.end_line)):
            origins[index].add(origin)
    return [tuple(sorted(each)) for each in origins]
