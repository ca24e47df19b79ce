"""What becomes of an apply whose process died: it is finished, or taken back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cleveragents.domain.errors import ConflictError
from cleveragents.infrastructure.apply import journal as journals
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.flip import Flip
from cleveragents.infrastructure.apply.staging import Staging, is_trash
from cleveragents.infrastructure.apply.target import Recovered

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.apply.site import Site


def recovered(
    site: Site, name: str, tell: Callable[[Recovered], object] | None
) -> Recovered | None:
    """Bring one interrupted apply to its end and tell of it; None for what was over already."""
    try:
        with Staging(site, name) as staging:
            found = None if is_trash(name) else _ended(site, staging)
            if found is not None and tell is not None:
                tell(found)
            # The tree is right; what cannot be removed now waits for the next recovery.
            with suppress(OSError):
                staging.discard()
    except OSError as error:
        raise refusals.not_taken_back(error, site.home_name, name) from error
    return found


def take_back(site: Site, staging: Staging, flip: Flip) -> None:
    """Make the tree old again; CA4106 when that fails, and the journal stays."""
    try:
        journals.turn_back(site.files, staging.handles[0])
        site.files.reach("after-mark")
        flip.back()
    except OSError as error:
        raise refusals.not_taken_back(error, flip.at, staging.apply_id) from error


def _ended(site: Site, staging: Staging) -> Recovered:
    journal, back = journals.read(site.files, staging.handles[0], staging.apply_id)
    if journal is None:
        return Recovered(staging.apply_id, "old", b"")
    staging.open_elsewhere()
    if any(one.stage >= len(staging.handles) for one in journal.operations):
        raise refusals.journal_damaged(staging.apply_id, "it names a folder that is not known")
    with Flip(site, staging, journal) as flip:
        if not back:
            # What stops it now, or somebody's edit in the meantime, would stop it again.
            with suppress(OSError, ConflictError):
                flip.forward()
                return Recovered(staging.apply_id, "new", journal.note)
        take_back(site, staging, flip)
        return Recovered(staging.apply_id, "old", journal.note, tuple(flip.edited))
