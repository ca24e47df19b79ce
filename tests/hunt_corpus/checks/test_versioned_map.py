from __future__ import annotations

from versioned_map import VersionedMap


def test_changes_are_counted():
    mapping = VersionedMap()
    mapping["a"] = 1
    mapping["a"] = 2
    mapping["b"] = 3
    del mapping["b"]
    assert mapping.version == 4
    assert dict(mapping) == {"a": 2}
