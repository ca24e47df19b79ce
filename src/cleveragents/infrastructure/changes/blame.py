"""Who wrote each line of a file: which attempt of which plan, when, why and for how much.

Every changeset is commits in our repository. The user's tree is put on top of a plan's head
as one commit more, and git says which commit each line came with; what neither the plan nor
an older one wrote is the user's own. Renames are followed as git follows them.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money
from cleveragents.infrastructure.changes import apply_rows as rows
from cleveragents.infrastructure.changes.selection import shown

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.merge_rows import MergeRow
    from cleveragents.infrastructure.changes.selection import PlanState
    from cleveragents.infrastructure.git.repository import Blob, GitRepository
    from cleveragents.infrastructure.store import Store

_LINK: Final = 0o120000
#: Git takes a file with a NUL among its first bytes for no text, and so do we.
_TEXT_BYTES: Final = 8000
_LINE: Final = re.compile(rb"([0-9a-f]{40}) \d+ (\d+)(?: \d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The attempt that a line came from, the apply that brought it, and what is known of both."""

    plan_id: str
    node: str | None
    actor: str | None
    attempt: int | None
    changeset_id: str
    apply_id: str
    applied_at: float
    #: What all attempts of the node were billed; None when nothing is recorded.
    cost: Money | None
    #: What the node was told: its command, its prompt, its model.
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the user's file; without an origin it is the user's own."""

    number: int
    text: bytes
    origin: Origin | None


class Blame:
    """Says who wrote the lines of files as they stand; it holds no state and changes no file."""

    def __init__(self, store: Store, repository: GitRepository) -> None:
        self._store = store
        self._repository = repository

    def lines(self, file: Path, line: int | None = None) -> tuple[Line, ...]:
        """Return every line of a file, or one of them, with its origin."""
        path = self._path_of(file)
        user = self._repository.snapshot()
        blob = self._repository.files(user, [path]).get(path)
        texts = self._texts(path, blob)
        if line is not None and not 1 <= line <= len(texts):
            raise RequestError(
                f"{shown(path)} has the lines 1 to {len(texts)}, got {line}"
                if texts
                else f"{shown(path)} is empty, got line {line}"
            )
        numbers = range(1, len(texts) + 1) if line is None else (line,)
        found = self._origins(path, user, set(numbers))
        return tuple(Line(one, texts[one - 1], found.get(one)) for one in numbers)

    # -- the file --------------------------------------------------------------------------

    def _path_of(self, file: Path) -> str:
        # The links on the way are followed, the file's own name is not: a link is no text.
        place = file.absolute()
        real = os.path.join(os.path.realpath(place.parent), place.name)  # noqa: PTH118  # as it is
        root = os.path.realpath(self._repository.root)
        path = os.path.relpath(real, root)
        if Path(path).parts[:1] == (os.pardir,):
            raise _refused(file, f"lies outside of the tree `{root}`")
        if not os.path.lexists(place):
            raise _refused(file, "is not there")
        if place.is_dir() and not place.is_symlink():
            raise _refused(file, "is a folder")
        return path

    def _texts(self, path: str, blob: Blob | None) -> list[bytes]:
        if blob is None:
            raise _refused(path, "is ignored, so no plan sees or writes it")
        if blob.mode == _LINK:
            raise _refused(path, "is a link")
        (data,) = self._repository.read([blob.oid])
        if b"\0" in data[:_TEXT_BYTES]:
            raise _refused(path, "is binary and has no lines")
        # Only this ends a line for git.
        *texts, rest = data.split(b"\n")
        return [*texts, rest] if rest else texts

    # -- the lines -------------------------------------------------------------------------

    def _origins(self, path: str, user: str, wanted: set[int]) -> dict[int, Origin]:
        """Ask plan after plan, the last applied first; what one knows no other is asked."""
        with self._store.read() as connection:
            done = rows.apply_rows(connection)
            plans = list(dict.fromkeys(one.plan_id for one in reversed(done)))
            found: dict[int, Origin] = {}
            tree = self._repository.tree_of(user)
            for plan_id in plans:
                asked = wanted - found.keys()
                applied = [one for one in done if one.plan_id == plan_id]
                if not asked or not rows.standing(applied):
                    continue
                plan, _ = rows.plan_state(connection, plan_id)
                owners = _Owners(self._repository, connection, plan, applied)
                view = self._repository.commit_tree(tree, plan.tree.head)
                for number, commit in self._blamed(view, path, asked):
                    row = owners.of(commit)
                    if row is not None:
                        found[number] = owners.origin(row)
        return found

    def _blamed(self, commit: str, path: str, wanted: set[int]) -> Iterator[tuple[int, str]]:
        only = [f"-L{min(wanted)},{max(wanted)}"]
        said = self._repository.git("blame", "--porcelain", *only, commit, "--", path)
        for line in said.split(b"\n"):
            # The text of a line follows a tab; what is told of a commit begins with a word.
            head = _LINE.fullmatch(line)
            if head is not None and (number := int(head[2])) in wanted:
                yield number, head[1].decode()


class _Owners:
    """The commits of a plan's tree by the changeset that they came with."""

    def __init__(
        self,
        repository: GitRepository,
        connection: sqlite3.Connection,
        plan: PlanState,
        applied: Sequence[Applied],
    ) -> None:
        self._connection = connection
        self._applied = applied
        self._spent = spent_by_key(connection, plan.plan_id)
        self._origins: dict[str, Origin] = {}
        # A plan of which parts were applied, by paths, has more in the tree than whole changesets.
        self._parts = any(one.paths for one in applied)
        said = repository.git("rev-list", "--parents", plan.tree.head, f"^{plan.tree.base}")
        parents = {one: first for one, first, *_ in map(bytes.split, said.splitlines())}
        self._rows: dict[bytes, MergeRow] = {}
        head = plan.tree.base
        for row in plan.merged:
            # An attempt's own commits, then those that brought it into the plan's tree.
            for last, first in ((row.theirs, row.start), (row.head or "", head)):
                commit = last.encode()
                while commit != first.encode() and self._rows.setdefault(commit, row) is row:
                    commit = parents[commit]
            head = row.head or ""

    def of(self, commit: str) -> MergeRow | None:
        """Return the changeset that a commit belongs to, if it is in the user's tree."""
        row = self._rows.get(commit.encode())
        level = self._applied[-1].level
        if row is not None and (self._parts or row.changeset_id in level.changesets):
            return row
        return None

    def origin(self, row: MergeRow) -> Origin:
        """Return all that is known of a changeset and its attempt."""
        known = self._origins.get(row.changeset_id)
        if known is None:
            by = self._brought_by(row)
            known = self._origins[row.changeset_id] = Origin(
                plan_id=row.plan_id,
                node=row.node,
                actor=row.actor,
                attempt=row.attempt,
                changeset_id=row.changeset_id,
                apply_id=by.id,
                applied_at=by.at,
                cost=_cost(self._spent, row),
                told=author_facts(self._connection, row.plan_id, row.node),
            )
        return known

    def _brought_by(self, row: MergeRow) -> Applied:
        """Return the apply that a changeset is in the tree by: since it, it was always there."""
        by = None
        for one in self._applied:
            if row.changeset_id not in one.level.changesets:
                by = None
            elif by is None:
                by = one
        return by or [one for one in self._applied if one.paths][-1]


