"""From ranked fragments to one context: pure rules, the same result for the same fragments.

pack     the best places first, as whole lines; what is rendered is counted as a whole
order    files by their worth; within a file, lines in their order
outline  the next best files, which have no line in it, get one line each
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cleveragents.application.services.context_ranking import Ranked
    from cleveragents.domain.fragment import Fragment

__all__ = [
    "Origin",
    "Outline",
    "Packed",
    "Passage",
    "approximate_tokens",
    "pack",
    "render",
]

#: Fewer lines of a cut fragment tell too little.
_CUT_LINES_MIN: Final = 5
#: By what the room for a fragment that does not fit is divided, round by round: only half of it
#: first, so that others get in too; then what is left goes to the best of those that were cut.
#: Estimates are rather too high, so each round leaves some room to the next.
_FIRST_DIVISORS: Final = (2, 1)
#: One file gets at most this part of the room, in hundredths, as long as others can use the rest:
#: a large file that the user names must not keep out what else was found.
_FILE_PERCENT_MAX: Final = 60
_LAST_CAPS: Final = (True, False, False)
#: Outlines cost little and name files that would otherwise be missing altogether.
_OUTLINES_MAX: Final = 30
#: They take at most this part of the room.
_OUTLINE_PART: Final = 5
_HEAD_CHARS_MAX: Final = 80
_OUTLINES_HEADING: Final = "Found too, best first:"
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
class Outline:
    """One line for a file that has no passage: its best place, and how that begins."""

    path: str
    start_line: int
    end_line: int
    head: str


@dataclass(frozen=True, slots=True)
class Packed:
    """Passages in their order, the exact tokens of their rendering, and what is not in it."""

    passages: tuple[Passage, ...]
    tokens: int
    #: How many fragments have no line in it.
    omitted: int
    #: The next best files, the best first.
    outlines: tuple[Outline, ...] = ()


def approximate_tokens(text: str) -> int:
    """Guess the tokens of a text, rather too many than too few."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def render(passages: Iterable[Passage], outlines: Iterable[Outline] = ()) -> str:
    """Return the text that a model reads: each passage fenced, then a line for each outline."""
    blocks = [_block(one.path, one.start_line, one.end_line, one.text) for one in passages]
    return _joined(blocks, _listed(outlines))


def pack(ranked: Ranked, tokens_max: int, count_tokens: Callable[[str], int]) -> Packed:
    """Choose lines, the best fragments first, whose rendering has at most `tokens_max` tokens.

    A fragment that does not fit is cut after a line or skipped; smaller ones still get in.
    Room for outlines is kept free until it is known which files need one.
    """
    page = _Page(ranked, tokens_max, count_tokens)
    outlines = _outlines(ranked)
    page.put_outlines(outlines)
    for divisor in _FIRST_DIVISORS:
        page.fill(ranked.fragments, divisor, capped=True)
    page.put_outlines([one for one in outlines if not page.shows_file(one.path)])
    listed = {one.path for one in page.outlines}
    rest = [fragment for fragment in ranked.fragments if fragment.path not in listed]
    for capped in _LAST_CAPS:
        page.fill(rest, 1, capped=capped)
    omitted = sum(not page.shows(fragment) for fragment in ranked.fragments)
    return Packed(page.passages(), page.tokens, omitted + ranked.contradicted, page.outlines)


def _outlines(ranked: Ranked) -> list[Outline]:
    """Return the best place of each file, the best file first."""
    best: dict[str, Fragment] = {}
    for fragment in ranked.fragments:
        best.setdefault(fragment.path, fragment)
    return [_outline(best[path]) for path in ranked.files]


def _outline(fragment: Fragment) -> Outline:
    head = next((line.strip() for line in fragment.lines if line.strip()), "")
    if len(head) > _HEAD_CHARS_MAX:
        head = f"{head[: _HEAD_CHARS_MAX - 1]}…"
    return Outline(fragment.path, fragment.start_line, fragment.end_line, head)


