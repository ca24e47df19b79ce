from __future__ import annotations

from config_reload import Config


def test_reload_replaces_everything():
    config = Config()
    assert config.address() == "localhost:80"
    config.reload("h", "1")
    assert config.address() == "h:1"
    assert config.get("port") == "1"
    assert config.get("user") is None
