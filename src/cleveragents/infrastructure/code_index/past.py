"""Keeps the history of a tree up to date, at the price of few processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cleveragents.infrastructure.code_index.git_log import (
    GitSilent,
    Head,
    commits_of,
    head_of,
    hint_of,
    ids_before,
)
from cleveragents.infrastructure.code_index.history import NO_HISTORY, Commit, CommitHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cleveragents.infrastructure.code_index.storage import Storage

__all__ = ["NOTHING_KNOWN", "Past", "PastReader"]

#: How long one process may take.
GIT_S_MAX: Final = 5.0
#: How long a git that gave no answer is not asked again.
SILENCE_S: Final = 60.0
#: How many commits are read at once; the rest has its turn with the next refresh.
COMMITS_AT_ONCE: Final = 2_000
_NO_REPOSITORY: Final = "History is left out: the folder is not in a git repository"
_NOT_READ: Final = "History is not read yet; the work goes on in the background"


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a tree as it was found last; it never changes."""

    history: CommitHistory = NO_HISTORY
    head: Head | None = None
    #: What would have changed with the head.
    hint: tuple[str, ...] | None = None
    #: Everything that was read, by id.
    commits: Mapping[str, Commit] = field(default_factory=dict)
    #: Whether commits are still to be read.
    unread: bool = True
    #: What is missing, and why.
    note: str | None = _NOT_READ
    #: Before this time git is not asked again.
    silent_until_s: float = float("-inf")


NOTHING_KNOWN: Final = Past()


class PastReader:
    """Reads the history of one root; it keeps nothing, `Past` does."""

    def __init__(self, root: str, storage: Storage, monotonic: Callable[[], float]) -> None:
        self._root = root
        self._storage = storage
        self._monotonic = monotonic

    def refreshed(self, past: Past, *, day: int, later: bool) -> Past:
        """Return the history of the commit that the tree stands on now.

        With `later`, nothing is read, and what is not known is left out.
        """
        hint = hint_of(self._root)
        if hint == ():
            return Past(hint=hint, unread=False, note=_NO_REPOSITORY)
        same = hint is not None and hint == past.hint
        if self._monotonic() < past.silent_until_s:
            return past
        if same and past.head is not None and not past.unread:
            return past
        if later:
            return past if same else Past(commits=past.commits)
        try:
            return self._read(past, hint, day)
        except GitSilent as reason:
            return Past(
                hint=hint,
                unread=False,
                note=f"History is left out: {reason}",
                silent_until_s=self._monotonic() + SILENCE_S,
            )

    def _read(self, past: Past, hint: tuple[str, ...] | None, day: int) -> Past:
        head = head_of(self._root, GIT_S_MAX)
        if head == past.head and not past.unread:
            return replace(past, hint=hint)
        ids = ids_before(self._root, head.id, GIT_S_MAX)
        commits = {one: past.commits[one] for one in ids if one in past.commits}
        commits |= self._kept([one for one in ids if one not in commits])
        missing = [one for one in ids if one not in commits]
        read = commits_of(self._root, missing[:COMMITS_AT_ONCE], GIT_S_MAX) if missing else []
        if read:
            self._storage.keep_commits(
                {bytes.fromhex(one.id): one.packed() for one in read}, day=day
            )
            commits |= {one.id: one for one in read}
        unread = len(missing) > COMMITS_AT_ONCE
        known = [commits[one] for one in ids if one in commits]
        return Past(
            CommitHistory(known, head.prefix),
            head,
            hint,
            commits,
            unread,
            _NOT_READ if unread else None,
        )

    def _kept(self, ids: list[str]) -> dict[str, Commit]:
        bodies = self._storage.commits(bytes.fromhex(one) for one in ids)
        return {name.hex(): Commit.unpacked(body) for name, body in bodies.items()}
