"""A global that the first caller builds: two first callers build two, and one table is lost."""

from __future__ import annotations

_table = None


def _build():
    return {"lookups": 0, "words": {"one": 1, "two": 2}}


def get_table():
    global _table
    if _table is None:
        _table = _build()
    return _table


def lookup(word):
    table = get_table()
    table["lookups"] = table["lookups"] + 1
    return table["words"].get(word)


def learn(word, value):
    table = get_table()
    if word in table["words"]:
        return False
    table["words"][word] = value
    return True
