from __future__ import annotations

import feature_flags


def test_flags_go_on_and_off():
    before = feature_flags.changes()
    assert feature_flags.enable("x")
    assert not feature_flags.enable("x")
    assert feature_flags.is_enabled("x")
    assert feature_flags.disable("x")
    assert not feature_flags.disable("x")
    assert feature_flags.changes() == before + 2
