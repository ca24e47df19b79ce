from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import SetupError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.code_index.index import StoredCodeIndex
from cleveragents.infrastructure.embeddings import chunk_vectors
from cleveragents.infrastructure.embeddings.chunk_vectors import ChunkVectors
from cleveragents.testing import Gate
from embeddingkit import MEANINGS, save_model

FILES = {
    "gate.py": "def unlock_gate():\n    enter",
    "fruit.py": "def fruit():\n    banana",
    "shut.py": "def close():\n    the",
    "words.py": "nothing known",
}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    save_model(tmp_path / "model")
    return root


@pytest.fixture
def index(tmp_path):
    with StoredCodeIndex(tmp_path / "cache") as index:
        yield index


def seen(index, root):
    return index.build(ContextRequest("task", root), StopSignal())


def vectors(tmp_path, **options):
    return ChunkVectors(tmp_path / "model", tmp_path / "cache", **options)


def near(search, view, text="open door", limit=10):
    return [hit.path for hit in search.chunks_near(view, text, limit, StopSignal())]


def refused(*_):
    raise AssertionError("nothing is left to be computed")


def test_code_of_like_meaning_is_found_without_a_common_word(tmp_path, root, index):
    search, view = vectors(tmp_path), seen(index, root)
    assert near(search, view)[0] == "gate.py"
    assert near(search, view, "bananas are fruit", limit=1) == ["fruit.py"]


def test_what_means_no_more_than_the_middle_of_the_tree_is_not_found(tmp_path, root, index):
    hits = vectors(tmp_path).chunks_near(seen(index, root), "open door", 10, StopSignal())
    assert "shut.py" not in {hit.path for hit in hits}
    assert all(0 < hit.score <= 2 for hit in hits)


def test_text_without_a_known_word_finds_nothing(tmp_path, root, index):
    assert near(vectors(tmp_path), seen(index, root), "unheard of") == []


def test_an_empty_tree_has_nothing_near(tmp_path, root, index):
    for name in FILES:
        (root / name).unlink()
    assert near(vectors(tmp_path), seen(index, root)) == []


def test_scores_are_the_same_whatever_is_computed_together(tmp_path, root, index):
    view = seen(index, root)
    together = vectors(tmp_path).chunks_near(view, "open door", 10, StopSignal())
    alone = ChunkVectors(tmp_path / "model", tmp_path / "other")
    for name, text in FILES.items():  # one by one, and in memory from then on
        (root / "sub").mkdir(exist_ok=True)
        (root / "sub" / name).write_text(text)
        near(alone, seen(index, root / "sub"))
    assert alone.chunks_near(view, "open door", 10, StopSignal()) == together


def test_files_of_one_content_are_all_found_and_embedded_once(tmp_path, root, index, monkeypatch):
    (root / "copy.py").write_text(FILES["gate.py"])
    search = vectors(tmp_path)
    asked = []
    encode = chunk_vectors.StaticModel.vectors
    monkeypatch.setattr(
        chunk_vectors.StaticModel,
        "vectors",
        lambda model, texts: (asked.extend(texts), encode(model, texts))[1],
    )
    assert near(search, seen(index, root))[:2] == ["copy.py", "gate.py"]
    assert asked.count(FILES["gate.py"]) == 1


def test_equal_scores_beyond_the_limit_stand_by_path(tmp_path, root, index):
    for name in ("z", "a"):
        (root / f"{name}.py").write_text(FILES["gate.py"] + f"\n# {name}")
    assert near(vectors(tmp_path), seen(index, root), limit=2) == ["a.py", "gate.py"]


class TestKeeping:
    def test_another_process_computes_nothing_again(self, tmp_path, root, index, monkeypatch):
        view = seen(index, root)
        found = near(vectors(tmp_path), view)
        monkeypatch.setattr(chunk_vectors, "_embedded", refused)
        assert near(vectors(tmp_path), view) == found

    def test_only_what_changed_is_computed(self, tmp_path, root, index, monkeypatch):
        search = vectors(tmp_path)
        near(search, seen(index, root))
        (root / "fruit.py").write_text("def open_door():\n    unlock")
        embedded = []
        whole = chunk_vectors._embedded
        monkeypatch.setattr(
            chunk_vectors, "_embedded", lambda *given: (embedded.append(given[2]), whole(*given))[1]
        )
        assert set(near(search, seen(index, root))) == {"gate.py", "fruit.py"}
        assert embedded == [["fruit.py"]]

    def test_another_model_has_its_own_vectors(self, tmp_path, root, index):
        view = seen(index, root)
        assert near(vectors(tmp_path), view)[0] == "gate.py"
        swapped = {"banana": "unlock", "unlock": "banana", "fruit": "gate", "gate": "fruit"}
        meanings = {word: MEANINGS[swapped.get(word, word)] for word in MEANINGS}
        save_model(tmp_path / "model", meanings=meanings)
        assert near(vectors(tmp_path), view)[0] == "fruit.py"

    @pytest.mark.parametrize("sql", ["UPDATE vectors SET body = x'0001'", "DROP TABLE vectors"])
    def test_damaged_vectors_are_computed_again(self, tmp_path, root, index, sql):
        view = seen(index, root)
        found = near(vectors(tmp_path), view)
        (path,) = (tmp_path / "cache").glob("*.sqlite3")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(sql)
        assert near(vectors(tmp_path), view) == found

    def test_vectors_that_are_used_stay_and_others_go(self, tmp_path):
        storage = vectors(tmp_path)._storage
        storage.keep_vectors(b"m", {b"a": b"1", b"b": b"2"}, day=100)
        assert storage.vectors(b"m", [b"a", b"c"], day=125) == {b"a": b"1"}
        storage.keep("/r", {}, {}, (), day=100)
        storage.rows("/r", day=140)
        assert storage.vectors(b"m", [b"a", b"b"], day=140) == {b"a": b"1"}
        assert storage.vectors(b"n", [b"a"], day=140) == {}

    def test_without_a_usable_folder_everything_works_in_memory(self, tmp_path, root, index):
        (tmp_path / "file").write_text("")
        search = ChunkVectors(tmp_path / "model", tmp_path / "file")
        assert near(search, seen(index, root))[0] == "gate.py"

    def test_memory_holds_what_is_looked_at(self, tmp_path, root, index, monkeypatch):
        monkeypatch.setattr(chunk_vectors, "_CONTENTS_MAX", len(FILES))
        search = vectors(tmp_path)
        near(search, seen(index, root))
        (root / "gate.py").write_text("gate gate")
        near(search, seen(index, root))
        assert len(search._kept) == len(FILES)


