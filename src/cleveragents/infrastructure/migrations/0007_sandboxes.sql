-- Sandboxes, and the processes that hold them: who has no row here, or whose time is over, is dead.

CREATE TABLE sandbox_owners (
    id TEXT PRIMARY KEY,
    alive_until REAL NOT NULL
);
CREATE TABLE sandboxes (
    id TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    node TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL,
    base TEXT NOT NULL,  -- the commit that the plan started from
    head TEXT NOT NULL,  -- the commit that the sandbox started from
    folder TEXT NOT NULL,  -- below the folder of all sandboxes
    owner TEXT NOT NULL,  -- '' is nobody
    fence INTEGER NOT NULL DEFAULT 1,  -- rises with every change of the owner
    state TEXT NOT NULL DEFAULT 'live',
    changeset TEXT
);
CREATE INDEX sandboxes_by_plan ON sandboxes (plan);
CREATE INDEX sandboxes_kept ON sandboxes (owner) WHERE state <> 'released';
