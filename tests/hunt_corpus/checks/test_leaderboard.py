from __future__ import annotations

from leaderboard import Leaderboard


def test_scores():
    board = Leaderboard()
    assert board.best() is None
    assert board.add_score("ann", 5) == 5
    assert board.add_score("bob", 7) == 7
    assert board.penalize("bob", 3) == 4
    assert board.best() == ("ann", 5)
