from __future__ import annotations

import pytest
from plugin_registry import DuplicatePlugin, PluginRegistry


def test_names_are_unique_and_ordered():
    registry = PluginRegistry()
    registry.register("b", 1)
    registry.register("a", 2)
    with pytest.raises(DuplicatePlugin):
        registry.register("a", 3)
    assert registry.names() == ["b", "a"]
    assert registry.unregister("b") == 1
    assert registry.unregister("b") is None
    assert registry.get("a") == 2
