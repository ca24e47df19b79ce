from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from cleveragents.domain.errors import StoreError
from cleveragents.infrastructure.code_index import upkeep
from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.infrastructure.code_index.upkeep import clear, kept
from indexkit import LATER, PATIENT, view_of, write


@pytest.fixture
def folder(tmp_path):
    """The folder of an index that holds two files."""
    write(tmp_path / "tree", {"a.py": "a = 1\n", "b.py": "b = 2\n"})
    with StoredCodeIndex(tmp_path / "index", limits=PATIENT, clocks=LATER) as index:
        view_of(index, tmp_path / "tree")
    return tmp_path / "index"


def test_index_is_told_with_its_place_and_size(folder):
    found = kept(folder)
    assert (found.trees, found.files, found.trouble) == (1, 2, None)
    assert found.path.parent == folder
    assert found.size_bytes > 0


def test_where_there_is_no_index_nothing_is_made(tmp_path):
    assert (kept(tmp_path / "x").size_bytes, clear(tmp_path / "x").files) == (0, 0)
    assert not (tmp_path / "x").exists()


def test_without_a_folder_the_cache_folder_of_the_user_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept(None).path.parent == tmp_path / "cleveragents"


def test_cleared_index_is_empty_and_works_again(folder, tmp_path):
    assert clear(folder).files == 2
    assert kept(folder).files == 0
    with StoredCodeIndex(folder, limits=PATIENT, clocks=LATER) as index:
        assert view_of(index, tmp_path / "tree").missing == 0
    assert kept(folder).files == 2


def test_damaged_index_is_told_and_cleared(folder):
    path = kept(folder).path
    path.write_bytes(b"no database" * 1000)
    assert kept(folder).trouble == "file is not a database"
    clear(folder)
    assert not path.exists()


def test_index_that_another_process_writes_is_not_deleted_under_it(folder, monkeypatch):
    monkeypatch.setattr(upkeep, "_BUSY_S", 0.01)
    with closing(sqlite3.connect(kept(folder).path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked") as caught:
            clear(folder)
    assert caught.value.code == "CA6006"
    assert kept(folder).files == 2


def test_damaged_index_that_cannot_be_deleted_is_told(folder, monkeypatch):
    path = kept(folder).path
    path.write_bytes(b"no database" * 1000)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(StoreError, match="not yours"):
        clear(folder)
