from __future__ import annotations

from high_score import HighScore


def test_only_better_scores_count():
    score = HighScore()
    assert score.submit("ann", 5)
    assert not score.submit("bob", 4)
    assert score.current() == ("ann", 5)
    score.reset()
    assert score.current() == (None, 0)
