from __future__ import annotations

from price_quote import PriceQuote


def test_quote_is_read_as_written():
    quote = PriceQuote()
    quote.update(20, 22)
    assert quote.read() == (20, 22)
    quote.shift(5)
    assert quote.read() == (25, 27)
    assert quote.spread() == 2
