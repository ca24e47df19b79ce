-- Records and decisions are the bodies of their events; these indexes find the last of a plan.
-- The tables hold what is never forgotten about them, so that nobody has to read them all.

CREATE INDEX error_records ON events (plan, seq) WHERE kind = 'error.recorded';
CREATE INDEX error_decisions ON events (plan, seq) WHERE kind = 'error.decided';
CREATE TABLE error_plans (
    plan TEXT PRIMARY KEY,
    records INTEGER NOT NULL,
    decisions INTEGER NOT NULL,
    replans INTEGER NOT NULL,
    by_category TEXT NOT NULL  -- JSON: how many records of each category
) WITHOUT ROWID;
CREATE TABLE error_faults (
    plan TEXT NOT NULL,
    node TEXT NOT NULL,  -- JSON, because no node is `null`, and NULL is no key
    fingerprint TEXT NOT NULL,
    times INTEGER NOT NULL,
    rung INTEGER NOT NULL,
    PRIMARY KEY (plan, node, fingerprint)
) WITHOUT ROWID;
CREATE TABLE error_tries (
    plan TEXT NOT NULL,
    node TEXT NOT NULL,  -- JSON, as above
    category TEXT NOT NULL,
    counts TEXT NOT NULL,  -- JSON: how often each action was tried
    waited_s REAL NOT NULL,
    PRIMARY KEY (plan, node, category)
) WITHOUT ROWID;
CREATE TABLE retry_tokens (
    bucket TEXT PRIMARY KEY,
    missing INTEGER NOT NULL CHECK (missing > 0)  -- a full bucket has no row
) WITHOUT ROWID;
