from __future__ import annotations

import lazy_global


def test_words_are_looked_up():
    assert lazy_global.get_table() is lazy_global.get_table()
    assert lazy_global.lookup("two") == 2
    assert lazy_global.lookup("ten") is None
