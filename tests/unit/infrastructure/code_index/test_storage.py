from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from cleveragents.infrastructure.code_index import storage as storage_module
from cleveragents.infrastructure.code_index.features import features_of, key_of, unpacked_card
from cleveragents.infrastructure.code_index.freshness import Mark
from cleveragents.infrastructure.code_index.storage import DAYS_KEPT, Row, Storage

TEXT = "def alpha():\n    return beta"
KEY = key_of("a.py", TEXT.encode())
ROW = Row(Mark(1, 2, 3, 4), KEY, settled=True)


@pytest.fixture
def storage(tmp_path):
    storage = Storage(tmp_path / "cache")
    storage.keep("/r", {KEY: features_of("a.py", TEXT).packed()}, {"a.py": ROW}, (), day=100)
    storage.keep_commits({b"id": b"body"}, day=100)
    return storage


def change(storage, sql):
    with closing(sqlite3.connect(storage.path)) as connection, connection:
        connection.execute(sql)


def test_what_is_kept_comes_back(storage):
    assert storage.rows("/r", day=100) == {"a.py": ROW}
    assert storage.rows("/other", day=100) == {}
    (content,) = storage.contents([KEY, b"none"]).values()
    assert unpacked_card(content.card) == features_of("a.py", TEXT).card
    assert storage.commits([b"id", b"none"]) == {b"id": b"body"}
    assert storage.trouble is None


def test_many_contents_are_asked_for_in_portions(storage, monkeypatch):
    monkeypatch.setattr(storage_module, "_VALUES_MAX", 1)
    assert list(storage.contents([b"none", KEY])) == [KEY]


def test_files_that_are_gone_are_forgotten(storage):
    storage.keep("/r", {}, {}, ["a.py"], day=100)
    assert storage.rows("/r", day=100) == {}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE contents SET terms = x'00000000' || substr(terms, 5)",
        "UPDATE contents SET card = substr(card, 1, 20)",
        "UPDATE files SET key = x'00'",
        "UPDATE files SET size = 9",
        "UPDATE commits SET body = x'0000000000'",
    ],
)
def test_damage_that_sqlite_does_not_see_is_found(storage, sql):
    change(storage, sql)
    found = (
        len(storage.contents([KEY])),
        len(storage.rows("/r", day=100)),
        len(storage.commits([b"id"])),
    )
    assert sum(found) == 2


@pytest.mark.parametrize("damage", ["header", "middle", "no-database"])
def test_damaged_file_is_replaced(storage, damage):
    whole = bytearray(storage.path.read_bytes())
    if damage == "header":
        whole[:64] = b"\xff" * 64
    elif damage == "middle":
        whole[4096:] = b"\xff" * (len(whole) - 4096)
    else:
        whole[:] = b"nonsense" * 1000
    storage.path.write_bytes(whole)
    assert storage.contents([KEY]) == {}
    assert "is not kept in" in storage.trouble
    storage.keep("/r", {KEY: features_of("a.py", TEXT).packed()}, {"a.py": ROW}, (), day=100)
    assert storage.trouble is None
    assert storage.rows("/r", day=100) == {"a.py": ROW}


def test_what_cannot_be_written_is_told_until_it_can(storage):
    full = sqlite3.connect

    class Full(sqlite3.Connection):
        def executemany(self, *_):
            raise sqlite3.OperationalError("database or disk is full")

    def connect(path, **options):
        return full(path, factory=Full, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        storage.keep("/r", {}, {"b.py": ROW}, (), day=100)
    assert storage.trouble.endswith("database or disk is full")
    assert storage.rows("/r", day=100) == {"a.py": ROW}
    assert storage.trouble is not None
    storage.keep("/r", {}, {"b.py": ROW}, (), day=100)
    assert storage.trouble is None


def test_what_nobody_used_for_long_is_dropped(storage):
    storage.keep(
        "/old",
        {b"old": features_of("a.py", "").packed()},
        {"o.py": ROW._replace(key=b"old")},
        (),
        day=100,
    )
    assert storage.rows("/r", day=100 + DAYS_KEPT) == {"a.py": ROW}  # uses what /r holds
    assert storage.rows("/r", day=101 + DAYS_KEPT) == {"a.py": ROW}
    assert list(storage.contents([KEY, b"old"])) == [KEY]
    assert storage.rows("/old", day=101 + DAYS_KEPT) == {}
    assert storage.commits([b"id"]) == {}


def test_held_file_keeps_its_log_until_it_is_let_go(tmp_path):
    storage = Storage(tmp_path / "cache")
    log = storage.path.with_name(f"{storage.path.name}-wal")
    with storage.held():
        storage.keep_commits({b"c": b"body"}, day=1)
        assert log.exists()
        assert storage.commits([b"c"]) == {b"c": b"body"}
    assert not log.exists()
    assert storage.commits([b"c"]) == {b"c": b"body"}


def test_file_that_cannot_be_held_stops_nothing(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    with Storage(tmp_path / "cache").held():
        pass
