from __future__ import annotations

from ticket_closure import make_dispenser


def test_tickets_count_up():
    take, count = make_dispenser(5)
    assert take() == 5
    assert take() == 6
    assert count() == 2
