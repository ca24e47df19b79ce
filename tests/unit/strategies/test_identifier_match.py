from __future__ import annotations

import time

import pytest

from cleveragents.domain.context_request import ContextRequest, Written
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies import identifier_match
from cleveragents.strategies.identifier_match import IdentifierMatch, terms_of
from viewkit import FakeIndex, FakeView


def found(root, task, files):
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return list(IdentifierMatch().find(ContextRequest(task, root), StopSignal()))


def paths(fragments):
    return [fragment.path for fragment in fragments]


@pytest.mark.parametrize(
    ("task", "terms"),
    [
        ("Fix the CostTracker", ("fix", "costtracker", "cost", "tracker")),
        ("record_usage", ("record_usage", "record", "usage")),
        ("HTTPServer2 and IO", ("httpserver2", "http", "server")),
        ("größe of the x", ("größe",)),
        ("cost cost COST", ("cost",)),
        ("12 !?", ()),
        (f"{'x' * 100} {'y' * 101}", ("x" * 100,)),
    ],
)
def test_words_and_their_parts_are_terms(task, terms):
    assert terms_of(task) == terms


def test_a_pasted_log_does_not_become_a_thousand_searches():
    letters = "abcdefghijklmnopqrstuvwxyz"

    assert len(terms_of(" ".join(a + b + "x" for a in letters for b in letters))) == 64


def test_a_match_is_found_with_the_lines_around_it(tmp_path):
    text = "\n".join(["filler"] * 19 + ["budget = 1"] + ["filler"] * 20)

    (fragment,) = found(tmp_path, "budget", {"a.py": text})

    assert (fragment.start_line, fragment.end_line) == (15, 25)
    assert fragment.lines[5] == "budget = 1"
    assert (fragment.source, fragment.reason) == ("identifier-match", "holds `budget`")


def test_a_span_ends_with_its_file(tmp_path):
    (fragment,) = found(tmp_path, "budget", {"a.py": "budget\nlast\n"})

    assert (fragment.start_line, fragment.end_line, fragment.text) == (1, 2, "budget\nlast")


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("plan", True),
        ("my_plan", True),
        ("MyPlan", True),
        ("HTTPPlan", True),
        ("planner", True),
        ("explanation", False),
        ("EXPLANATION", False),
    ],
)
def test_a_match_begins_where_a_word_or_a_hump_begins(tmp_path, text, matches):
    assert bool(found(tmp_path, "plan", {"a.py": text})) is matches


def test_letters_that_grow_in_lower_case_do_not_shift_the_lines(tmp_path):
    (fragment,) = found(tmp_path, "budget", {"a.py": "İ\n" * 20 + "budget"})

    assert (fragment.start_line, fragment.end_line) == (16, 21)


def test_rare_words_count_more_than_frequent_ones(tmp_path):
    files = {f"common{n}.py": "budget" for n in range(8)}

    fragments = found(tmp_path, "budget ledger", {**files, "zz.py": "ledger"})

    assert paths(fragments)[0] == "zz.py"


def test_a_place_with_more_of_the_words_is_better(tmp_path):
    files = {"a.py": "ledger", "b.py": "budget", "z.py": "ledger\nbudget"}

    assert paths(found(tmp_path, "budget ledger", files))[0] == "z.py"


def test_words_in_the_path_count_and_find_the_top_of_the_file(tmp_path):
    files = {"src/cost_tracker.py": "x\n" * 30, "other.py": "y"}

    (fragment,) = found(tmp_path, "the cost tracker", files)

    assert (fragment.path, fragment.start_line, fragment.end_line) == ("src/cost_tracker.py", 1, 6)


def test_far_matches_are_two_spans_and_a_long_chain_is_cut(tmp_path):
    far = ["budget"] + ["x"] * 30 + ["budget"]
    chain = ["budget"] * 49 + ["x"] * 5 + ["ledger"] * 30

    spans = [
        (one.path, one.start_line, one.end_line)
        for one in found(
            tmp_path, "budget ledger", {"far.py": "\n".join(far), "chain.py": "\n".join(chain)}
        )
    ]

    assert sorted(spans) == [
        ("chain.py", 1, 60),
        ("chain.py", 61, 84),
        ("far.py", 1, 6),
        ("far.py", 27, 32),
    ]


def test_one_file_does_not_fill_the_answer(tmp_path):
    text = "\n".join((["budget"] + ["x"] * 20) * 9)

    assert len(found(tmp_path, "budget", {"a.py": text})) == 5


