"""What becomes of an apply whose process died: it is finished, or taken back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cleveragents.domain.errors import ConflictError
from cleveragents.infrastructure.apply import journal as journals
from cleveragents.infrastructure.apply import refusals
from cleveragents.infrastructure.apply.flip import Flip
from cleveragents.infrastructure.apply.rescue import rescue
from cleveragents.infrastructure.apply.staging import Staging, is_trash
from cleveragents.infrastructure.apply.target import Recovered

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.infrastructure.apply.site import Site


def recovered(
    site: Site, name: str, tell: Callable[[Recovered], object] | None
) -> Recovered | None:
    """Bring one interrupted apply to its end and tell of it; None for what was over already.

    One whose journal cannot be followed, because it is damaged or not ours, is left alone.
    """
    try:
        staging = Staging(site, name)
    except OSError as error:
        return Recovered(name, "left", b"", reason=repr(error))
    with staging:
        try:
            found = None if is_trash(name) else _ended(site, staging)
        except ValueError as error:
            return Recovered(name, "left", b"", reason=str(error))
        except OSError as error:
            raise refusals.not_taken_back(error, site.home_name, name) from error
        if found is not None and tell is not None:
            tell(found)
        # The tree is right; what cannot be removed now waits for the next recovery.
        with suppress(OSError, ValueError):
            staging.discard()
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
    read = journals.read(site.files, staging.handles[0])
    if read is None:
        return Recovered(staging.apply_id, "old", b"")
    journal, course = read
    if (journal.apply_id, journal.seal) != (staging.apply_id, staging.seal()):
        raise ValueError("it was not made here: the tree is a copy, or came from a stranger")
    staging.open_elsewhere()
    if any(not 0 <= one.stage < len(staging.handles) for one in journal.operations):
        raise ValueError("it names a folder that is not known")
    with Flip(site, staging, journal) as flip:
        if course == "forward":
            # What stops it now, or somebody's edit in the meantime, would stop it again.
            with suppress(OSError, ConflictError):
                flip.forward()
                journals.flipped(site.files, staging.handles[0])
                course = "flipped"
        if course == "flipped":
            saved = rescue(site, staging.apply_id, flip.written_since())
            return Recovered(staging.apply_id, "new", journal.note, rescued=saved)
        take_back(site, staging, flip)
        return Recovered(staging.apply_id, "old", journal.note, tuple(flip.edited))
