"""The apply: everything or nothing, once, whatever dies in the middle."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import CleverAgentsError, RequestError
from cleveragents.infrastructure.apply import journal as journals
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.files import Files
from cleveragents.infrastructure.apply.flip import Flip
from cleveragents.infrastructure.apply.folders import Folders
from cleveragents.infrastructure.apply.journal import Journal
from cleveragents.infrastructure.apply.pending import is_pending
from cleveragents.infrastructure.apply.recovery import recovered, take_back
from cleveragents.infrastructure.apply.rescue import rescue
from cleveragents.infrastructure.apply.site import open_site
from cleveragents.infrastructure.apply.staging import Staging, is_trash
from cleveragents.infrastructure.apply.survey import Survey
from cleveragents.infrastructure.apply.target import Applied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from cleveragents.infrastructure.apply.journal import Operation
    from cleveragents.infrastructure.apply.site import Site
    from cleveragents.infrastructure.apply.target import Recovered, Target

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


class TreeApply:
    """Changes one tree, and finishes or takes back what a dead process began.

    After `apply` returned, every target is in place and durable; after it raised, none is, but
    for CA4106, where `recover` will go on. At any moment of a kill or a power cut in between,
    `recover` makes the tree entirely new or entirely old. A file that somebody else changed is
    not overwritten: the apply is refused, or taken back. On Linux that holds to the last moment,
    because files are exchanged in one step; where they cannot be, and while an apply is taken
    back, a save between our look and our rename, some microseconds, would be lost.
    What a program that has the old file open writes into it until the end is kept aside.

    Safe from many threads and processes: a lock on the tree lets them in one after the other.
    `on_recovered` hears of each apply that was finished or taken back for a dead process, before
    its journal is removed; it may hear of one twice, and must then do nothing the second time.
    """

    def __init__(
        self,
        root: Path,
        home: Path,
        *,
        on_recovered: Callable[[Recovered], object] | None = None,
        lock_wait_s: float = 10.0,
        fault: Callable[[str], object] | None = None,
    ) -> None:
        if home.parent != root:
            raise RequestError(
                f"`home` must be a folder in the root of the tree, got `{home}`",
                hint=f"Pass `{root / '.cleveragents'}`",
            )
        self._home = home
        self._on_recovered = on_recovered
        self._lock_wait_s = lock_wait_s
        self._files = Files(fault)

    def pending(self) -> bool:
        """Say whether an apply runs now or was interrupted; cheap enough for every command."""
        return is_pending(self._home)

    def recover(self) -> tuple[Recovered, ...]:
        """Finish or take back every interrupted apply; one that still runs is left alone.

        One that is damaged, or that was not made here, is left too: it is told, and no apply
        begins until somebody has looked at it.
        """
        if not self.pending():
            return ()
        try:
            with open_site(self._files, self._home, 0) as site:
                return self._recover(site)
        except CleverAgentsError as error:
            if error.code == "CA4104":
                return ()
            raise

    def apply(
        self,
        apply_id: str,
        targets: Iterable[Target],
        *,
        note: bytes = b"",
        before_flip: Callable[[], object] | None = None,
        on_flipped: Callable[[], object] | None = None,
    ) -> Applied:
        """Put all targets in place, or raise and leave the tree as it was.

        `targets` are taken once, one by one, while they are staged. `note` is kept with the
        journal for whoever recovers it. `before_flip` is called when nothing can be said against
        the apply any more; if it raises, nothing happens. `on_flipped` is called when the tree
        is new, durably; if it raises, the tree stays new and `recover` will tell of it again.
        """
        if not _ID.fullmatch(apply_id):
            raise RequestError(
                f"An apply id must be 1 to 100 letters, digits, `.`, `_` and `-`, got {apply_id!r}",
                hint="Pass the id of the plan",
            )
        with open_site(self._files, self._home, self._lock_wait_s) as site:
            for one in self._recover(site):
                if one.outcome == "left":
                    raise refusals.journal_damaged(one.apply_id, one.reason)
            with Staging.make(site, apply_id) as staging:
                journal = self._prepared(site, staging, targets, note, before_flip)
                with Flip(site, staging, journal) as flip:
                    self._flip(site, staging, flip)
                    if on_flipped is not None:
                        on_flipped()
                    self._files.reach("before-done")
                    rescued = _finish(site, staging, flip)
        return _counted(journal.operations, rescued)

    def _recover(self, site: Site) -> tuple[Recovered, ...]:
        names = [name for name in site.waiting if is_trash(name) or _ID.fullmatch(name)]
        found = [recovered(site, name, self._on_recovered) for name in names]
        return tuple(one for one in found if one is not None)

    def _prepared(
        self,
        site: Site,
        staging: Staging,
        targets: Iterable[Target],
        note: bytes,
        before_flip: Callable[[], object] | None,
    ) -> Journal:
        """Do and refuse all that can be done and refused without touching the tree."""
        files = self._files
        try:
            operations = staging.stage(targets)
            files.reach("after-stage")
            staging.flush()
            files.reach("after-sync")
            with Folders(files, os.dup(site.root)) as folders:
                made, removed = Survey(files, folders, operations).run()
            journal = Journal(staging.apply_id, note, operations, made, removed, staging.seal())
            journals.prepare(files, staging.handles[0], journal)
            files.reach("after-check")
            if before_flip is not None:
                before_flip()
            files.reach("before-journal")
        except BaseException as error:
            _discard(staging)
            if isinstance(error, OSError):
                raise refusals.not_replaced(error, staging.at) from error
            raise
        return journal

    def _flip(self, site: Site, staging: Staging, flip: Flip) -> None:
        """Change the tree, or take every change back and raise."""
        try:
            self._forward(staging, flip)
        except BaseException as error:
            take_back(site, staging, flip)
            _discard(staging)
            if isinstance(error, CleverAgentsError) and flip.edited:
                error.facts["edited"] = [repr(path) for path in flip.edited]
            raise

    def _forward(self, staging: Staging, flip: Flip) -> None:
        try:
            journals.commit(self._files, staging.handles[0])
            self._files.reach("after-journal")
            flip.forward()
            journals.flipped(self._files, staging.handles[0])
        except OSError as error:
            raise refusals.not_replaced(error, flip.at) from error


def _finish(site: Site, staging: Staging, flip: Flip) -> tuple[str, ...]:
    """Remove the old files, but for those that somebody still wrote to; return these.

    If one cannot be kept, nothing is removed: the next recovery tries again.
    """
    rescued: tuple[str, ...] = ()
    with suppress(OSError):
        rescued = rescue(site, staging.apply_id, flip.written_since())
        staging.discard()
    return rescued


def _discard(staging: Staging) -> None:
    """Remove what is no longer needed; what resists is removed by the next recovery."""
    with suppress(OSError):
        staging.discard()


def _counted(operations: tuple[Operation, ...], rescued: tuple[str, ...]) -> Applied:
    created = sum(one.expected is None for one in operations)
    deleted = sum(one.after is None for one in operations)
    replaced = len(operations) - created - deleted
    return Applied(len(operations), created, replaced, deleted, rescued)