def test_the_answer_as_a_whole_is_bounded(tmp_path):
    files = {f"{n}.py": "budget" for n in range(205)}

    assert len(found(tmp_path, "budget", files)) == 200


def test_more_words_than_a_reason_shows_are_counted(tmp_path):
    (fragment,) = found(tmp_path, "one two three four", {"a.py": "one two three four"})

    assert fragment.reason == "holds `four`, `one`, `three` and 1 more"


def test_files_that_vanish_or_are_no_text_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "data.bin").write_bytes(b"budget\0")
    reads = iter(["budget", None])
    monkeypatch.setattr(identifier_match, "read_text", lambda _: next(reads))
    (tmp_path / "a.py").write_text("budget")

    monkeypatch.setattr(identifier_match, "walk", lambda *_: ["a.py"])
    assert found(tmp_path, "budget", {}) == []

    monkeypatch.undo()
    assert paths(found(tmp_path, "budget", {})) == ["a.py"]


@pytest.mark.parametrize("letter", ["a", "A", "1", "_", "İ"])
def test_terms_are_split_in_one_go(letter):
    started_s = time.monotonic()

    assert terms_of(letter * 300_000 + "a") == ()

    assert time.monotonic() - started_s < 1


def test_a_search_in_a_hostile_file_ends_between_two_words(tmp_path, monkeypatch):
    """Where a word matches at every letter, one word takes long enough to be asked to stop."""
    stop = StopSignal()
    searched = []

    def matches(text, _, term):
        if text == "budget ledger":
            searched.append(term)
            stop.stop("enough")
        return iter(())

    monkeypatch.setattr(identifier_match, "_matches", matches)
    (tmp_path / "a.py").write_text("budget ledger")

    with pytest.raises(Stopped, match="enough"):
        list(IdentifierMatch().find(ContextRequest("budget ledger", tmp_path), stop))
    assert searched == ["budget"]


def test_a_task_without_words_finds_nothing(tmp_path):
    assert found(tmp_path, "1 + 1 = ?", {"a.py": "1"}) == []


def test_a_stopped_search_ends(tmp_path):
    stop = StopSignal()
    fragments = iter(found_lazily(tmp_path, stop))
    next(fragments)

    stop.stop("enough")

    with pytest.raises(Stopped, match="enough"):
        next(fragments)


def found_lazily(root, stop):
    (root / "a.py").write_text("budget\n" + "x\n" * 30 + "budget\n")
    return IdentifierMatch().find(ContextRequest("budget", root), stop)


@pytest.mark.parametrize(
    ("missing", "expected"), [(0, []), (1, ["a.py"])], ids=["whole", "partial"]
)
def test_the_tree_is_read_only_until_the_index_is_complete(tmp_path, missing, expected):
    (tmp_path / "a.py").write_text("budget = 1")
    index = FakeIndex(FakeView({}, missing=missing))
    request = ContextRequest("budget", tmp_path)

    assert paths(IdentifierMatch(index).find(request, StopSignal())) == expected


def test_what_was_written_over_the_tree_is_found_in_its_place(tmp_path):
    for name in ("app.py", "gone.py", "same.py"):
        (tmp_path / name).write_text(f"cost = '{name} of the tree'\n")
    written = Written({"app.py": b"cost = 'own'\n", "gone.py": None, "new.py": b"cost = 'new'\n"})
    request = ContextRequest("cost", tmp_path, overlay=written)
    texts = {one.path: one.lines[0] for one in IdentifierMatch().find(request, StopSignal())}
    assert texts == {
        "app.py": "cost = 'own'",
        "new.py": "cost = 'new'",
        "same.py": "cost = 'same.py of the tree'",
    }


def test_file_that_changes_between_two_readings_is_left_out(tmp_path):
    """Its lines were counted in another text."""
    (tmp_path / "app.py").write_text("cost = 1\n")
    (tmp_path / "other.py").write_text("cost = 2\n")
    finding = IdentifierMatch().find(ContextRequest("cost", tmp_path), StopSignal())
    first = next(finding)
    (tmp_path / "other.py").write_text("\n" * 20 + "cost = 2\n")
    assert [first.path, *(one.path for one in finding)] == ["app.py"]


def test_large_tree_is_read_for_a_few_seconds_and_what_was_found_is_given(tmp_path):
    for number in range(5):
        (tmp_path / f"f{number}.py").write_text("cost = 1\n")
    seconds = iter(range(100))
    strategy = IdentifierMatch(clock=lambda: next(seconds))
    found = strategy.find(ContextRequest("cost", tmp_path), StopSignal())
    assert paths(found) == ["f0.py", "f1.py"]
