from __future__ import annotations

import pytest

from cleveragents.application.services.context_ranking import Finding, rank
from cleveragents.domain.fragment import Fragment


def one(path: str, score: float, start: int = 1, source: str = "s") -> Fragment:
    return Fragment(path, start, start, f"{path} {start}", score, source, "because")


def files(*findings: Finding) -> list[str]:
    return list(rank(findings).files)


def test_a_files_worth_is_the_sum_of_its_parts_of_each_best_score():
    """By rank alone `close` and `far` would be equal; by score `far` loses."""
    text = Finding((one("close", 10), one("far", 9)))
    past = Finding((one("far", 1), one("close", 0.95)))

    assert files(text, past) == ["close", "far"]


def test_many_places_of_a_file_do_not_add_up():
    crowd = tuple(one("crowd", 5, start) for start in range(1, 50))

    assert files(Finding((*crowd, one("single", 6)))) == ["single", "crowd"]


def test_a_file_that_several_strategies_know_comes_before_one_that_is_first_once():
    findings = [Finding((one("first", 10), one("known", 6))) for _ in range(1)]
    findings += [Finding((one("other", 10), one("known", 6)))]

    assert files(*findings)[0] == "known"


def test_a_place_in_a_better_file_comes_first():
    good = (one("good", 10, 1), one("good", 6, 9))
    fragments = rank([Finding((*good, one("weak", 6.5)))]).fragments

    assert [(found.path, found.start_line) for found in fragments] == [
        ("good", 1),
        ("good", 9),
        ("weak", 1),
    ]


@pytest.mark.parametrize(
    "scores",
    [(3, 2, 1), (-1, -2, -3), (1e308, 0, -1e308), (5e-324, 0, -5e-324), (10**300, 1, 0)],
    ids=["positive", "negative", "huge", "tiny", "integers"],
)
def test_any_finite_scores_keep_their_order(scores):
    assert files(Finding(tuple(map(one, "abc", scores)))) == ["a", "b", "c"]


def test_equal_scores_are_equal_whatever_they_are():
    zero = Finding((one("b", 0), one("a", 0)))
    ranked = rank([zero, Finding((one("c", 7),))])

    assert ranked.files == ("a", "b", "c")


def test_who_is_worst_of_one_strategy_still_counts_as_found():
    worst = Finding((one("a", 1), one("z", 0)))
    tie = Finding((one("y", 1), one("z", 1)))

    assert files(worst, tie) == ["z", "a", "y"]


def test_nothing_found_has_no_files():
    assert files(Finding(())) == []
