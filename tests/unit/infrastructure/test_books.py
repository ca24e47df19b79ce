from __future__ import annotations

import copy
import shutil

import pytest

from cleveragents.application.services.error_recovery_service import ErrorRecoveryService
from cleveragents.domain.budget import Scopes
from cleveragents.domain.changeset import ChangeEntry
from cleveragents.infrastructure.books import check_books
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.sqlite_errors import SqliteErrorJournal
from unit.infrastructure.changes.worlds import PLAN, copied, file, text, world


class Busy:
    """A store in which everything happened: each kind of changeset, an apply, errors, bills."""

    def __init__(self, here) -> None:
        self._look_at(here)
        base = here.begin()
        self.ann = self.attempt({"app.txt": text(l3="ann")}, "ann", base)
        here.changes.trees.merge(self.ann)
        self.applied = here.applies.apply(PLAN)
        self.bob = self.attempt({"bob.txt": b"bob\n", "two.txt": b"2\n"}, "bob", base)
        here.changes.trees.merge(self.bob)
        self.eve = self.attempt({"app.txt": text(l3="eve")}, "eve", base)
        here.changes.trees.merge(self.eve)
        self.zoe = self.attempt({"zoe.txt": b"zoe\n"}, "zoe", base)
        here.changes.trees.reject(self.zoe)
        self.max = self.attempt({"max.txt": b"max\n"}, "max", base)
        self.open = here.changes.changesets.start(PLAN, actor="kim")
        here.changes.changesets.record(self.open, ChangeEntry.create("kim.txt", b"kim\n"))
        with DurableCostTracker(self.store) as tracker:
            tracker.reserve("0.5", Scopes(plan=PLAN)).settle("0.02")
        service = ErrorRecoveryService(journal=SqliteErrorJournal(self.store))
        service.handle(PLAN, ValueError("first"))
        service.handle(PLAN, ValueError("second"))

    def _look_at(self, here) -> None:
        self.here = here
        self.store = here.store
        self.repository = here.changes.repository

    def copied_to(self, here) -> Busy:
        """The same in a copy of the tree."""
        other = copy.copy(self)
        other._look_at(here)
        return other

    def attempt(self, files: dict[str, bytes], actor: str, start: str) -> str:
        """Record and seal what an actor did."""
        changesets = self.here.changes.changesets
        changeset = changesets.start(PLAN, actor=actor, node=actor, attempt=1)
        entries = [
            ChangeEntry.modify(path, text(), data)
            if path == "app.txt"
            else ChangeEntry.create(path, data)
            for path, data in files.items()
        ]
        changesets.record(changeset, *entries)
        changesets.finish(changeset)
        writes = {path: file(data) for path, data in files.items()}
        theirs = self.repository.commit(start, writes)
        self.here.changes.trees.seal(PLAN, changeset, start, theirs)
        return changeset

    def damage(self, sql: str) -> None:
        values = {name: getattr(self, name) for name in ("ann", "bob", "eve", "zoe", "max", "open")}
        self.store.write(lambda tx: tx.execute(sql.format(**values, apply=self.applied.id)))

    def books(self, repository=None):
        with self.store.read() as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            try:
                books = check_books(connection, repository or self.repository)
            finally:
                connection.text_factory = str
        return {book.name: book for book in books}

    def wrong(self, name: str) -> list[str]:
        return [f"{one.about} {one.says}" for one in self.books()[name].wrong]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    with world(tmp_path_factory.mktemp("busy") / "tree") as here:
        return Busy(here)


@pytest.fixture
def busy(template, tmp_path):
    with copied(template.here.root, tmp_path / "tree") as here:
        yield template.copied_to(here)


