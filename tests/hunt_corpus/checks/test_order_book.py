from __future__ import annotations

from order_book import Order, OrderBook


def test_best_price():
    book = OrderBook()
    assert book.place(Order(1, 10))
    assert book.place(Order(2, 12, 3))
    assert not book.place(Order(2, 15))
    assert book.best() == 12
    assert book.volume == 4
    assert book.cancel(2) == Order(2, 12, 3)
    assert book.best() == 10
    assert book.cancel(2) is None
