"""The books of a store: money, errors, changes and the audit trail, each checked against itself.

Nothing is repaired here; what is wrong is told by its id. All is read in one snapshot of the
store, and versions are in git before the store speaks of them, so plans may run meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.audit import verify_balances, verify_chain
from cleveragents.infrastructure.changes.apply_rows import apply_rows
from cleveragents.infrastructure.changes.merge_rows import conflict_rows, merge_rows
from cleveragents.infrastructure.transaction import chained

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cleveragents.infrastructure.audit import Verdict
    from cleveragents.infrastructure.changes.apply_rows import Applied
    from cleveragents.infrastructure.changes.merge_rows import MergeRow
    from cleveragents.infrastructure.git.repository import GitRepository

#: What becomes of a recorded change, in the order in which it is told.
FATES: Final = ("applied", "unapplied", "conflicted", "rejected", "pending", "open")
_STATES: Final = ("sealed", "merged", "conflicted", "rejected")
#: What the trail tells of changes, and the part of each event that names what it is about.
_TOLD: Final = {
    "changeset.started": "changeset",
    "change.recorded": "changeset",
    "changeset.sealed": "changeset",
    "changeset.merged": "changeset",
    "changeset.rejected": "changeset",
    "conflict.found": "conflict",
    "plan.applied": "apply",
    "plan.reverted": "apply",
}


@dataclass(frozen=True, slots=True)
class Wrong:
    """One thing that does not hold: what it is about, and what is wrong with it."""

    about: str
    says: str


@dataclass(frozen=True, slots=True)
class Book:
    """One book: what was counted in it, and all that is wrong."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    wrong: tuple[Wrong, ...] = ()


def check_books(
    connection: sqlite3.Connection, repository: GitRepository | None
) -> tuple[Book, ...]:
    """Check every book; without a repository, plans that have a tree are damaged."""
    return (
        _checked("money", lambda: _verdict("money", "entries", verify_balances(connection))),
        _checked("errors", lambda: _errors(connection)),
        _checked("changes", lambda: _Changes(connection, repository).book()),
        _checked("trail", lambda: _verdict("trail", "events", verify_chain(connection))),
    )


def _checked(name: str, check: Callable[[], Book]) -> Book:
    try:
        return check()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # What a stranger's hand put into a row need not be what its reader expects.
        says = f"holds a record that cannot be read: {type(error).__name__}: {error}"
        return Book(name, {}, (Wrong(name, says),))


def _verdict(name: str, what: str, verdict: Verdict) -> Book:
    counts = {what: verdict.checked}
    if verdict.reason is None:
        return Book(name, counts)
    about = name if verdict.broken_at is None else f"event {verdict.broken_at}"
    return Book(name, counts, (Wrong(about, verdict.reason),))


def _errors(connection: sqlite3.Connection) -> Book:
    """Check that every recorded error has a decision, and that all counts agree."""
    recorded: dict[str, dict[int, str]] = defaultdict(dict)
    decided: dict[str, list[int]] = defaultdict(list)
    query = "SELECT kind, body FROM events WHERE kind IN ('error.recorded', 'error.decided')"
    for kind, text in connection.execute(query):
        body = json.loads(text)
        if kind == "error.recorded":
            recorded[body["plan_id"]][body["seq"]] = body["category"]
        else:
            decided[body["plan_id"]].append(body["record_seq"])
    query = "SELECT plan, records, decisions, by_category FROM error_plans"
    kept = {plan: (*counts, json.loads(by)) for plan, *counts, by in connection.execute(query)}
    wrong = []
    for plan in sorted(recorded.keys() | decided.keys() | kept.keys()):
        errors, decisions = recorded[plan], decided[plan]
        without, strange = errors.keys() - set(decisions), set(decisions) - errors.keys()
        wrong += [Wrong(f"error {seq} of {plan}", "has no decision") for seq in sorted(without)]
        wrong += [Wrong(f"error {seq} of {plan}", "is decided and gone") for seq in sorted(strange)]
        counted = (len(errors), len(decisions), dict(Counter(errors.values())))
        told = kept.get(plan, (0, 0, {}))
        if told != counted:
            wrong.append(Wrong(plan, f"keeps the counts {told}, its events add up to {counted}"))
    counts = {
        "errors": sum(map(len, recorded.values())),
        "decisions": sum(map(len, decided.values())),
    }
    return Book("errors", counts, tuple(wrong))


@dataclass(frozen=True, slots=True)
class _Changeset:
    number: int
    id: str
    plan: str
    entries: int
    digest: bytes
    finished: bool


