from __future__ import annotations

from refresher import Refresher


def test_refreshes_are_counted():
    refresher = Refresher()
    assert refresher.refresh()
    assert refresher.refresh()
    assert refresher.current() == 2
    assert refresher.most_inside == 1
