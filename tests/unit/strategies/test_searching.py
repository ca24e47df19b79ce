from __future__ import annotations

import math

from cleveragents.strategies.searching import Quoter, best_chunks, blended, ranked, task_terms
from viewkit import FakeView

VIEW = FakeView({"a.py": "\n".join(f"line {n}" for n in range(1, 101)), "empty.py": "\n\n"})


def test_fillers_are_no_terms_and_what_is_said_again_counts_a_little_more():
    terms = task_terms(VIEW, "Use the parser for the parser of headers")

    assert terms == {"parser": 1 + math.log(2), "headers": 1.0}


def test_a_pasted_log_has_a_limited_number_of_terms():
    assert len(task_terms(VIEW, " ".join(f"word{n}" for n in range(1000)))) == 200


def test_parts_are_compared_by_their_best_and_weighted():
    scores = blended((1.0, {"a.py": 100.0, "b.py": 50.0}), (2.0, {"b.py": 0.1}), (9.0, {}))

    assert scores == {"a.py": 1.0, "b.py": 2.5}


def test_a_part_of_nothing_but_zeros_counts_nothing():
    assert blended((1.0, {"a.py": 0.0})) == {"a.py": 0.0}


def test_equal_scores_stand_by_path_and_zeros_are_left_out():
    assert ranked({"b": 1.0, "a": 1.0, "c": 2.0, "z": 0.0}, 9) == [
        ("c", 2.0),
        ("a", 1.0),
        ("b", 1.0),
    ]


def test_the_chunks_of_a_file_come_the_best_first():
    chunks = best_chunks(VIEW, {"42": 1.0, "line": 0.1})["a.py"]

    assert (chunks[0].start_line, len(chunks)) == (41, 20)


class TestQuoter:
    def test_a_long_span_is_shown_by_its_beginning(self):
        (one,) = Quoter(VIEW, "s").quote("a.py", (11, 100), 1.0, "r")

        assert (one.start_line, one.end_line) == (11, 70)

    def test_a_span_ends_with_its_file(self):
        (one,) = Quoter(VIEW, "s").quote("a.py", (99, 120), 1.0, "r")

        assert (one.end_line, one.text) == (100, "line 99\nline 100")

    def test_empty_lines_are_no_fragment(self):
        assert Quoter(VIEW, "s").quote("empty.py", (1, 3), 1.0, "r") == ()

    def test_a_file_that_is_gone_gives_nothing(self):
        assert Quoter(VIEW, "s").quote("gone.py", (1, 3), 1.0, "r") == ()

    def test_a_file_that_is_not_indexed_begins_with_its_first_line(self):
        class Unknown(FakeView):
            def card(self, _path):
                return None

        assert Quoter(Unknown({"a.py": "x"}), "s").opening("a.py") == (1, 1)
