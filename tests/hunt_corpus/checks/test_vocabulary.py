from __future__ import annotations

from vocabulary import Vocabulary


def test_words_are_numbered():
    words = Vocabulary()
    assert words.id_of("a") == 0
    assert words.id_of("b") == 1
    assert words.id_of("a") == 0
    assert words.word(1) == "b"
    assert words.word(2) is None
    assert len(words) == 2