class TestHonestStore:
    def test_every_book_holds_and_every_change_has_one_fate(self, busy):
        books = busy.books()
        assert [book.wrong for book in books.values()] == [()] * 4
        assert books["money"].counts == {"entries": 2}
        assert books["errors"].counts == {"errors": 2, "decisions": 2}
        assert books["changes"].counts == {
            "changesets": 6,
            "changes": 7,
            "applied": 1,
            "unapplied": 2,
            "conflicted": 1,
            "rejected": 1,
            "pending": 1,
            "open": 1,
        }
        fates = list(books["changes"].counts.values())
        assert sum(fates[2:]) == fates[1]

    def test_books_hold_through_every_further_step(self, busy):
        trees, applies = busy.here.changes.trees, busy.here.applies
        (conflict,) = trees.conflicts(PLAN)
        trees.resolve(conflict.id, "theirs")
        trees.merge(busy.max)
        applies.revert(applies.apply(PLAN).id)
        busy.here.changes.changesets.finish(busy.open)
        books = busy.books()
        assert [book.wrong for book in books.values()] == [()] * 4
        # What was taken back is unapplied again; what is finished waits for its seal.
        counts = books["changes"].counts
        told = {name: counts[name] for name in ("applied", "unapplied", "pending", "open")}
        assert told == {"applied": 1, "unapplied": 4, "pending": 1, "open": 0}

    def test_empty_store_holds(self, tmp_path):
        with world(tmp_path / "tree") as here, here.store.read() as connection:
            assert [book.wrong for book in check_books(connection, None)] == [()] * 4

    def test_event_of_the_plans_own_state_is_no_apply(self, busy):
        busy.store.write(lambda tx: tx.event("plan.applied", {}, at=0.0, plan=PLAN))
        assert busy.wrong("changes") == []


