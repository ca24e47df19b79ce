-- Changesets, their entries in order, and every content once.
-- Nothing is ever deleted, so `number` is also the order in which changesets were started.

CREATE TABLE contents (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE changesets (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    actor TEXT,
    node TEXT,
    attempt INTEGER,
    entries INTEGER NOT NULL DEFAULT 0,
    digest BLOB NOT NULL DEFAULT (zeroblob(32)),  -- over all entries: equal digests, equal entries
    finished INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX changesets_by_plan ON changesets (plan, number);
CREATE TABLE changes (
    changeset INTEGER NOT NULL REFERENCES changesets (number),
    number INTEGER NOT NULL,  -- from 1, without gaps
    kind TEXT NOT NULL,
    path BLOB NOT NULL,  -- the bytes of the name, which need not be UTF-8
    old_path BLOB,
    before TEXT REFERENCES contents (sha256),
    after TEXT REFERENCES contents (sha256),
    mode_before INTEGER,
    mode_after INTEGER,
    actor TEXT,
    node TEXT,
    attempt INTEGER,
    tool_call TEXT,
    at REAL NOT NULL,
    PRIMARY KEY (changeset, number)
) WITHOUT ROWID;