def author_facts(
    connection: sqlite3.Connection, plan_id: str, node: str | None
) -> Mapping[str, Any]:
    """Return what a plan told a node: its command, its prompt, its model; empty if not kept."""
    found = connection.execute("SELECT source FROM plans WHERE id = ?", (plan_id,)).fetchone()
    if found is None or node is None:
        return {}
    plan = json.loads(found[0])
    about = plan["nodes"].get(_node(node), {})
    actor = about.get("actor") or (plan.get("defaults") or {}).get("actor") or {}
    model = actor.get("llm", {})
    told = {"prompt": model.get("prompt"), "model": model.get("model")}
    told |= {name: actor.get(name) for name in ("command", "python")}
    return {name: value for name, value in told.items() if value is not None}


def spent_by_key(connection: sqlite3.Connection, plan_id: str) -> dict[str, int]:
    """Return what was billed in a plan on each account, in pico-dollars."""
    sums: dict[str, int] = {}
    query = "SELECT body FROM events WHERE plan = ? AND kind LIKE 'money.%'"
    for (text,) in connection.execute(query, (plan_id,)):
        body = json.loads(text)
        for key in body.get("keys", ()):
            sums[key] = sums.get(key, 0) + body["spent"]
    return sums


def _cost(spent: Mapping[str, int], row: MergeRow) -> Money | None:
    """Return what a node was billed; None when nothing is recorded of it.

    Many nodes may share an actor, so the actor's bills count only where none names a node.
    """
    label = "label:node="
    key = f"actor:{row.actor}"
    if any(one.startswith(label) for one in spent):
        key = f"{label}{row.plan_id}/{_node(row.node or '')}"
    return Money(spent[key]) if key in spent else None


def _node(instance: str) -> str:
    """Return the name of the node that an instance of a fan-out is of."""
    return instance.partition("[")[0]


def _refused(what: object, why: str) -> RequestError:
    name = shown(os.fspath(what)) if isinstance(what, os.PathLike) else shown(str(what))
    return RequestError(
        f"FILE must be a text file of the tree; {name} {why}",
        hint="Run `git ls-files` to see what is in the tree",
    )
