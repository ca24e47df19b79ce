"""Sandboxes as rows and writes of the store: who holds which, and what became of it.

An owner without a row is dead. It gets none again, so whatever was taken from it stays taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.sandbox.sandbox import PlanTree, SandboxInfo, SandboxState
from cleveragents.infrastructure.stored_text import plain

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cleveragents.infrastructure.transaction import Transaction

_SELECT: Final = (
    "SELECT s.id, plan, node, attempt, kind, base, head, folder, owner, fence, state, changeset,"
    " coalesce(alive_until, 0) FROM sandboxes s LEFT JOIN sandbox_owners o ON o.id = s.owner"
)
#: The owner of what nobody holds.
NOBODY: Final = ""


def find(source: Transaction | sqlite3.Connection, sandbox_id: str) -> SandboxInfo:
    """Return what is known of a sandbox, or refuse with CA5004."""
    row = source.execute(f"{_SELECT} WHERE s.id = ?", (plain(sandbox_id),)).fetchone()
    if row is None:
        raise SandboxError(
            f"There is no sandbox {sandbox_id!r}",
            code="CA5004",
            hint="Pass the id of a sandbox that `create()` returned, or `list()` shows",
        )
    return _info(row)


def find_all(
    source: Transaction | sqlite3.Connection, *, plan: str | None = None, kept_only: bool = False
) -> tuple[SandboxInfo, ...]:
    """Return all sandboxes, or those of a plan, or those whose folder may still be there."""
    rows = source.execute(
        f"{_SELECT} WHERE (?1 IS NULL OR plan = ?1) AND (?2 OR state <> 'released')"
        " ORDER BY s.rowid",
        (plan, not kept_only),
    )
    return tuple(_info(row) for row in rows)


def newest_trees(source: Transaction | sqlite3.Connection) -> tuple[PlanTree, ...]:
    """Return for each plan the tree that its last sandbox started from."""
    # Of a group, SQLite returns the row that has the maximum.
    found = source.execute("SELECT base, head, max(rowid) FROM sandboxes GROUP BY plan")
    return tuple(PlanTree(base, head) for base, head, _ in found)


def owners(source: Transaction | sqlite3.Connection) -> dict[str, float]:
    """Return until when each owner is known to live."""
    return dict(source.execute("SELECT id, alive_until FROM sandbox_owners").fetchall())


def announce(owner: str, until: float) -> Callable[[Transaction], None]:
    """Begin the life of an owner."""

    def write(tx: Transaction) -> None:
        tx.execute("INSERT INTO sandbox_owners VALUES (?, ?)", (owner, until))

    return write


def renew(owner: str, until: float) -> Callable[[Transaction], None]:
    """Prolong the life of an owner, unless it was declared dead."""

    def write(tx: Transaction) -> None:
        tx.execute("UPDATE sandbox_owners SET alive_until = ? WHERE id = ?", (until, owner))

    return write


def bury(owner: str, until: float | None = None) -> Callable[[Transaction], bool]:
    """Declare an owner dead for good; with `until`, only if it was not heard of since."""

    def write(tx: Transaction) -> bool:
        tx.execute(
            "DELETE FROM sandbox_owners WHERE id = ?1 AND (?2 IS NULL OR alive_until = ?2)",
            (owner, until),
        )
        return owners(tx).get(owner) is None

    return write


def add(info: SandboxInfo, at: float) -> Callable[[Transaction], None]:
    """Make a sandbox known, if its owner is not dead by now."""

    def write(tx: Transaction) -> None:
        _refuse_the_dead(tx, info.owner)
        tx.execute(
            "INSERT INTO sandboxes (id, plan, node, attempt, kind, base, head, folder, owner)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                info.id,
                info.plan,
                info.node,
                info.attempt,
                info.kind,
                info.tree.base,
                info.tree.head,
                info.folder,
                info.owner,
            ),
        )
        _tell(tx, "created", info, at, kind=info.kind, commit=info.tree.head)

    return write


def seal(sandbox_id: str, owner: str, changeset: str, at: float) -> Callable[[Transaction], None]:
    """Say which changeset holds all that was done in a sandbox; saying it again is fine."""

    def write(tx: Transaction) -> None:
        info = _held(tx, sandbox_id, owner)
        if info.state is SandboxState.SEALED and info.changeset == changeset:
            return
        if info.state is SandboxState.SEALED:
            raise SandboxError(
                f"Sandbox `{info.id}` is sealed by changeset `{info.changeset}` already",
                code="CA5004",
                facts={"sandbox": info.id, "changeset": info.changeset},
            )
        tx.execute(
            "UPDATE sandboxes SET state = 'sealed', changeset = ? WHERE id = ?",
            (changeset, info.id),
        )
        _tell(tx, "sealed", info, at, changeset=changeset)

    return write


def release(
    sandbox_id: str, owner: str, at: float, *, discard: bool
) -> Callable[[Transaction], SandboxInfo]:
    """Give a sandbox up, so that its folder may go; only sealed ones, unless told to discard."""

    def write(tx: Transaction) -> SandboxInfo:
        info = _held(tx, sandbox_id, owner)
        if info.state is not SandboxState.SEALED and not discard:
            raise SandboxError(
                f"Sandbox `{info.id}` holds work that is not in the store yet",
                code="CA5003",
                facts={"sandbox": info.id, "plan": info.plan, "node": info.node},
                hint="Seal its changes first, or release it with `discard=True` to lose them",
            )
        tx.execute("UPDATE sandboxes SET state = 'released' WHERE id = ?", (info.id,))
        _tell(tx, "released", info, at, changeset=info.changeset, discarded=discard)
        return find(tx, info.id)

    return write


def take(info: SandboxInfo, owner: str) -> Callable[[Transaction], bool]:
    """Take a sandbox over from a dead owner; false when somebody else was first."""

    def write(tx: Transaction) -> bool:
        _refuse_the_dead(tx, owner)
        taken = tx.execute(
            "UPDATE sandboxes SET owner = ?, fence = fence + 1"
            " WHERE id = ? AND owner = ? AND fence = ? AND state <> 'released'"
            " AND owner NOT IN (SELECT id FROM sandbox_owners)",
            (owner, info.id, info.owner, info.fence),
        )
        return taken.rowcount == 1

    return write


def leave(sandbox_id: str, owner: str) -> Callable[[Transaction], None]:
    """Leave a sandbox to whoever collects next."""

    def write(tx: Transaction) -> None:
        tx.execute(
            "UPDATE sandboxes SET owner = ?, fence = fence + 1"
            " WHERE id = ? AND owner = ? AND state <> 'released'",
            (NOBODY, sandbox_id, owner),
        )

    return write


def not_ours(info: SandboxInfo) -> SandboxError:
    """Return the refusal of a sandbox that is released, or in other hands."""
    released = info.state is SandboxState.RELEASED
    why = "was released" if released else "is held by another process"
    return SandboxError(
        f"Sandbox `{info.id}` {why}",
        code="CA5004",
        facts={"sandbox": info.id, "state": info.state.value, "owner": info.owner},
        hint="Create a new one" if released else "Wait until that process has ended",
    )


def _held(tx: Transaction, sandbox_id: str, owner: str) -> SandboxInfo:
    info = find(tx, sandbox_id)
    if info.owner != owner or info.state is SandboxState.RELEASED:
        raise not_ours(info)
    return info


def _refuse_the_dead(tx: Transaction, owner: str) -> None:
    if owners(tx).get(owner) is None:
        raise SandboxError(
            "This process was silent beyond its lease, or is closed, and holds no sandboxes",
            code="CA5004",
            facts={"owner": owner},
            hint="Make a new `SandboxManager`; `open()` finds what the old one left",
        )


def _tell(tx: Transaction, what: str, info: SandboxInfo, at: float, **more: Any) -> None:
    body = {"sandbox": info.id, "node": info.node, "attempt": info.attempt, **more}
    tx.event(f"sandbox.{what}", body, at=at, plan=info.plan)


def _info(row: tuple[Any, ...]) -> SandboxInfo:
    sandbox_id, plan, node, attempt, kind, base, head, *held, state, changeset, until = row
    folder, owner, fence = held
    return SandboxInfo(
        id=sandbox_id,
        plan=plan,
        node=node,
        attempt=attempt,
        kind=kind,
        tree=PlanTree(base, head),
        folder=folder,
        owner=owner,
        fence=fence,
        state=SandboxState(state),
        changeset=changeset,
        lease_until=until,
    )
