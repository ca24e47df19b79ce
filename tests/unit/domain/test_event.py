from __future__ import annotations

import logging

import pytest

from cleveragents.domain.event import tell
from cleveragents.domain.stop_signal import Stopped


def test_listener_hears_the_fact():
    heard = []
    tell(heard.append, "fact")
    assert heard == ["fact"]


def test_nobody_listening_is_fine():
    tell(None, "fact")


@pytest.mark.parametrize("error", [ValueError, SystemExit, Stopped], ids=lambda it: it.__name__)
def test_listener_that_raises_is_logged_and_hurts_nobody(caplog, error):
    def bad(_: str) -> None:
        raise error("broken")

    with caplog.at_level(logging.ERROR):
        tell(bad, "fact")
    assert "A listener raised on 'fact'" in caplog.text


def test_an_interrupt_by_the_user_is_not_the_listeners():
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tell(interrupted, "fact")
