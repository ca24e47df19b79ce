-- Until when somebody waits for idle slices to be given back: near a limit nobody hoards.

CREATE TABLE wanted (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    until REAL NOT NULL
);
INSERT INTO wanted VALUES (1, 0);