def _listed(outlines: Iterable[Outline]) -> str:
    lines = [f"{one.path}:{one.start_line}-{one.end_line} {one.head}".rstrip() for one in outlines]
    return "".join(f"{line}\n" for line in (_OUTLINES_HEADING, *lines)) if lines else ""


def _joined(blocks: list[str], listed: str) -> str:
    return "\n".join([*blocks, listed] if listed else blocks)


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
        self._chosen: dict[str, set[int]] = {path: set() for path in ranked.files}
        self._added: list[tuple[str, int]] = []  # the chosen lines in the order of their choice
        self._line_costs: dict[tuple[str, int], int] = {}
        self._heading_costs: dict[str, int] = {}
        self._taken = dict.fromkeys(ranked.files, 0)  # by file, as estimated
        self._listed = ""
        self.outlines: tuple[Outline, ...] = ()
        #: Exact after `confirm`, an estimate after `add`.
        self.tokens = self._tokens_of_nothing = self._count("")
        self._confirmed = 0, self.tokens  # how many of the added lines, and their exact tokens

    def shows(self, fragment: Fragment) -> bool:
        """Say whether any line of the fragment is on the page."""
        return not self._chosen[fragment.path].isdisjoint(_numbers(fragment))

    def shows_file(self, path: str) -> bool:
        """Say whether any line of the file is on the page."""
        return bool(self._chosen[path])

    def put_outlines(self, outlines: Sequence[Outline]) -> None:
        """Put as many outlines at the end as fit into their part of the room, the best first."""
        limit = self._tokens_max // _OUTLINE_PART
        fits, too_many = 0, min(len(outlines), _OUTLINES_MAX) + 1
        while too_many - fits > 1:
            probe = (fits + too_many) // 2
            if self._count(_listed(outlines[:probe])) <= limit:
                fits = probe
            else:
                too_many = probe
        self.outlines = tuple(outlines[:fits])
        self._listed = _listed(self.outlines)
        self._confirmed = 0, self._count(self._listed)
        self.confirm()

    def fill(self, fragments: Iterable[Fragment], divisor: int, *, capped: bool) -> None:
        """Add what fits of each fragment, within the cap of its file or not, and confirm it."""
        tokens_max = self._tokens_max
        for fragment in fragments:
            if capped:
                left = self._tokens_max * _FILE_PERCENT_MAX // 100 - self._taken[fragment.path]
                tokens_max = min(self._tokens_max, self.tokens + left)
            self.add(fragment, divisor, tokens_max)
        self.confirm()

    def add(self, fragment: Fragment, divisor: int, tokens_max: int) -> None:
        """Add the missing lines: all if they fit, else as many as fit into a part of the room."""
        path, chosen = fragment.path, self._chosen[fragment.path]
        limit = min(tokens_max, self.tokens + (self._tokens_max - self.tokens) // divisor)
        missing: list[int] = []
        tokens = self.tokens
        fits = 0, tokens  # how many of the missing lines, and the tokens with them
        for shown, number in enumerate(_numbers(fragment), 1):
            if number not in chosen:
                tokens += self._cost(path, number)
                if tokens > tokens_max:
                    break
                chosen.add(number)
                missing.append(number)
            if tokens <= limit and shown >= _CUT_LINES_MIN:
                fits = len(missing), tokens
        else:
            fits = len(missing), tokens
        cut, tokens = fits
        self._taken[path] += tokens - self.tokens
        self.tokens = tokens
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
            self._taken[path] -= self._line_costs[path, number]
        del self._added[fits:]
        self._confirmed, self.tokens = (fits, tokens), tokens

    def passages(self) -> tuple[Passage, ...]:
        """Return what is on the page, in its order."""
        found_in: dict[str, list[Fragment]] = {path: [] for path in self._chosen}
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
        blocks = [
            _block(path, start, end, self._text(path, start, end))
            for path, numbers in chosen.items()
            for start, end in _stretches(numbers)
        ]
        return _joined(blocks, self._listed)

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
