from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.application.services.context_assembly import (
    Origin,
    Outline,
    Passage,
    approximate_tokens,
    pack,
    render,
)
from cleveragents.application.services.context_ranking import Finding, rank
from cleveragents.domain.errors import RequestError
from cleveragents.domain.fragment import Fragment

PLENTY = 10**6


def lines(path: str, start: int, end: int, *, score: float = 1.0, source: str = "s") -> Fragment:
    """Lines of a file whose every line says where it stands."""
    text = "\n".join(f"{path} line {number}" for number in range(start, end + 1))
    return Fragment(path, start, end, text, score, source, f"{source} says so")


def packed(*findings: Finding, tokens_max: int = PLENTY):
    return pack(rank(findings), tokens_max, approximate_tokens)


def spans(result) -> list[tuple[str, int, int]]:
    return [(one.path, one.start_line, one.end_line) for one in result.passages]


class TestMerging:
    @pytest.mark.parametrize(
        ("first", "second"),
        [((1, 6), (4, 9)), ((1, 4), (5, 9)), ((1, 9), (3, 4)), ((1, 9), (1, 9))],
        ids=["overlapping", "adjacent", "inside", "equal"],
    )
    def test_spans_that_touch_become_one_passage_with_both_origins(self, first, second):
        a, b = lines("f", *first, source="a"), lines("f", *second, source="b")

        (passage,) = packed(Finding((a,)), Finding((b,))).passages

        assert passage.text == lines("f", 1, 9).text
        assert passage.origins == (Origin("a", "a says so"), Origin("b", "b says so"))

    def test_spans_apart_stay_apart_with_their_own_origins(self):
        a, b = lines("f", 1, 2, source="a"), lines("f", 4, 5, source="b")

        one, two = packed(Finding((a, b))).passages

        assert (one.origins, two.origins) == ((Origin(*_by("a")),), (Origin(*_by("b")),))

    def test_equal_lines_of_two_files_are_two_passages(self):
        a = lines("f", 1, 2)

        assert spans(packed(Finding((a, replace(a, path="g"))))) == [("f", 1, 2), ("g", 1, 2)]

    def test_all_reasons_of_one_strategy_for_one_place_are_kept(self):
        a = lines("f", 1, 2)

        (passage,) = packed(Finding((a, replace(a, reason="more")))).passages

        assert passage.origins == (Origin("s", "more"), Origin("s", "s says so"))

    def test_of_two_texts_of_one_line_the_better_ranked_is_believed(self):
        """A file that changed between two readings must not show both versions."""
        new, old = lines("f", 1, 3, score=2), replace(lines("f", 3, 5), text="x\ny\nz")

        result = packed(Finding((old, new)))

        assert (spans(result), result.omitted) == ([("f", 1, 3)], 1)


def _by(source: str) -> tuple[str, str]:
    return source, f"{source} says so"


class TestRanking:
    def test_scores_order_the_fragments_of_one_strategy(self):
        found = [lines(name, 1, 1, score=score) for name, score in (("a", 1), ("b", 3), ("c", 2))]

        assert [one.path for one in rank([Finding(tuple(found))]).fragments] == ["b", "c", "a"]

    def test_a_place_that_two_strategies_found_beats_two_first_places(self):
        both = [Finding((lines("first", 1, 1, score=9), lines("both", 1, 2, score=5)))]
        both.append(Finding((lines("other", 1, 1, score=9), lines("both", 2, 3, score=5))))

        assert [one.path for one in rank(both).fragments][:2] == ["both", "both"]

    def test_a_weight_counts_as_often_as_it_says(self):
        heavy = Finding((lines("heavy", 1, 1),), weight=3)
        light = [Finding((lines("light", 1, 1, source=name),)) for name in "ab"]

        assert rank([*light, heavy]).fragments[0].path == "heavy"

    def test_scores_of_two_strategies_are_never_compared(self):
        huge = Finding((lines("a", 1, 1, score=1e300), lines("b", 1, 1, score=1e299)))
        tiny = Finding((lines("c", 1, 1, score=1e-300),))

        assert [one.path for one in rank([huge, tiny]).fragments] == ["a", "c", "b"]

    def test_equal_scores_share_a_rank_and_stand_by_path_and_line(self):
        found = (lines("b", 1, 1), lines("a", 9, 9), lines("a", 2, 2))

        assert [(one.path, one.start_line) for one in rank([Finding(found)]).fragments] == [
            ("a", 2),
            ("a", 9),
            ("b", 1),
        ]


