-- Conversations with models: every answer that was paid for, kept before it is used.

CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    plan TEXT NOT NULL,
    node TEXT NOT NULL,  -- the node's name, or that of one instance of a fan-out
    digest TEXT NOT NULL,  -- what it is about
    state TEXT NOT NULL,  -- open, given up
    began REAL NOT NULL
);
CREATE UNIQUE INDEX open_conversations ON conversations (plan, node) WHERE state = 'open';

CREATE TABLE turns (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    number INTEGER NOT NULL,  -- from 1, without gaps
    attempt INTEGER NOT NULL,
    model TEXT NOT NULL,
    request TEXT NOT NULL,  -- JSON: what was new in the question
    response TEXT NOT NULL,  -- JSON
    usage TEXT NOT NULL,  -- JSON: the counts that are not 0
    cost INTEGER NOT NULL,  -- pico-dollars
    reservation TEXT,
    dropped INTEGER NOT NULL,  -- results of tools that the question left out
    at REAL NOT NULL,
    PRIMARY KEY (conversation, number)
) WITHOUT ROWID;
