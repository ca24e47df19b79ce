"""Three-way merges by git's own machinery; what it cannot merge comes back as values."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.git.repository import Blob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cleveragents.domain.conflict import Lines
    from cleveragents.infrastructure.git.repository import GitRepository

_HUNK: Final = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
# As merges compare; by other rules than these, other lines would seem to have changed.
_DIFF: Final = ("diff", "--no-color", "--histogram", "--no-indent-heuristic", "-U0")
_LINK: Final = 0o120000


@dataclass(frozen=True, slots=True)
class Clash:
    """A path that both sides changed in ways that git cannot bring together."""

    path: str
    #: Git's word for it, such as `contents` or `modify/delete`.
    kind: str
    base: Blob | None
    ours: Blob | None
    theirs: Blob | None
    #: Names of git's making, under which the tree holds versions whose own name is taken.
    aside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """The tree of a merge; with clashes in it, its files hold conflict markers."""

    tree: str
    clashes: tuple[Clash, ...] = ()


@dataclass(slots=True)
class _Stages:
    """What git lists of one path: the versions by their stage, and where it put them."""

    blobs: dict[int, Blob] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)


def merge(repository: GitRepository, ours: str, theirs: str) -> Merged:
    """Merge two commits over the commit that both come from."""
    said = repository.git("merge-tree", "--write-tree", "-z", ours, theirs, fine=(0, 1))
    tree, *rest = said.split(b"\0")
    fields = iter(rest)
    suffix = re.compile(rf"~(?:{ours}|{theirs})(?:_\d+)?$")
    listed: dict[str, _Stages] = {}
    for entry in takewhile(bool, fields):
        about, _, raw = entry.partition(b"\t")
        mode, oid, stage = about.decode().split(" ")
        name = os.fsdecode(raw)
        path = suffix.sub("", name)
        stages = listed.setdefault(path, _Stages())
        stages.blobs[int(stage)] = Blob(int(mode, 8), oid)
        if name != path:
            stages.aside.add(name)
    kinds: dict[str, str] = {}
    for name, kind in _kinds(fields):
        # The first word says most: `binary` comes before `contents`.
        kinds.setdefault(suffix.sub("", name), kind)
    clashes = (_clash(path, kinds, stages) for path, stages in sorted(listed.items()))
    return Merged(tree.decode(), tuple(_unmarked(repository, one, ours, theirs) for one in clashes))


def clashing_lines(
    repository: GitRepository, clash: Clash
) -> tuple[tuple[Lines, ...], tuple[Lines, ...]]:
    """Return the lines of our and of their version that lie in each other's way."""
    if clash.ours is None or clash.theirs is None or _LINK in {clash.ours.mode, clash.theirs.mode}:
        return (), ()
    # Two files that were both made anew differ from nothing, everywhere.
    base = clash.base.oid if clash.base else repository.keep(b"")
    ours = _hunks(repository, base, clash.ours.oid)
    theirs = _hunks(repository, base, clash.theirs.oid)
    # What both changed in the same way is in nobody's way.
    agreed = {(one.start, one.text) for one in ours} & {(one.start, one.text) for one in theirs}
    mine = [one for one in ours if (one.start, one.text) not in agreed]
    yours = [one for one in theirs if (one.start, one.text) not in agreed]
    return (
        tuple(one.lines for one in mine if any(one.touches(other) for other in yours)),
        tuple(one.lines for one in yours if any(one.touches(other) for other in mine)),
    )


def _kinds(fields: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    """Read git's messages: how many paths, the paths, a short word, a sentence."""
    for count in takewhile(bool, fields):
        paths = [os.fsdecode(next(fields)) for _ in range(int(count))]
        word = next(fields).decode()
        next(fields)
        if word.startswith("CONFLICT"):
            for path in paths:
                yield path, word.partition("(")[2].rstrip(")")


def _clash(path: str, kinds: dict[str, str], stages: _Stages) -> Clash:
    kind, found = kinds.get(path, "contents"), stages.blobs
    if kind == "contents" and found.get(1) is None:
        kind = "add/add"
    return Clash(
        path, kind, found.get(1), found.get(2), found.get(3), aside=tuple(sorted(stages.aside))
    )


def _unmarked(repository: GitRepository, clash: Clash, ours: str, theirs: str) -> Clash:
    """Give back each side's own version where git merged them first, and failed at that too."""
    if not clash.kind.startswith("rename"):
        return clash
    marker = b"<<<<<<< " + ours.encode()

    def own(side: Blob | None, commit: str) -> Blob | None:
        if side is None or marker not in b"".join(repository.read([side.oid])):
            return side
        return repository.files(commit, [clash.path]).get(clash.path, side)

    return replace(clash, ours=own(clash.ours, ours), theirs=own(clash.theirs, theirs))


@dataclass(frozen=True, slots=True)
class _Hunk:
    """One change: which lines of the base it takes, from before `start` to before `end`."""

    start: int
    end: int
    #: Where it is in the new version; of lines that were taken away, the line above.
    lines: Lines
    text: bytes

    def touches(self, other: _Hunk) -> bool:
        # Neighbours touch too: git does not merge changes that have no line between them.
        return self.start <= other.end and other.start <= self.end


def _hunks(repository: GitRepository, old: str, new: str) -> list[_Hunk]:
    said = repository.git(*_DIFF, old, new)
    heads = list(_HUNK.finditer(said))
    _, *ends = [head.start() for head in heads] + [len(said)]
    return [_hunk(head, said[head.end() : end]) for head, end in zip(heads, ends, strict=True)]


def _hunk(head: re.Match[bytes], text: bytes) -> _Hunk:
    old, old_many, new, new_many = (1 if one is None else int(one) for one in head.groups())
    # Of nothing, git tells the line above it.
    start = old - 1 if old_many else old
    first = max(1, new)
    return _Hunk(start, start + old_many, (first, max(first, new + new_many - 1)), text)