class TestPacking:
    def test_the_best_file_comes_first_and_each_file_reads_from_top_to_bottom(self):
        found = (
            lines("z", 9, 9, score=3),
            lines("a", 1, 1, score=2),
            lines("z", 2, 2, score=1),
        )

        assert spans(packed(Finding(found))) == [("z", 2, 2), ("z", 9, 9), ("a", 1, 1)]

    def test_a_fragment_that_does_not_fit_leaves_room_for_smaller_ones(self):
        found = (lines("long", 1, 1000, score=2), lines("short", 1, 3, score=1))

        result = packed(Finding(found), tokens_max=400)

        (cut, whole) = spans(result)
        assert cut[:2] == ("long", 1)
        assert 100 > cut[2] >= 5
        assert whole == ("short", 1, 3)

    def test_room_that_nobody_else_needs_goes_to_what_was_cut(self):
        result = packed(Finding((lines("long", 1, 1000),)), tokens_max=400)

        assert 390 < result.tokens <= 400

    def test_a_cut_file_still_shows_the_better_lines_further_down(self):
        """The whole file is too long, but what another strategy found in it gets in."""
        whole = Finding((lines("f", 1, 1000),), weight=4)
        spot = Finding((lines("f", 700, 703, source="spot"),))

        top, found = spans(packed(whole, spot, tokens_max=400))

        assert (top[1], found[1:]) == (1, (700, 703))

    def test_a_line_longer_than_the_budget_is_skipped(self):
        long = Fragment("min.js", 1, 1, "x" * 10_000, 2.0, "s", "r")

        result = packed(Finding((long, lines("f", 1, 2))), tokens_max=100)

        assert (spans(result), result.omitted) == ([("f", 1, 2)], 1)

    def test_a_cut_of_a_few_lines_is_not_worth_its_heading(self):
        result = packed(Finding((lines("f", 1, 100),)), tokens_max=15)

        assert (result.passages, result.omitted) == ((), 1)

    def test_nothing_found_is_an_empty_context(self):
        result = packed()

        assert (result.passages, result.tokens, result.omitted) == ((), 0, 0)

    def test_a_counter_that_gives_no_count_is_refused(self):
        with pytest.raises(RequestError, match="`count_tokens` must give a whole number from 0"):
            pack(rank([]), 10, lambda _: -1)

    def test_an_uneven_counter_never_breaks_the_budget(self):
        """Tokens of a whole need not be the sum of its parts; the whole is what is counted."""

        def uneven(text: str) -> int:
            return len(text) // 4 + text.count("line 7") * 50

        found = tuple(lines("f", start, start + 8) for start in range(1, 200, 10))
        result = pack(rank([Finding(found)]), 500, uneven)

        assert result.tokens == uneven(render(result.passages, result.outlines)) <= 500
        assert result.passages

    @pytest.mark.parametrize("files", [1, 40, 2000], ids=["one-file", "some-files", "many-files"])
    def test_packing_counts_what_was_found_a_few_times_not_once_for_each_fragment(self, files):
        found = tuple(
            lines(f"f{n % files}", 1 + n // files * 5, 3 + n // files * 5) for n in range(2000)
        )
        counted = []

        def count(text: str) -> int:
            counted.append(len(text))
            return approximate_tokens(text)

        result = pack(rank([Finding(found)]), PLENTY, count)

        assert result.omitted == 0
        assert sum(counted) < 5 * len(render(result.passages, result.outlines))

    @pytest.mark.parametrize("tokens_max", [97, 400, 3000])
    def test_the_room_is_used_although_lines_are_counted_one_by_one(self, tokens_max):
        """A line alone is rounded up; counted as a whole there is room for more."""
        result = packed(Finding((lines("a", 1, 900), lines("b", 1, 900))), tokens_max=tokens_max)

        assert tokens_max - 10 < result.tokens <= tokens_max

    def test_a_counter_that_finds_nothing_in_single_lines_still_gives_a_full_page(self):
        """The estimate is 0 here; lines are taken back until the whole fits."""
        result = pack(rank([Finding((lines("f", 1, 1000),))]), 50, lambda text: len(text) // 100)

        assert spans(result)[0][:2] == ("f", 1)
        assert 45 < result.tokens <= 50

    @pytest.mark.parametrize("length", [160, 190, 1000])
    def test_one_file_does_not_keep_out_the_others(self, length):
        """The user names a file that would fit, and fill the room."""
        named = Finding((lines("named", 1, length),), weight=6)
        others = [lines(f"other{n}", 1, 100, score=1 - n / 10) for n in range(5)]

        result = packed(named, Finding(tuple(others)), tokens_max=1000)

        shown = {one.path: approximate_tokens(one.text) for one in result.passages}
        assert 450 < shown["named"] <= 600
        assert len(shown) > 2
        assert result.tokens > 900

    def test_room_that_others_leave_goes_to_the_large_file(self):
        named = Finding((lines("named", 1, 1000),), weight=6)

        result = packed(named, Finding((lines("other", 1, 5),)), tokens_max=1000)

        assert spans(result)[1] == ("other", 1, 5)
        assert 980 < result.tokens <= 1000

    def test_what_every_text_costs_is_counted_once(self):
        """Some services add their own tokens to each text they count."""
        result = pack(
            rank([Finding((lines("f", 1, 1000),))]), 500, lambda text: 8 + approximate_tokens(text)
        )

        assert 490 < result.tokens <= 500


class TestOutlines:
    """Files for which there is no room are named, with their best place."""

    @staticmethod
    def many(count=50):
        return Finding(tuple(lines(f"f{n:03}", 3, 40, score=100 - n) for n in range(count)))

    def test_the_next_best_files_get_a_line_each(self):
        result = packed(self.many(), tokens_max=2000)

        shown = {one.path for one in result.passages}
        expected = [f"f{n:03}" for n in range(50) if f"f{n:03}" not in shown]
        assert [one.path for one in result.outlines] == expected[: len(result.outlines)]
        assert len(result.outlines) > 10

    def test_a_line_tells_the_best_place_and_how_it_begins(self):
        result = packed(self.many(), tokens_max=2000)

        text = render(result.passages, result.outlines)
        first = result.outlines[0]
        assert first == Outline(first.path, 3, 40, f"{first.path} line 3")
        assert f"\n\nFound too, best first:\n{first.path}:3-40 {first.head}\n" in text

    def test_outlines_take_at_most_a_fifth_of_the_room(self):
        for tokens_max in (10, 50, 100, 500, 2000):
            result = packed(self.many(), tokens_max=tokens_max)

            assert approximate_tokens(render((), result.outlines)) <= tokens_max // 5
            assert result.tokens <= tokens_max

    def test_there_are_at_most_thirty(self):
        assert len(packed(self.many(500), tokens_max=20_000).outlines) == 30

    def test_what_is_shown_needs_no_outline(self):
        assert packed(self.many()).outlines == ()

    def test_the_room_that_outlines_do_not_need_is_used(self):
        result = packed(self.many(3), tokens_max=300)

        assert 280 < result.tokens <= 300

    def test_a_long_or_empty_beginning_is_cut_or_left_out(self):
        long = Fragment("a", 1, 2, "\n" + "x" * 500, 1.0, "s", "r")
        blank = Fragment("b", 1, 1, " ", 0.5, "s", "r")
        fill = lines("0", 1, 500, score=2)

        result = packed(Finding((fill, long, blank)), tokens_max=300)

        heads = {one.path: one.head for one in result.outlines}
        assert heads.get("a") == "x" * 79 + "…"
        assert render((), [Outline("b", 1, 1, "")]).endswith("\nb:1-1\n")


class TestRendering:
    def test_a_passage_is_fenced_under_its_path_and_lines(self):
        text = render([Passage("src/a.py", 3, 4, "x = 1\ny = 2", ())])

        assert text == "src/a.py:3-4\n```\nx = 1\ny = 2\n```\n"

    def test_no_text_can_end_its_own_fence(self):
        text = render([Passage("README.md", 1, 3, "````\ncode\n````", ())])

        assert text.startswith("README.md:1-3\n`````\n")

    def test_passages_are_parted_by_an_empty_line(self):
        one = Passage("a", 1, 1, "x", ())

        assert render([one, one]) == "a:1-1\n```\nx\n```\n\na:1-1\n```\nx\n```\n"


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("漢字", 2)], ids=repr
)
def test_tokens_are_guessed_from_bytes_and_rounded_up(text, tokens):
    assert approximate_tokens(text) == tokens


