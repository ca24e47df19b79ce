from __future__ import annotations

from shared_table import SharedTable


def test_rows_are_renamed():
    table = SharedTable()
    assert table.get("a") == 1
    assert table.rename("a", "b")
    assert not table.rename("a", "b")
    assert table.get("a") is None
    assert table.names() == ["b"]
