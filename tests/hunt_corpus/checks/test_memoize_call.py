from __future__ import annotations

from memoize_call import Squares


def test_results_are_remembered():
    squares = Squares()
    assert squares(3) == 9
    assert squares(3) == 9
    assert (squares.hits, squares.misses) == (1, 1)
    assert squares(4) == 16
    assert squares._results == {4: 16}
