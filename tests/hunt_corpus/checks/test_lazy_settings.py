from __future__ import annotations

from lazy_settings import SettingsHolder


def test_settings_are_built_once():
    holder = SettingsHolder()
    assert holder.settings is holder.settings
    assert holder.get("mode") == "fast"
    holder.set("mode", "slow")
    assert holder.get("mode") == "slow"