@st.composite
def found_fragments(draw):
    start = draw(st.integers(1, 30))
    end = start + draw(st.integers(0, 12))
    path = draw(st.sampled_from(["a.py", "b.py"]))
    one = lines(path, start, end, score=draw(st.sampled_from([0.1, 0.2, 0.5])))
    if draw(st.integers(0, 9)) == 0:  # somebody read another version of the file
        one = replace(one, text=one.text.replace("line", "LINE"))
    return replace(one, reason=draw(st.sampled_from(["r1", "r2"])))


FINDINGS = st.lists(
    st.builds(Finding, st.lists(found_fragments(), max_size=8).map(tuple), st.integers(1, 4)),
    max_size=4,
)


@given(FINDINGS, st.integers(1, 400), st.randoms(use_true_random=False))
def test_the_same_fragments_give_the_same_context_in_any_order_and_number(
    findings, tokens_max, chance
):
    expected = packed(*findings, tokens_max=tokens_max)

    shuffled = []
    for finding in findings:
        more = list(finding.fragments)
        more += chance.choices(more, k=3) if more else []
        chance.shuffle(more)
        shuffled.append(replace(finding, fragments=tuple(more)))
    chance.shuffle(shuffled)

    assert packed(*shuffled, tokens_max=tokens_max) == expected


@given(FINDINGS, st.integers(1, 400))
def test_what_is_packed_fits_and_is_the_text_that_was_found(findings, tokens_max):
    result = packed(*findings, tokens_max=tokens_max)

    assert (
        result.tokens == approximate_tokens(render(result.passages, result.outlines)) <= tokens_max
    )
    found = {
        (one.path, number, text)
        for finding in findings
        for one in finding.fragments
        for number, text in enumerate(one.lines, one.start_line)
    }
    shown = [
        (one.path, number, text)
        for one in result.passages
        for number, text in enumerate(one.text.split("\n"), one.start_line)
    ]
    assert set(shown) <= found
    assert len({(path, number) for path, number, _ in shown}) == len(shown)


@given(FINDINGS)
def test_with_room_for_everything_only_contradictions_are_left_out(findings):
    result = packed(*findings)

    assert result.omitted == rank(findings).contradicted
