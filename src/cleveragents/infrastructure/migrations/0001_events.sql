-- Every fact, in order, each hashed over its predecessor; `chain` says where the last one is.

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    plan TEXT,
    actor TEXT,
    body TEXT NOT NULL,
    hash BLOB NOT NULL
);
CREATE INDEX events_by_plan ON events (plan, seq);
CREATE INDEX events_by_kind ON events (kind, seq);
CREATE TABLE chain (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL
);
INSERT INTO chain VALUES (1, 0, zeroblob(32));
