-- Balances are a projection of the `money.*` events: `audit` and `verify` compare the two.
-- Amounts are whole pico-dollars; SQLite turns an integer that overflows into a float, so a check
-- refuses that instead of losing digits.

CREATE TABLE accounts (
    key TEXT PRIMARY KEY,
    spent INTEGER NOT NULL CHECK (typeof(spent) = 'integer'),
    held INTEGER NOT NULL CHECK (typeof(held) = 'integer')
) WITHOUT ROWID;

CREATE TABLE limits (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,  -- '' is each scope of the kind
    hard INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    warn_at TEXT NOT NULL,
    PRIMARY KEY (kind, name, hard)
) WITHOUT ROWID;

-- Each threshold of each scope that was reported, by whichever process.
CREATE TABLE warned (
    key TEXT NOT NULL,
    hard INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    share REAL NOT NULL,
    PRIMARY KEY (key, hard, amount, share)
) WITHOUT ROWID;

-- Who may hold reservations; a process that does not renew its lease is taken for dead.
CREATE TABLE processes (
    id TEXT PRIMARY KEY,
    alive_until REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    state TEXT NOT NULL,
    pico INTEGER NOT NULL,
    billed INTEGER NOT NULL,
    bill TEXT,  -- the named bill that counts for it, where that is not its own
    keys TEXT NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX reservations_waiting ON reservations (state, expires_at)
    WHERE state IN ('open', 'unconfirmed');

-- Every bill that has a name; the same name again can only raise it.
CREATE TABLE bills (
    key TEXT PRIMARY KEY,
    billed INTEGER NOT NULL,
    keys TEXT NOT NULL,
    reservation TEXT
) WITHOUT ROWID;
