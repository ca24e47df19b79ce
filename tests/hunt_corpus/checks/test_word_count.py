from __future__ import annotations

from word_count import WordCount


def test_words_are_counted_by_language():
    words = WordCount()
    words.add("en", "the")
    words.add("en", "the")
    words.add("de", "die")
    assert words.count("en", "the") == 2
    assert words.total("de") == 1
    assert words.count("fr", "le") == 0
