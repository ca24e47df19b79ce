"""What every store of changesets refuses, and how it names them: the rules once, for all stores."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import InternalError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cleveragents.domain.changeset import ChangeEntry, Changeset

# A source of ids that repeats itself this often in a row is broken.
_ID_ATTEMPTS_MAX: Final = 100


def short_id() -> str:
    """Return a name that nothing else has, in all likelihood."""
    return secrets.token_hex(5)


def claimed_id(new_id: Callable[[], str], claim: Callable[[str], bool]) -> str:
    """Ask for ids until one can be claimed, which tells whether it was free, and return that."""
    for _ in range(_ID_ATTEMPTS_MAX):
        changeset_id = f"c-{new_id()}"
        if claim(changeset_id):
            return changeset_id
    raise InternalError(f"The source of changeset ids repeated itself {_ID_ATTEMPTS_MAX} times")


def check_open(changeset: Changeset) -> None:
    """Refuse, with CA4002, to change a changeset that is finished."""
    if changeset.finished:
        raise PlanError(
            f"Changeset `{changeset.id}` is finished and takes no more changes",
            code="CA4002",
            facts={"changeset": changeset.id},
            hint="Start a new changeset and record into that",
        )


def check_owner(changeset: Changeset, entry: ChangeEntry) -> None:
    """Refuse, with CA4003, an entry that says itself that it is another's."""
    for what in ("actor", "node", "attempt"):
        owner, maker = getattr(changeset, what), getattr(entry, what)
        if None not in {owner, maker} and owner != maker:
            raise PlanError(
                f"Changeset `{changeset.id}` is of {what} {owner!r}, the change is of {maker!r}",
                code="CA4003",
                facts={"changeset": changeset.id, what: maker},
                hint=f"Record it into the changeset of {what} {maker!r}",
            )


def never_started(changeset_id: str) -> PlanError:
    """Return the refusal of an id that no changeset has."""
    return PlanError(
        f"Changeset {changeset_id!r} was never started",
        code="CA4002",
        facts={"changeset": changeset_id},
        hint="Pass an id that `start_changeset()` returned",
    )
