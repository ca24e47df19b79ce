"""Keeps what is known of one tree up to date."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cleveragents.application.source_tree import FILE_BYTES_MAX, text_of
from cleveragents.infrastructure.code_index import freshness
from cleveragents.infrastructure.code_index.features import features_of, key_of
from cleveragents.infrastructure.code_index.fields import Fields
from cleveragents.infrastructure.code_index.past import NOTHING_KNOWN, Past, PastReader
from cleveragents.infrastructure.code_index.rounds import Rounds
from cleveragents.infrastructure.code_index.segment import Content, Shelf, unpacked
from cleveragents.infrastructure.code_index.storage import Row, Storage
from cleveragents.infrastructure.code_index.view import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.domain.stop_signal import StopSignal

__all__ = ["Clocks", "Keeper", "Known"]

#: More files than any repository of sources; the rest is left out, which is told.
FILES_MAX: Final = 50_000
#: What is read is worked on, and kept, in portions of at most so many files; and of few
#: characters, because a portion is finished in any case, however late it is.
_PORTION: Final = 128
_PORTION_CHARS: Final = 200_000
_LOAD_PORTION: Final = 512
#: How much of the text that was just read stays in memory with a view.
_TEXT_CHARS_MAX: Final = 8_000_000
#: Contents of no file may be this many times those of files before memory is freed.
_WASTE_MAX: Final = 2
_DAY_NS: Final = 86_400_000_000_000

#: Stand for the content of files that are no text.
BINARY: Final = b"binary"
LARGE: Final = b"large"
FOREIGN: Final = b"foreign"
_NO_TEXT: Final = frozenset({BINARY, LARGE, FOREIGN})


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock, which file systems use too, and one that never jumps."""

    time_ns: Callable[[], int]
    monotonic: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a tree; it never changes."""

    survey: freshness.Survey = freshness.EMPTY
    rows: Mapping[str, Row] = field(default_factory=dict)
    #: Files without text are not in them.
    fields: Fields = field(default_factory=lambda: Fields({}, Shelf()))
    past: Past = NOTHING_KNOWN
    texts: Mapping[str, str] = field(default_factory=dict)
    #: How many files could not be read.
    unreadable: int = 0

    @property
    def missing(self) -> int:
        """How many files are not on the shelf yet."""
        return len(self.fields.paths) - len(self.fields.indexed)

    @property
    def is_whole(self) -> bool:
        """Say whether nothing is left to be done in the background."""
        return not self.missing and not self.past.unread


class Keeper:
    """Owns what is known of one tree; share it between threads.

    `refresh` looks at the tree after it was called, for all who call at the same time together,
    and gives a value that never changes. Only the caller whose turn it is changes anything.
    """

    def __init__(self, root: str, storage: Storage, clocks: Clocks) -> None:
        self.root = root
        self._storage = storage
        self._clocks = clocks
        self._past = PastReader(root, storage, clocks.monotonic)
        self._rounds: Rounds[Known] = Rounds()
        self._known: Known | None = None  # written inside a round only

    def refresh(self, stop: StopSignal, budget_s: float, *, waited_for: bool) -> Known:
        """Return the tree as it is now; work beyond the budget is left for later.

        The history of a tree that somebody waits for is left for later too.
        """
        return self._rounds.share(lambda: self._refreshed(stop, budget_s, waited_for), stop)

    def _refreshed(self, stop: StopSignal, budget_s: float, waited_for: bool) -> Known:  # noqa: FBT001  # from `refresh` alone
        until_s = self._clocks.monotonic() + budget_s
        day, now_ns = self.today(), self._clocks.time_ns()
        known = self._known
        if known is None:
            known = Known(rows=self._storage.rows(self.root, day=day))
        survey = freshness.survey(self.root, known.survey, now_ns, stop, files_max=FILES_MAX)
        work = _Work(self, survey, known, until_s)
        work.load(stop)
        work.read(stop, now_ns, day)
        later = self.late(until_s) and (waited_for or not work.is_done)
        past = self._past.refreshed(known.past, day=day, later=later)
        self._known = work.known(past)
        return self._known

    def contents_of(
        self, texts: Mapping[bytes, tuple[str, str]]
    ) -> tuple[dict[bytes, Content], dict[bytes, tuple[bytes, bytes]]]:
        """Return the contents of texts, each with its path, by name; and those not yet stored."""
        if not texts:
            return {}, {}
        kept = self._storage.contents(texts)
        packed = {
            key: features_of(path, text).packed()
            for key, (path, text) in texts.items()
            if key not in kept
        }
        return {**kept, **_unpacked(packed)}, packed

    @property
    def storage(self) -> Storage:
        """Where everything is kept."""
        return self._storage

    def today(self) -> int:
        """Return the number of the day."""
        return self._clocks.time_ns() // _DAY_NS

    def late(self, until_s: float) -> bool:
        """Say whether a time has come."""
        return self._clocks.monotonic() >= until_s


class _Work:
    """One refresh: what it found out so far."""

    def __init__(
        self, keeper: Keeper, survey: freshness.Survey, known: Known, until_s: float
    ) -> None:
        self._keeper = keeper
        self._survey = survey
        self._known = known
        self._until_s = until_s
        self._rows = {
            path: row
            for path, row in known.rows.items()
            if row.settled and survey.files.get(path) == row.mark
        }
        self._contents: dict[bytes, Content] = {}
        self._unloaded = False
        self._texts: dict[str, str] = {}
        self._chars = 0
        self._unreadable: set[str] = set()
        #: Whether the time was enough.
        self.is_done = False

    def load(self, stop: StopSignal) -> None:
        """Take contents that are known by name from the storage; what is not there is read."""
        shelf = self._known.fields.shelf
        needed = {row.key for row in self._rows.values()} - _NO_TEXT
        wanted = sorted(key for key in needed if key not in shelf)
        while wanted:
            stop.raise_if_stopped()
            some, wanted = wanted[:_LOAD_PORTION], wanted[_LOAD_PORTION:]
            found = self._keeper.storage.contents(some)
            self._contents |= found
            lost = set(some) - found.keys()
            self._rows = {path: row for path, row in self._rows.items() if row.key not in lost}
            if wanted and self._keeper.late(self._until_s):
                self._unloaded = True
                return

    def read(self, stop: StopSignal, now_ns: int, day: int) -> None:
        """Read what may have changed, and keep it, in portions, until the time is up."""
        paths = sorted(self._survey.files.keys() - self._rows.keys())
        gone = self._known.rows.keys() - self._survey.files.keys()
        if gone:
            self._keeper.storage.keep(self._keeper.root, {}, {}, gone, day=day)
        with self._keeper.storage.held() if len(paths) > 1 else nullcontext():
            self._read_portions(paths, stop, now_ns, day)

    def _read_portions(self, paths: list[str], stop: StopSignal, now_ns: int, day: int) -> None:
        paths.reverse()  # taken from the end
        while paths:
            some: list[str] = []
            texts: dict[bytes, tuple[str, str]] = {}
            chars = 0
            while paths and len(some) < _PORTION and chars < _PORTION_CHARS:
                stop.raise_if_stopped()
                some.append(paths.pop())
                chars += self._read(some[-1], now_ns, texts)
            self._contents |= self._keep(texts, some, day)
            if paths and self._keeper.late(self._until_s):
                return
        self.is_done = not self._unloaded

    def _read(self, path: str, now_ns: int, texts: dict[bytes, tuple[str, str]]) -> int:
        """Read one file; return how many characters of it are to be worked on."""
        found = freshness.read(f"{self._keeper.root}/{path}", now_ns)
        if found is None:
            self._unreadable.add(path)
            return 0
        content, mark, settled = found
        text = text_of(content)
        key = _no_text(content) if text is None else key_of(path, content)
        self._rows[path] = Row(mark, key, settled)
        if text is None:
            return 0
        if self._chars + len(text) <= _TEXT_CHARS_MAX:
            self._chars += len(text)
            self._texts[path] = text
        if key in self._known.fields.shelf or key in self._contents:
            return 0
        texts[key] = path, text
        return len(text)

    def _keep(
        self, texts: Mapping[bytes, tuple[str, str]], paths: list[str], day: int
    ) -> dict[bytes, Content]:
        """Return the contents of texts; let the storage have what is new."""
        contents, new = self._keeper.contents_of(texts)
        before = self._known.rows
        rows = {
            path: row
            for path in paths
            if (row := self._rows.get(path)) is not None and row.settled and row != before.get(path)
        }
        if new or rows:
            self._keeper.storage.keep(self._keeper.root, new, rows, (), day=day)
        return contents

    def known(self, past: Past) -> Known:
        """Return everything together."""
        shelf = self._known.fields.shelf.plus(self._contents)
        paths = self._survey.files.keys() - self._unreadable
        rows = self._rows
        keys = {
            path: None if row is None else row.key
            for path in sorted(paths)
            if (row := rows.get(path)) is None or row.key not in _NO_TEXT
        }
        alive = {key for key in keys.values() if key is not None}
        if len(shelf) > _WASTE_MAX * len(alive) + _PORTION:
            shelf = shelf.only(alive)
        fields = self._known.fields
        if shelf is not fields.shelf or keys != fields.keys:
            fields = Fields(keys, shelf)
        return Known(self._survey, self._rows, fields, past, self._texts, len(self._unreadable))


def overlaid(keeper: Keeper, known: Known, changed: Mapping[str, bytes | None]) -> Tree:
    """Return the tree with what somebody wrote over it; statistics are those of the whole."""
    keys = dict(known.fields.keys)
    texts = dict(known.texts)
    new: dict[bytes, tuple[str, str]] = {}
    for path, content in sorted(changed.items()):
        texts.pop(path, None)
        keys.pop(path, None)
        text = None if content is None else text_of(content)
        if content is None or text is None:
            continue
        key = keys[path] = key_of(path, content)
        texts[path] = text
        if key not in known.fields.shelf:
            new[key] = path, text
    contents, computed = keeper.contents_of(new)
    if computed:
        keeper.storage.keep(keeper.root, computed, {}, (), day=keeper.today())
    fields = Fields(keys, known.fields.shelf.plus(contents)) if changed else known.fields
    notes = _notes(keeper, known)
    return Tree(keeper.root, fields, known.past.history, notes, texts, known.is_whole)


def _notes(keeper: Keeper, known: Known) -> tuple[str, ...]:
    """Say what is left out of a view."""
    kinds = [row.key for row in known.rows.values()]
    foreign, large = kinds.count(FOREIGN), kinds.count(LARGE)
    missing = known.missing
    said = (
        missing and f"{_files(missing)} not indexed yet; the work goes on in the background",
        known.survey.cut and f"The tree has more than {FILES_MAX:,} files; the rest is left out",
        foreign and f"{_files(foreign)} left out: not UTF-8 text",
        large and f"{_files(large)} left out: over {FILE_BYTES_MAX:,} bytes",
        known.unreadable and f"{_files(known.unreadable)} left out: not readable",
        known.past.note,
        keeper.storage.trouble,
    )
    return tuple(note for note in said if note)


def _files(count: int) -> str:
    return "1 file is" if count == 1 else f"{count:,} files are"


def _no_text(content: bytes) -> bytes:
    if len(content) > FILE_BYTES_MAX:
        return LARGE
    return BINARY if b"\0" in content else FOREIGN


def _unpacked(packed: Mapping[bytes, tuple[bytes, bytes]]) -> dict[bytes, Content]:
    found: dict[bytes, Content] = {}
    for key, (terms, card) in packed.items():
        whole = unpacked(terms)
        assert whole is not None
        found[key] = Content(whole, card)
    return found
