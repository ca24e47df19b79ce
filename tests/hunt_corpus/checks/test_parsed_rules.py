from __future__ import annotations

from parsed_rules import Rules


def test_rules_are_parsed():
    rules = Rules("x=1;y=2")
    assert rules.get("x") == "1"
    assert rules.get("z") is None
    assert rules.names() == ("x", "y")
