-- Plans, the latest truth about each of their nodes, and who runs them.
-- How it came to that stands in the events `plan.*` and `node.*`.

CREATE TABLE plans (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,  -- JSON: the plan itself
    digest TEXT NOT NULL,  -- SHA-256 of the source
    session TEXT,
    state TEXT NOT NULL,
    error TEXT,  -- JSON: why it ended as it did
    created REAL NOT NULL
);
CREATE TABLE plan_nodes (
    plan TEXT NOT NULL REFERENCES plans (id),
    id TEXT NOT NULL,  -- the node's name, or that of one instance of a fan-out
    node TEXT NOT NULL,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL,  -- the number of the latest one, over all runs
    actor TEXT,
    output TEXT NOT NULL,  -- JSON
    changeset TEXT,
    feedback TEXT NOT NULL,  -- JSON
    error TEXT,  -- JSON
    PRIMARY KEY (plan, id)
) WITHOUT ROWID;

-- An `AsyncJob` for each plan that was ever run: whoever holds the highest fence may write.
CREATE TABLE plan_jobs (
    plan TEXT PRIMARY KEY REFERENCES plans (id),
    owner TEXT NOT NULL,  -- '' is nobody
    fence INTEGER NOT NULL,  -- rises with every change of the owner
    since REAL NOT NULL,
    alive_until REAL NOT NULL,
    wish TEXT,  -- paused, cancelled: what others want of the run
    hard INTEGER NOT NULL DEFAULT 0  -- the wish is for running attempts too
) WITHOUT ROWID;
