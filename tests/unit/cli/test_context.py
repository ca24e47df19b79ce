from __future__ import annotations

import io
import re

import pytest

from cleveragents.cli import context as command
from cleveragents.infrastructure import exact_tokens
from cleveragents.infrastructure.code_index.index import IndexLimits, StoredCodeIndex
from cleveragents.infrastructure.embeddings import chunk_vectors
from embeddingkit import save_model

LEDGER = '''\
"""Money."""


def settle_reservation(amount):
    """Charge what was billed."""
    return amount
'''
ROUTES = '''\
"""Pages."""


def show_page(name):
    return render(name)
'''


@pytest.fixture
def tree(terminal, tmp_path, monkeypatch):
    """A small tree around the terminal, with an index of its own."""
    monkeypatch.setenv("CLEVERAGENTS_CONTEXT_INDEX_FOLDER", str(tmp_path / "state" / "index"))
    (tmp_path / ".gitignore").write_text("state/\n")
    (tmp_path / "ledger.py").write_text(LEDGER)
    (tmp_path / "deep" / "routes.py").write_text(ROUTES)
    return terminal


def test_context_goes_to_stdout_and_talk_to_stderr(tree):
    answer = tree.run("context", "settle the reservation")
    assert answer.code == 0
    assert answer.out.startswith("ledger.py:1-6\n```\n")
    assert LEDGER.strip() in answer.out
    assert "1 place in 1 file" in answer.err
    assert "lexical           ok" in answer.err
    assert "warning" not in answer.err


def test_same_question_gets_the_same_answer_byte_for_byte(tree):
    first = tree.run("context", "settle the reservation of a page")
    assert tree.run("context", "settle the reservation of a page").out == first.out != ""


def test_explanation_names_who_chose_each_place_and_why(tree):
    answer = tree.run("context", "settle the reservation", "--explain")
    assert "ledger.py:1-6  " in answer.out
    assert "  lexical: is like the task\n" in answer.out
    assert "  names: defines `settle_reservation`\n" in answer.out
    assert "Charge" not in answer.out


def test_record_holds_places_reasons_strategies_and_the_index(tree):
    (record,) = tree.run("context", "show `show_page`", "--json", "--tokens", "500").records
    assert record["kind"] == "context"
    assert record["tokens"] <= record["tokens_max"] == 500
    best = record["fragments"][0]
    assert (best["path"], best["start_line"]) == ("deep/routes.py", 1)
    assert {"strategy": "references", "reason": "defines `show_page`"} in best["origins"]
    assert 0 < best["tokens"] <= record["tokens"]
    assert record["text"].count(best["text"]) == 1
    assert {one["name"]: one["status"] for one in record["strategies"]} == dict.fromkeys(
        ("explicit-files", "lexical", "names", "references", "history", "identifier-match"), "ok"
    )
    assert record["index"]["state"] == "built"
    assert record["index"]["missing"] == 0
    assert record["index"]["files"] == 3


def test_text_of_the_record_is_what_is_printed(tree):
    printed = tree.run("context", "settle the reservation").out
    (record,) = tree.run("context", "settle the reservation", "--json").records
    assert record["text"] == printed


@pytest.mark.parametrize(
    "typed", ["../routes.py", "deep/routes.py"], ids=["from-here", "from-root"]
)
def test_named_file_comes_first(tree, typed):
    (record,) = tree.run("context", "settle the reservation", "--file", typed, "--json").records
    assert record["files"][0] == "deep/routes.py"


