from __future__ import annotations

import math
import random
import sqlite3
import threading
from pathlib import Path

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.errors import RequestError
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.infrastructure.code_index import index as index_module
from cleveragents.infrastructure.code_index import keeper as keeper_module
from cleveragents.infrastructure.code_index.index import IndexLimits, StoredCodeIndex
from cleveragents.infrastructure.code_index.keeper import Keeper
from cleveragents.infrastructure.code_index.segment import SEGMENTS_MAX
from cleveragents.infrastructure.code_index.storage import cache_folder
from cleveragents.infrastructure.code_index.terms import terms_of
from indexkit import LATER, PATIENT, Written, everything, fresh_view, view_of, write

FILES = {
    "src/alpha.py": "def alpha():\n    return beta()\n",
    "src/beta.py": "class Beta:\n    def beta(self):\n        return alpha\n",
    "docs/gamma.md": "# Gamma\n\nalpha beta gamma gamma\n",
    "empty.py": "",
    "also_empty.py": "",
}


@pytest.fixture
def root(tmp_path):
    write(tmp_path / "tree", FILES)
    return tmp_path / "tree"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def index(cache):
    with StoredCodeIndex(cache, limits=PATIENT, clocks=LATER) as index:
        yield index


# -- searches ------------------------------------------------------------------------------


