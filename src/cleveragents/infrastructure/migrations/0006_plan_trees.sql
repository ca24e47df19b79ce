-- The versions of a plan's tree are commits in our own git repository; here stands which is which.

CREATE TABLE plan_trees (
    plan TEXT PRIMARY KEY,
    base TEXT NOT NULL,  -- the user's tree when the plan began
    head TEXT NOT NULL  -- the same with everything that was merged
) WITHOUT ROWID;
CREATE TABLE merges (
    number INTEGER PRIMARY KEY,
    changeset TEXT NOT NULL UNIQUE REFERENCES changesets (id),
    plan TEXT NOT NULL REFERENCES plan_trees (plan),
    start TEXT NOT NULL,  -- what the attempt started from
    theirs TEXT NOT NULL,  -- the same with what the attempt did
    state TEXT NOT NULL,  -- sealed, merged, conflicted, rejected
    merged INTEGER,  -- in which order, from 1
    head TEXT  -- the plan's tree after it, or, in a conflict, that it could not be merged into
);
CREATE INDEX merges_by_plan ON merges (plan, number);
CREATE TABLE conflicts (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    changeset TEXT NOT NULL REFERENCES merges (changeset),
    path BLOB NOT NULL,  -- the bytes of the name, which need not be UTF-8
    body TEXT NOT NULL,  -- JSON: what happened, both sides and the base
    state TEXT NOT NULL,  -- open, resolved, gone
    choice TEXT  -- ours, theirs, or the blob that a person wrote
);
CREATE INDEX conflicts_by_plan ON conflicts (plan, number);
CREATE TABLE applies (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    kind TEXT NOT NULL,  -- apply, revert
    of_apply TEXT REFERENCES applies (id),  -- what a revert takes back
    before TEXT NOT NULL,  -- commits: the files that were replaced, and what replaced them
    after TEXT NOT NULL,
    level TEXT NOT NULL,  -- how much of the plan is in the user's tree since, as a version of it
    body TEXT NOT NULL,  -- JSON: which changesets and paths were asked for
    at REAL NOT NULL
);
CREATE INDEX applies_by_plan ON applies (plan, number);
