"""A plan whose attempts are told by what they write."""

from __future__ import annotations

from cleveragents.domain.changeset import ChangeEntry
from cleveragents.infrastructure.git.repository import Write

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000


def text(*changes, lines=12):
    """Return numbered lines, some of them replaced."""
    told = {n: f"line {n}" for n in range(1, lines + 1)} | dict(changes)
    return "".join(f"{line}\n" for line in told.values()).encode()


class Plan:
    """One plan, its tree, and sealed changesets without sandboxes."""

    def __init__(self, trees, changesets, repository, plan_id="p"):
        self.trees = trees
        self.changesets = changesets
        self.repository = repository
        self.id = plan_id

    def sealed(self, files, *, actor=None, start=None):
        """Seal what an actor wrote over the plan's tree, or over an older state of it."""
        start = start or self.trees.begin(self.id).head
        changeset_id = self.changesets.start(self.id, actor=actor, node=actor and f"n-{actor}")
        writes = {
            path: one if one is None or isinstance(one, Write) else Write(FILE, one)
            for path, one in files.items()
        }
        for path, write in writes.items():
            if write is not None:
                self.changesets.record(changeset_id, ChangeEntry.create(path, write.data))
        self.changesets.finish(changeset_id)
        self.trees.seal(self.id, changeset_id, start, self.repository.commit(start, writes))
        return changeset_id

    def merged(self, files, **options):
        return self.trees.merge(self.sealed(files, **options))

    @property
    def files(self):
        """What the plan's tree holds now."""
        found = self.repository.files(self.trees.tree_of(self.id).head)
        contents = self.repository.read([blob.oid for blob in found.values()])
        return dict(zip(found, contents, strict=True))


def events(store, *kinds):
    """Return what the audit trail holds of these kinds."""
    with store.read() as connection:
        rows = connection.execute("SELECT kind FROM events ORDER BY seq")
        return [kind for (kind,) in rows if kind in kinds]