def naive_bm25(texts: dict[str, str], terms: dict[str, float]) -> dict[str, float]:
    counts = {path: terms_of(text) for path, text in texts.items()}
    lengths = {path: sum(one.values()) for path, one in counts.items()}
    average = sum(lengths.values()) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for term, weight in terms.items():
        holding = [path for path in texts if term in counts[path]]
        if holding:
            rarity = math.log1p((len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
            for path in holding:
                norm = 1.2 * (0.25 + 0.75 * lengths[path] / average)
                scores[path] += (
                    weight * rarity * 2.2 * counts[path][term] / (counts[path][term] + norm)
                )
    return {path: score for path, score in scores.items() if score}


def test_files_are_scored_by_bm25_over_exactly_the_tree(index, root):
    view = view_of(index, root)
    terms = {"alpha": 1.0, "gamma": 0.5, "return": 2.0}
    assert view.files_like(terms) == pytest.approx(naive_bm25(FILES, terms))
    assert view.rarity("gamma") == pytest.approx(math.log1p(4.5 / 1.5))
    assert view.rarity("nowhere") == 0.0


def test_every_search_finds_by_its_own_field(index, root):
    view = view_of(index, root)
    assert view.paths == tuple(sorted(FILES))
    assert next(iter(view.paths_like({"gamma": 1.0}))) == "docs/gamma.md"
    assert set(view.symbols_like({"beta": 1.0})) == {"src/beta.py"}
    assert [hit.path for hit in view.chunks_like({"gamma": 1.0}, 5)] == ["docs/gamma.md"]
    assert view.chunks_like({"alpha": 1.0}, 0) == []
    assert len(view.chunks_like({"alpha": 1.0}, 2)) == 2
    assert [(hit.path, hit.symbol.name) for hit in view.definitions("Beta")] == [
        ("src/beta.py", "Beta")
    ]
    assert next(hit.path for hit in view.users("Gamma")) == "docs/gamma.md"
    assert view.definitions("?") == view.users("?") == ()
    assert view.terms_of("alphas") == {"alpha": 1}


def test_contents_that_stand_in_several_files_are_found_in_each(index, root):
    write(root, {"copy/alpha.py": FILES["src/alpha.py"]})
    view = view_of(index, root)
    assert set(view.files_like({"return": 1.0})) == {"copy/alpha.py", "src/alpha.py", "src/beta.py"}
    assert view.rarity("return") == pytest.approx(math.log1p(3.5 / 3.5))


def test_empty_tree_has_an_empty_answer(index, tmp_path):
    (tmp_path / "empty").mkdir()
    view = view_of(index, tmp_path / "empty")
    assert everything(view)[:3] == ((), 0, {})
    assert view.history.commits_like({"a": 1.0}, 5) == []


# -- freshness -----------------------------------------------------------------------------


def test_what_was_written_is_found_by_the_next_request(index, root):
    view_of(index, root)
    write(
        root,
        {"src/new.py": "def brand_new():\n    pass\n", "src/alpha.py": "def other():\n    pass\n"},
    )
    (root / "src/beta.py").unlink()
    view = view_of(index, root)
    assert [hit.path for hit in view.definitions("brand_new")] == ["src/new.py"]
    assert view.definitions("alpha") == ()
    assert "src/beta.py" not in view.paths


def test_answers_do_not_depend_on_how_the_index_came_to_be(index, root, tmp_path):
    chance = random.Random(7)
    words = ["alpha", "beta", "gamma", "def", "class", "x"]
    for number in range(3 * SEGMENTS_MAX):
        path = f"src/f{chance.randrange(6)}.py"
        lines = (" ".join(chance.choices(words, k=5)) for _ in range(chance.randrange(90)))
        write(root, {path: "\n".join(lines)})
        if number % 5 == 4:
            (root / path).unlink()
        view = view_of(index, root)
    assert everything(view) == everything(fresh_view(root, tmp_path / "other"))


def test_waste_is_dropped_from_memory(index, root, monkeypatch):
    monkeypatch.setattr(keeper_module, "_PORTION", 1)
    for number in range(30):
        write(root, {"src/alpha.py": f"alpha = {number}\n"})
        view = view_of(index, root)
    assert len(view._shelf) < 20


def test_another_process_reads_nothing_again(index, root, cache, monkeypatch):
    first = everything(view_of(index, root))
    monkeypatch.setattr(keeper_module, "features_of", None)
    monkeypatch.setattr(keeper_module.freshness, "read", None)
    with StoredCodeIndex(cache, clocks=LATER, limits=PATIENT) as second:
        view = view_of(second, root)
        monkeypatch.undo()
        assert everything(view) == first


def test_text_that_changed_after_the_view_is_not_given(index, root):
    view_of(index, root)
    view = view_of(index, root)  # this one has read nothing itself
    assert view.text("src/alpha.py") == FILES["src/alpha.py"].removesuffix("\n")
    write(root, {"src/alpha.py": "\n\n" + FILES["src/alpha.py"]})
    (root / "src/beta.py").unlink()
    assert view.text("src/alpha.py") is view.text("src/beta.py") is view.text("none.py") is None
    assert view.card("none.py") is None


def test_text_that_a_view_has_read_itself_stays_with_it(index, root):
    view = view_of(index, root)
    write(root, {"src/alpha.py": "changed\n"})
    assert view.text("src/alpha.py") == FILES["src/alpha.py"].removesuffix("\n")


def test_little_text_stays_in_memory(index, root, monkeypatch):
    monkeypatch.setattr(keeper_module, "_TEXT_CHARS_MAX", 0)
    view = view_of(index, root)
    write(root, {"src/alpha.py": "changed\n"})
    assert view.text("src/alpha.py") is None


# -- the overlay ---------------------------------------------------------------------------


def test_overlay_is_searched_with_the_statistics_of_the_whole(index, root, tmp_path):
    changed = {
        "src/alpha.py": b"def gamma():\n    return alpha\n",
        "docs/gamma.md": None,
        "src/more.py": b"alpha = beta\n",
        "none.py": None,
        "image.png": b"\0",
    }
    view = view_of(index, root, Written(changed))
    merged = tmp_path / "merged"
    texts = {path: text.encode() for path, text in FILES.items()} | changed
    write(merged, {path: text for path, text in texts.items() if text is not None})
    assert everything(view) == everything(fresh_view(merged, tmp_path / "other"))
    assert everything(view_of(index, root)) == everything(fresh_view(root, tmp_path / "third"))


def test_overlay_that_leads_out_of_the_root_is_refused(index, root):
    with pytest.raises(RequestError, match="overlay"):
        view_of(index, root, Written({"../x.py": b""}))


def test_overlay_must_say_what_changed(root):
    with pytest.raises(RequestError, match="`overlay` must have a method `changed`, got object"):
        ContextRequest("task", root, overlay=object())


# -- what is left out ----------------------------------------------------------------------


def test_files_without_text_are_told(index, root):
    write(root, {"b.bin": b"a\0b", "l.txt": b"gr\xfc\xdfe", "big.txt": "a" * 1_000_001})
    view = view_of(index, root)
    assert view.paths == tuple(sorted(FILES))
    assert view.missing == 0
    assert view.notes[:2] == (
        "1 file is left out: not UTF-8 text",
        "1 file is left out: over 1,000,000 bytes",
    )


def test_files_that_vanish_or_cannot_be_read_are_told(index, root, monkeypatch):
    read = keeper_module.freshness.read
    gone = str(root / "src/alpha.py")
    monkeypatch.setattr(
        keeper_module.freshness, "read", lambda path, now: None if path == gone else read(path, now)
    )
    view = view_of(index, root)
    assert "src/alpha.py" not in view.paths
    assert "1 file is left out: not readable" in view.notes


def test_huge_tree_is_bounded_and_told(index, root, monkeypatch):
    monkeypatch.setattr(keeper_module, "FILES_MAX", 2)
    view = view_of(index, root)
    assert len(view.paths) == 2
    assert "The tree has more than 2 files; the rest is left out" in view.notes


@pytest.mark.parametrize("trouble", ["file-in-the-way", "other-program", "newer-version"])
def test_without_a_usable_file_everything_works_in_memory(trouble, root, cache):
    if trouble == "file-in-the-way":
        cache.write_text("not a folder")
    else:
        cache.mkdir()
        with sqlite3.connect(StoredCodeIndex(cache)._storage.path) as connection:
            connection.execute(
                "PRAGMA application_id = 7"
                if trouble == "other-program"
                else "PRAGMA user_version = 99"
            )
        connection.close()
    before = (
        cache.read_bytes() if cache.is_file() else StoredCodeIndex(cache)._storage.path.read_bytes()
    )
    with StoredCodeIndex(cache, limits=PATIENT, clocks=LATER) as index:
        view_of(index, root)
        view = view_of(index, root)
        assert view.missing == 0
        assert view.files_like({"alpha": 1.0})
        assert any(note.startswith("The code index is not kept in") for note in view.notes)
    after = cache.read_bytes() if cache.is_file() else index._storage.path.read_bytes()
    assert after == before  # what is not ours is not touched


# -- in the background ---------------------------------------------------------------------


def test_request_does_not_wait_and_the_background_finishes(root, cache, monkeypatch):
    monkeypatch.setattr(keeper_module, "_PORTION", 1)
    with StoredCodeIndex(cache, limits=IndexLimits(0.0, 0.0), clocks=LATER) as index:
        view = view_of(index, root)
        assert view.missing == len(FILES) - 1
        assert view.notes[0] == "4 files are not indexed yet; the work goes on in the background"
        thread = index._thread
        if thread is not None:
            thread.join(30)
        assert index._thread is None
        assert view_of(index, root).missing == 0


def test_rows_that_were_not_loaded_in_time_are_loaded_later(root, cache, monkeypatch):
    whole = everything(fresh_view(root, cache))
    monkeypatch.setattr(keeper_module, "_PORTION", 1)
    monkeypatch.setattr(keeper_module, "_LOAD_PORTION", 1)
    with StoredCodeIndex(cache, limits=IndexLimits(0.0, 0.0), clocks=LATER) as index:
        assert view_of(index, root).missing > 0
        assert everything(index.build(ContextRequest("task", root), StopSignal())) == whole


def test_broken_background_is_tried_again_by_the_next_request(root, cache, monkeypatch):
    def breaks(*_, **__):
        raise OSError("broken")

    with StoredCodeIndex(cache, limits=PATIENT, clocks=LATER) as index:
        keeper = index._keeper(root)
        monkeypatch.setattr(Keeper, "refresh", breaks)
        index._finish_later(keeper)
        thread = index._thread
        if thread is not None:
            thread.join(30)
        monkeypatch.undo()
        assert index._unfinished == {}
        assert view_of(index, root).missing == 0


def test_closed_index_starts_no_thread(root, cache):
    index = StoredCodeIndex(cache, limits=IndexLimits(0.0, 0.0), clocks=LATER)
    index.close()
    view_of(index, root)
    assert index._thread is None
    assert not any(thread.name == "ca-code-index" for thread in threading.enumerate())


def test_stopped_request_ends(index, root):
    stop = StopSignal()
    stop.stop("enough")
    with pytest.raises(Stopped):
        index.view(ContextRequest("task", root), stop)
    assert view_of(index, root).missing == 0


def test_few_trees_stay_in_memory(index, tmp_path, monkeypatch):
    monkeypatch.setattr(index_module, "TREES_MAX", 2)
    for name in "abc":
        write(tmp_path / name, {"x.py": name})
        view_of(index, tmp_path / name)
    assert [Path(root).name for root in index._keepers] == ["b", "c"]


def test_limits_must_be_seconds():
    with pytest.raises(RequestError, match="`step_s` must be 0 s or more, got -1"):
        IndexLimits(step_s=-1)


def test_cache_folder_follows_the_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / ".cache/cleveragents"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library/Caches/cleveragents"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x/cleveragents"
    assert StoredCodeIndex()._storage.path.parent == tmp_path / "x/cleveragents"
