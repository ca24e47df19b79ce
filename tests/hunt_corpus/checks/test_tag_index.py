from __future__ import annotations

from tag_index import TagIndex


def test_documents_are_tagged():
    index = TagIndex()
    index.tag("a", "red")
    index.tag("a", "big")
    index.tag("b", "red")
    assert index.tags_of("a") == ["big", "red"]
    assert index.popular() == {"red": 2, "big": 1}
    assert index.untag("a") == 2
    assert index.tags_of("a") == []