class _Changes:
    """The book of changes: what was recorded, what became of it, and where that is kept."""

    def __init__(self, connection: sqlite3.Connection, repository: GitRepository | None) -> None:
        self._connection = connection
        self._repository = repository
        self._wrong: list[Wrong] = []
        query = "SELECT number, id, plan, entries, digest, finished FROM changesets ORDER BY number"
        self._changesets = [_Changeset(*row) for row in connection.execute(query)]

    def book(self) -> Book:
        """Check all of it."""
        self._check_trail()
        self._check_entries()
        self._check_contents()
        self._check_belonging()
        fates: dict[str, str] = {}
        trees = self._connection.execute("SELECT plan, base, head FROM plan_trees ORDER BY plan")
        for plan, base, head in trees.fetchall():
            merges = merge_rows(self._connection, plan)
            applies = apply_rows(self._connection, plan)
            self._check_order(plan, (base, head), merges)
            self._check_applies(merges, applies)
            self._check_versions(plan, (base, head), merges, applies)
            fates |= _fates(merges, applies)
        counts = {"changesets": len(self._changesets), "changes": 0, **dict.fromkeys(FATES, 0)}
        for one in self._changesets:
            counts["changes"] += one.entries
            counts[fates.get(one.id, "pending" if one.finished else "open")] += one.entries
        return Book("changes", counts, tuple(self._wrong))

    def _add(self, about: object, says: str, *, unless: object = False) -> None:
        if not unless:
            self._wrong.append(Wrong(str(about), says))

    # -- what was recorded -----------------------------------------------------------------

    def _check_trail(self) -> None:
        """Compare the tables with the trail, both ways."""
        told: dict[str, Counter[str]] = {kind: Counter() for kind in _TOLD}
        marks = ", ".join("?" * len(_TOLD))
        query = f"SELECT kind, body FROM events WHERE kind IN ({marks})"  # noqa: S608  # ours
        for kind, text in self._connection.execute(query, tuple(_TOLD)):
            about = json.loads(text).get(_TOLD[kind])
            # The plan's own state may change by an event of the same name.
            if about is not None:
                told[kind][about] += 1
        for changeset in self._changesets:
            kept, counted = changeset.entries, told["change.recorded"][changeset.id]
            says = f"counts {kept} changes, {counted} were recorded"
            self._add(changeset.id, says, unless=kept == counted)
        merged = "SELECT changeset FROM merges WHERE state = 'merged'"
        rejected = "SELECT changeset FROM merges WHERE state = 'rejected'"
        applied = told["plan.applied"] + told["plan.reverted"]
        self._compare(told["changeset.started"], "SELECT id FROM changesets", "started")
        self._compare(told["changeset.sealed"], "SELECT changeset FROM merges", "sealed")
        self._compare(told["changeset.merged"], merged, "merged")
        self._compare(told["changeset.rejected"], rejected, "rejected")
        self._compare(told["conflict.found"], "SELECT id FROM conflicts", "found")
        self._compare(applied, "SELECT id FROM applies", "applied")

    def _compare(self, told: Counter[str], query: str, word: str) -> None:
        kept = {one for (one,) in self._connection.execute(query)}
        for one in sorted(told.keys() - kept):
            self._add(one, f"was {word} by the trail, and the store does not know it")
        for one in sorted(kept - told.keys()):
            self._add(one, f"is {word} in the store, and the trail does not know it")

    def _check_entries(self) -> None:
        query = (
            "SELECT kind, path, old_path, before, after, mode_before, mode_after, actor, node,"
            " attempt, tool_call, at FROM changes WHERE changeset = ? ORDER BY number"
        )
        for changeset in self._changesets:
            digest = bytes(32)
            for kind, path, old_path, *rest in self._connection.execute(query, (changeset.number,)):
                digest = chained(digest, (kind, _text(path), _text(old_path), *rest))
            same = digest == changeset.digest
            self._add(changeset.id, "holds other changes than those recorded", unless=same)

    def _check_contents(self) -> None:
        found = self._connection.execute("SELECT sha256, size, data FROM contents")
        for sha256, size, data in found:
            same = (hashlib.sha256(data).hexdigest(), len(data)) == (sha256, size)
            self._add(f"content {sha256}", "is not what was recorded", unless=same)
        missing = self._connection.execute(
            "SELECT s.id, e.number FROM changes e JOIN changesets s ON s.number = e.changeset"
            " WHERE e.before NOT IN (SELECT sha256 FROM contents)"
            " OR e.after NOT IN (SELECT sha256 FROM contents)"
        )
        for changeset, number in missing:
            self._add(changeset, f"has a change, number {number}, whose content is missing")

    def _check_belonging(self) -> None:
        """Check that rows belong to rows that are there, and that are in the state for it."""
        strange = {
            "has changes, and is gone": (
                "SELECT DISTINCT 'changeset number ' || changeset FROM changes"
                " WHERE changeset NOT IN (SELECT number FROM changesets)"
            ),
            "is sealed, and is gone or of another plan": (
                "SELECT m.changeset FROM merges m LEFT JOIN changesets c ON c.id = m.changeset"
                " WHERE c.plan IS NOT m.plan"
            ),
            "is of a plan without a tree": (
                "SELECT changeset FROM merges WHERE plan NOT IN (SELECT plan FROM plan_trees)"
                " UNION SELECT id FROM applies WHERE plan NOT IN (SELECT plan FROM plan_trees)"
            ),
            "waits for a choice, but its changeset is not in conflict": (
                "SELECT k.id FROM conflicts k LEFT JOIN merges m ON m.changeset = k.changeset"
                " WHERE k.state = 'open' AND m.state IS NOT 'conflicted'"
            ),
            "takes back an apply that is gone": (
                "SELECT id FROM applies WHERE of_apply NOT IN (SELECT id FROM applies)"
            ),
        }
        for says, query in strange.items():
            for (one,) in self._connection.execute(query):
                self._add(one, says)

    # -- what became of it -----------------------------------------------------------------

    def _check_order(self, plan: str, tree: tuple[str, str], merges: tuple[MergeRow, ...]) -> None:
        """Check that merges are counted without gaps, and that the last made the plan's tree."""
        for row in merges:
            known = row.state in _STATES and (row.state == "merged") == (row.merged is not None)
            says = f"is in the state {row.state!r} with the place {row.merged} in the plan's tree"
            self._add(row.changeset_id, says, unless=known)
        base, head = tree
        places = {row.merged: row.head for row in merges if row.merged is not None}
        in_order = sorted(places) == list(range(1, len(places) + 1))
        self._add(plan, f"has a gap in its merges: {sorted(places)}", unless=in_order)
        last = places[max(places)] if places else base
        self._add(plan, f"has the tree {head}, its merges lead to {last}", unless=head == last)

    def _check_applies(self, merges: tuple[MergeRow, ...], applies: tuple[Applied, ...]) -> None:
        merged = {row.changeset_id for row in merges if row.state == "merged"}
        for one in applies:
            for changeset in sorted(one.level.changesets - merged):
                self._add(one.id, f"holds {changeset}, which is not merged")

    def _check_versions(
        self,
        plan: str,
        tree: tuple[str, str],
        merges: tuple[MergeRow, ...],
        applies: tuple[Applied, ...],
    ) -> None:
        """Check that every version is there with all its files, and that merges are in the head."""
        if self._repository is None:
            self._add(plan, "has a tree, and the folder of its versions is gone")
            return
        wanted = [(version, plan) for version in tree]
        for row in merges:
            versions = (row.start, row.theirs, row.head or row.start)
            wanted += [(version, row.changeset_id) for version in versions]
        for one in applies:
            wanted += [(version, one.id) for version in (one.before, one.after, one.level.commit)]
        conflicts = conflict_rows(self._connection, plan_id=plan)
        sides = [(side, one.id) for one in conflicts for side in (one.base, one.ours, one.theirs)]
        blobs = [(side.content_id, about) for side, about in sides if side.content_id is not None]
        try:
            if not self._missing(self._repository, [*wanted, *blobs]):
                self._check_whole(self._repository, tree[1], wanted, merges)
        except SandboxError as error:
            self._add(plan, f"has versions that cannot be read: {error.facts['git']}")

    def _missing(self, repository: GitRepository, wanted: list[tuple[str, str]]) -> bool:
        asked = "".join(f"{one}\n" for one, _ in wanted).encode()
        said = repository.git("cat-file", "--batch-check=%(objecttype)", stdin=asked)
        answers = said.decode("utf-8", "replace").splitlines()
        gone = [
            about
            for about, answer in zip(wanted, answers, strict=True)
            if answer.endswith(" missing")
        ]
        for version, about in dict.fromkeys(gone):
            self._add(about, f"has the version {version}, which is missing")
        return bool(gone)

    def _check_whole(
        self,
        repository: GitRepository,
        head: str,
        wanted: list[tuple[str, str]],
        merges: tuple[MergeRow, ...],
    ) -> None:
        asked = "".join(f"{version}\n" for version in dict(wanted)).encode()
        # As git itself looks whether all that versions need is there: it refuses if not.
        repository.git("rev-list", "--objects", "--quiet", "--stdin", stdin=asked)
        part = set(repository.git("rev-list", head).decode().split())
        for row in merges:
            inside = row.state != "merged" or {row.theirs, row.head} <= part
            self._add(row.changeset_id, f"is merged, and no part of {head}", unless=inside)


def _fates(merges: tuple[MergeRow, ...], applies: tuple[Applied, ...]) -> dict[str, str]:
    """Return what became of each sealed changeset; of merged ones, which are applied whole."""
    applied = applies[-1].level.changesets if applies else frozenset()
    words = {"sealed": "pending", "merged": "unapplied"}
    fates = {
        row.changeset_id: words.get(row.state, row.state) for row in merges if row.state in _STATES
    }
    there = [one for one, fate in fates.items() if fate == "unapplied" and one in applied]
    return fates | dict.fromkeys(there, "applied")


def _text(path: bytes | None) -> str | None:
    return None if path is None else path.decode("utf-8", "surrogateescape")