class TestDamage:
    @pytest.mark.parametrize(
        ("sql", "book", "said"),
        [
            (
                "UPDATE accounts SET spent = 7 WHERE key = 'plan:p-1'",
                "money",
                "`plan:p-1` keeps [7, 0]",
            ),
            (
                "DELETE FROM events WHERE json_extract(body, '$.record_seq') = 2",
                "errors",
                "error 2 of p-1 has no decision",
            ),
            (
                "DELETE FROM events WHERE json_extract(body, '$.exception_type') IS NOT NULL",
                "errors",
                "error 1 of p-1 is decided and gone",
            ),
            ("UPDATE error_plans SET records = 3", "errors", "p-1 keeps the counts (3, 2,"),
            ("DELETE FROM error_plans", "errors", "p-1 keeps the counts (0, 0, {{}})"),
            ("UPDATE events SET actor = 'x' WHERE seq = 4", "trail", "event 4 event 4 or its"),
            (
                "DELETE FROM changesets WHERE id = '{open}'",
                "changes",
                "{open} was started by the trail, and the store does not know it",
            ),
            (
                "INSERT INTO changesets (id, plan) VALUES ('c-forged', 'p-1')",
                "changes",
                "c-forged is started in the store, and the trail does not know it",
            ),
            (
                "DELETE FROM changesets WHERE id = '{open}'",
                "changes",
                "changeset number 6 has changes, and is gone",
            ),
            (
                "DELETE FROM changesets WHERE id = '{ann}'",
                "changes",
                "{ann} is sealed, and is gone or of another plan",
            ),
            (
                "UPDATE changesets SET plan = 'p-2' WHERE id = '{max}'",
                "changes",
                "{max} is sealed, and is gone or of another plan",
            ),
            (
                "DELETE FROM changes WHERE path = CAST('bob.txt' AS BLOB)",
                "changes",
                "{bob} holds other changes than those recorded",
            ),
            (
                "UPDATE changesets SET entries = 9 WHERE id = '{bob}'",
                "changes",
                "{bob} counts 9 changes, 2 were recorded",
            ),
            (
                "UPDATE contents SET data = x'00' WHERE CAST(data AS TEXT) LIKE 'bob%'",
                "changes",
                "is not what was recorded",
            ),
            (
                "DELETE FROM contents WHERE CAST(data AS TEXT) LIKE 'bob%'",
                "changes",
                "{bob} has a change, number 1, whose content is missing",
            ),
            (
                "DELETE FROM merges WHERE changeset = '{ann}'",
                "changes",
                "p-1 has a gap in its merges: [2]",
            ),
            (
                "DELETE FROM merges WHERE changeset = '{bob}'",
                "changes",
                "its merges lead to ",
            ),
            (
                "UPDATE merges SET state = 'lost' WHERE changeset = '{max}'",
                "changes",
                "{max} is in the state 'lost' with the place None in the plan's tree",
            ),
            (
                "UPDATE merges SET state = 'rejected' WHERE changeset = '{max}'",
                "changes",
                "{max} is rejected in the store, and the trail does not know it",
            ),
            (
                "UPDATE merges SET theirs = (SELECT theirs FROM merges WHERE changeset = '{max}')",
                "changes",
                "{ann} is merged, and no part of ",
            ),
            (
                "UPDATE merges SET state = 'sealed' WHERE changeset = '{eve}'",
                "changes",
                "waits for a choice, but its changeset is not in conflict",
            ),
            (
                "DELETE FROM conflicts",
                "changes",
                "was found by the trail, and the store does not know it",
            ),
            (
                "UPDATE plan_trees SET head = base",
                "changes",
                "p-1 has the tree ",
            ),
            (
                "DELETE FROM plan_trees",
                "changes",
                "{apply} is of a plan without a tree",
            ),
            (
                "DELETE FROM applies",
                "changes",
                "{apply} was applied by the trail, and the store does not know it",
            ),
            (
                "UPDATE applies SET of_apply = 'a-gone'",
                "changes",
                "{apply} takes back an apply that is gone",
            ),
            (
                "UPDATE applies SET body = json_set(body, '$.changesets', json('[\"{max}\"]'))",
                "changes",
                "{apply} holds {max}, which is not merged",
            ),
            (
                "UPDATE applies SET before = '1234567890123456789012345678901234567890'",
                "changes",
                "{apply} has the version 1234567890123456789012345678901234567890, which is",
            ),
            (
                "UPDATE applies SET body = '{{'",
                "changes",
                "changes holds a record that cannot be read: JSONDecodeError",
            ),
            (
                "UPDATE events SET body = '[]' WHERE kind = 'error.decided'",
                "errors",
                "errors holds a record that cannot be read: TypeError",
            ),
            (
                "UPDATE events SET body = '[]' WHERE kind = 'changeset.sealed'",
                "changes",
                "changes holds a record that cannot be read: AttributeError",
            ),
        ],
        ids=lambda value: value if len(value) < 9 else value.split(" WHERE")[0].lower()[:40],
    )
    def test_damage_is_found_and_named(self, busy, sql, book, said):
        busy.damage(sql)
        names = {name: getattr(busy, name) for name in ("ann", "bob", "max", "open")}
        expected = said.format(**names, apply=busy.applied.id)
        found = busy.wrong(book)
        assert any(expected in one for one in found), found

    def test_object_that_left_the_repository_is_found(self, busy):
        tree = busy.here.changes.trees.tree_of(PLAN)
        blob = busy.repository.files(tree.head, ["bob.txt"])["bob.txt"].oid
        remove(busy.repository, blob)
        assert any(f"missing blob object '{blob}'" in one for one in busy.wrong("changes"))

    def test_version_of_a_conflict_that_left_the_repository_is_found(self, busy):
        (conflict,) = busy.here.changes.trees.conflicts(PLAN)
        remove(busy.repository, conflict.theirs.content_id)
        found = busy.wrong("changes")
        assert f"{conflict.id} has the version {conflict.theirs.content_id}, which is missing" in (
            found
        )

    def test_repository_that_git_does_not_know_any_more_is_found(self, busy):
        (busy.repository.folder / "HEAD").unlink()
        (found,) = busy.wrong("changes")
        assert found.startswith("p-1 has versions that cannot be read: fatal: not a git repository")

    def test_repository_that_is_gone_is_damage_of_every_plan(self, busy):
        with busy.store.read() as connection:
            books = check_books(connection, None)
        assert [one.says for one in books[2].wrong] == [
            "has a tree, and the folder of its versions is gone"
        ]

    def test_text_that_is_no_text_any_more_is_found_not_raised(self, busy):
        busy.damage("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE kind = 'changeset.sealed'")
        assert busy.wrong("changes")[0].startswith("changes holds a record that cannot be read")
        assert busy.wrong("trail") != []


def remove(repository, oid: str) -> None:
    """Take one object away, also out of packs."""
    packs = repository.folder / "objects" / "pack"
    for pack in list(packs.glob("*.pack")):
        aside = repository.folder / pack.name
        shutil.move(pack, aside)
        pack.with_suffix(".idx").unlink()
        repository.git("unpack-objects", "-q", stdin=aside.read_bytes())
    (repository.folder / "objects" / oid[:2] / oid[2:]).unlink()