def test_task_can_be_read_from_a_pipe(tree, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('File "ledger.py", line 4, in settle\n'))
    (record,) = tree.run("context", "-", "--json").records
    assert record["fragments"][0]["origins"][0] == {
        "strategy": "explicit-files",
        "reason": "line 4 is mentioned in the task",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "TASK must say what is to be done, got nothing"),
        (["  "], "TASK must say what is to be done, got nothing"),
        (["x", "--tokens", "0"], "`--tokens` must be 1 to 100,000,000, got 0"),
        (["x", "--wait", "-1"], "`--wait` must be 0 s or more, got -1.0"),
        (["x", "--wait", "inf"], "`--wait` must be 0 s or more, got inf"),
        (["x", "--file", "nowhere.py"], "`--file` must be a file of the tree, got 'nowhere.py'"),
        (["x", "--file", "/etc/hosts"], "`--file` must be a file of the tree, got '/etc/hosts'"),
    ],
    ids=["none", "blank", "tokens", "wait", "endless", "absent", "outside"],
)
def test_bad_question_is_refused_with_the_rule(tree, arguments, said):
    answer = tree.run("context", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert f"error[CA1005]: {said}" in answer.err


def test_nothing_found_is_told_and_is_no_failure(tree):
    answer = tree.run("context", "xylophone")
    assert (answer.code, answer.out) == (0, "")
    assert "Nothing was found" in answer.err


def test_without_an_index_the_quick_strategies_answer_and_it_is_said(tree, monkeypatch, tmp_path):
    monkeypatch.setenv("CLEVERAGENTS_CONTEXT_INDEX_FOLDER", "off")
    answer = tree.run("context", "settle the reservation")
    assert "def settle_reservation" in answer.out
    assert "the index is switched off" in answer.err
    (record,) = tree.run("context", "settle the reservation", "--json").records
    assert record["index"] == {"state": "off"}
    assert len(record["strategies"]) == 2
    assert not (tmp_path / "state" / "index").exists()
    refused = tree.run("context", "--rebuild")
    assert refused.code == 2
    assert "`--rebuild` needs an index" in refused.err


class Slow(StoredCodeIndex):
    """Indexes nothing within a request, and has no background."""

    def __init__(self, folder) -> None:
        super().__init__(folder, limits=IndexLimits(request_s=0))
        self.close()


@pytest.fixture
def large(tree, tmp_path, monkeypatch):
    """More files than one look at the tree indexes, by an index that is slow."""
    for number in range(150):
        (tmp_path / f"part_{number:03}.py").write_text(f"def part_{number}(): ...\n")
    monkeypatch.setattr("cleveragents.infrastructure.code_index.index.StoredCodeIndex", Slow)
    return tree


def test_answer_does_not_wait_for_the_index_and_says_what_is_missing(large):
    answer = large.run("context", "settle the reservation", "--wait", "0")
    assert "def settle_reservation" in answer.out
    assert "the index is being built: 128 of 153 files\n" in answer.err


def test_record_says_what_is_missing(large):
    (record,) = large.run("context", "settle the reservation", "--wait", "0", "--json").records
    assert record["index"]["state"] == "building"
    assert (record["index"]["files"], record["index"]["missing"]) == (153, 25)
    assert "def settle_reservation" in record["text"]


@pytest.mark.parametrize(
    ("second_s", "is_told"), [(1.0, True), (1e-4, False)], ids=["slow", "quick"]
)
def test_progress_is_told_once_a_second_while_the_index_is_built(
    large, monkeypatch, second_s, is_told
):
    ticks = iter(range(10**6))
    clock = type("", (), {"monotonic": lambda: next(ticks) * second_s})
    monkeypatch.setattr(command, "time", clock)
    answer = large.run("context", "settle the reservation", "--wait", "100")
    assert ("the index is being built: 128 of 153 files\n" in answer.err) is is_told


def test_index_is_rebuilt_on_demand(tree, tmp_path):
    tree.run("context", "settle the reservation")
    answer = tree.run("context", "--rebuild")
    assert (answer.code, answer.out) == (0, "")
    assert "the index is built: 3 of 3 files" in answer.err
    (record,) = tree.run("context", "--rebuild", "--json").records
    assert record["kind"] == "index"
    assert record["files"] == 3
    assert (tmp_path / "state" / "index").is_dir()


def test_text_for_a_terminal_cannot_move_its_cursor(tree, tmp_path, monkeypatch):
    (tmp_path / "ledger.py").write_text("settle = '\x1b[2J'\n")
    assert "\x1b" in tree.run("context", "settle").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b" not in tree.run("context", "settle").out


def test_strategy_that_gives_nothing_is_told_with_its_reason(tree, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError("no disk")

    monkeypatch.setattr("cleveragents.strategies.history.History.find", broken)
    answer = tree.run("context", "settle the reservation")
    assert answer.code == 0
    assert "def settle_reservation" in answer.out
    assert "history           failed" in answer.err
    assert "warning: `history`" in answer.err


def test_doctor_tells_where_the_index_is(tree):
    tree.run("context", "settle the reservation")
    checks = {one["name"]: one for one in tree.run("doctor", "--json").records}
    # What was written a moment ago is looked at again, and kept the next time only.
    assert re.search(r"\b[0-3] files? of 1 tree", checks["code index"]["found"])


@pytest.mark.parametrize(
    ("way", "says", "name"),
    [("exact", "(o200k_base):", "o200k_base"), ("bytes", "(three bytes each):", "bytes")],
)
def test_how_tokens_were_counted_is_told(tree, monkeypatch, way, says, name):
    monkeypatch.setattr(exact_tokens, "exact_counter", lambda: len)
    monkeypatch.setenv("CLEVERAGENTS_CONTEXT_TOKEN_COUNT", way)
    assert says in tree.run("context", "settle the reservation").err
    (record,) = tree.run("context", "settle the reservation", "--json").records
    assert record["tokens_counted_by"] == name
    if way == "exact":  # what counts here is `len`
        assert record["tokens"] == len(record["text"])


class TestEmbeddings:
    @pytest.fixture
    def model(self, tmp_path, monkeypatch):
        save_model(tmp_path / "state" / "model")
        monkeypatch.setenv("CLEVERAGENTS_CONTEXT_EMBEDDINGS", str(tmp_path / "state" / "model"))
        (tmp_path / "gate.py").write_text("def unlock_gate():\n    enter")
        return tmp_path / "state" / "model"

    def test_code_is_found_by_its_meaning(self, tree, model):
        answer = tree.run("context", "open door", "--explain")
        assert model.is_dir()
        assert "  embeddings: means something like the task\n" in answer.out
        assert "embeddings        ok" in answer.err
        assert tree.run("context", "open door", "--explain").out == answer.out

    def test_what_there_was_no_time_for_is_told(self, tree, model, monkeypatch):
        monkeypatch.setattr(chunk_vectors.ChunkVectors, "embed", lambda *_: 7)
        answer = tree.run("context", "open door")
        assert model.is_dir()
        assert "embeddings: 7 files to be done in later requests" in answer.err

    def test_without_a_model_in_the_folder_the_others_answer(self, tree, model, monkeypatch):
        (model / "model.safetensors").unlink()
        answer = tree.run("context", "settle the reservation")
        monkeypatch.setenv("CLEVERAGENTS_CONTEXT_EMBEDDINGS", "off")
        assert (answer.code, answer.out) == (0, tree.run("context", "settle the reservation").out)
        assert "embeddings        failed" in answer.err
        assert "`context_embeddings` names no model" in answer.err
