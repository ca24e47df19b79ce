from __future__ import annotations

import logging

from cleveragents.domain.event import tell


def test_listener_hears_the_fact():
    heard = []
    tell(heard.append, "fact")
    assert heard == ["fact"]


def test_nobody_listening_is_fine():
    tell(None, "fact")


def test_listener_that_raises_is_logged_and_hurts_nobody(caplog):
    def bad(_: str) -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.ERROR):
        tell(bad, "fact")
    assert "A listener raised on 'fact'" in caplog.text