class TestTime:
    def test_what_a_request_has_no_time_for_is_done_in_the_background(
        self, tmp_path, root, index, monkeypatch
    ):
        monkeypatch.setattr(chunk_vectors, "_PORTION", 1)
        search, view = vectors(tmp_path, request_s=0.0), seen(index, root)
        near(search, view)
        thread = search._thread
        if thread is not None:
            thread.join(10)
        monkeypatch.setattr(chunk_vectors, "_embedded", refused)
        assert search.embed(view, StopSignal(), 0) == 0
        assert search._thread is None

    def test_one_thread_works_for_all(self, tmp_path, root, index):
        search, view = vectors(tmp_path), seen(index, root)
        assert search._enlist(view, "thread")
        assert not search._enlist(view, "other")
        assert [search._next(), search._next(), search._next()] == [view, view, None]
        assert search._thread is None

    def test_what_breaks_in_the_background_is_left_to_the_next_request(self, tmp_path, root, index):
        search, view = vectors(tmp_path), seen(index, root)
        search._folder = tmp_path / "none"
        search._enlist(view, None)
        search._finish()
        assert search._unfinished == ()

    def test_close_stops_the_background_and_starts_no_other(
        self, tmp_path, root, index, monkeypatch
    ):
        gate = Gate()
        whole = chunk_vectors._embedded

        def waiting(*given):
            gate.pass_through()
            return whole(*given)

        search, view = vectors(tmp_path), seen(index, root)
        monkeypatch.setattr(chunk_vectors, "_embedded", waiting)
        search._finish_later(view)
        thread = search._thread
        gate.wait_for(1)
        search._stop.when_stopped(lambda _: gate.open())
        search.close()
        assert not thread.is_alive()
        search._finish_later(view)
        assert search._thread is None

    def test_a_stopped_request_ends(self, tmp_path, root, index):
        stop = StopSignal()
        stop.stop("enough")
        with pytest.raises(Stopped):
            vectors(tmp_path).chunks_near(seen(index, root), "open", 10, stop)


class Torn:
    """A view whose tree changed after it was made."""

    def __init__(self, view, **without):
        self._view = view
        self._without = without

    def __getattr__(self, name):
        whole, without = getattr(self._view, name), self._without.get(name, ())
        return whole if name == "paths" else lambda path: None if path in without else whole(path)


def test_content_that_is_gone_is_passed_over(tmp_path, root, index):
    view = Torn(seen(index, root), text=["gate.py"])
    assert "gate.py" not in near(vectors(tmp_path), view)


def test_content_that_one_of_its_files_still_holds_is_found(tmp_path, root, index):
    (root / "copy.py").write_text(FILES["gate.py"])
    view = Torn(seen(index, root), text=["copy.py"])
    assert near(vectors(tmp_path), view)[:2] == ["copy.py", "gate.py"]


@pytest.mark.parametrize("what", ["content", "card"])
def test_files_that_are_not_indexed_yet_are_not_found(tmp_path, root, index, what):
    whole = seen(index, root)
    near(vectors(tmp_path), whole)
    assert "gate.py" not in near(vectors(tmp_path), Torn(whole, **{what: ["gate.py"]}))


def test_who_comes_second_uses_the_model_of_the_first(tmp_path, root, index):
    search = vectors(tmp_path)
    near(search, seen(index, root))
    assert search._published("another") is search._opened()


def test_a_folder_without_a_model_is_told_each_time(tmp_path, root, index):
    search = ChunkVectors(tmp_path / "none", tmp_path / "cache")
    for _ in range(2):
        with pytest.raises(SetupError, match="names no model"):
            near(search, seen(index, root))


def test_products_are_exact_whatever_their_order():
    random = np.random.default_rng(1)
    rows = random.integers(-127, 128, (500, 256)).astype(np.int8)
    asked = random.integers(-127, 128, 256).astype(np.int8)
    exact = rows.astype(np.int64) @ asked.astype(np.int64)
    assert (chunk_vectors._scores([rows[:7], rows[7:]], asked) == exact).all()
