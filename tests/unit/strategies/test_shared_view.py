from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies.shared_view import SharedView
from cleveragents.testing import run_together
from viewkit import FakeIndex, FakeView

REQUEST = ContextRequest("task", Path("tree"))


class Meeting:
    """An index whose view is made only when somebody else has come to wait for it."""

    def __init__(self, raises=None):
        self.views = 0
        self.raises = raises
        self.on_view = lambda: None

    def view(self, _request, _stop):
        self.views += 1
        if self.views == 1:
            self.on_view()
            if self.raises is not None:
                raise self.raises
        return FakeView({})


def test_a_request_is_looked_at_once():
    index = FakeIndex(FakeView({}))
    shared = SharedView(index)

    assert shared.view(REQUEST, StopSignal()) is shared.view(REQUEST, StopSignal())
    assert index.views == 1


def test_an_equal_request_is_another_one():
    """A tree may change between two builds for the same task."""
    index = FakeIndex(FakeView({}))
    shared = SharedView(index)

    shared.view(REQUEST, StopSignal())
    shared.view(replace(REQUEST), StopSignal())

    assert index.views == 2


def test_old_requests_are_forgotten():
    index = FakeIndex(FakeView({}))
    shared = SharedView(index)
    requests = [REQUEST, *(replace(REQUEST) for _ in range(16))]

    for request in (*requests, REQUEST):
        shared.view(request, StopSignal())

    assert index.views == len(requests) + 1


def test_threads_that_come_at_once_get_one_view():
    index = FakeIndex(FakeView({}))
    shared = SharedView(index)

    views = run_together([lambda: shared.view(REQUEST, StopSignal())] * 8)

    assert len({id(view) for view in views}) == 1
    assert index.views == 1


def test_a_view_that_failed_is_made_again_by_the_next():
    index = Meeting(raises=OSError("no"))
    shared = SharedView(index)

    with pytest.raises(OSError, match="no"):
        shared.view(REQUEST, StopSignal())

    assert shared.view(REQUEST, StopSignal()) is not None
    assert index.views == 2


def test_who_waits_can_be_stopped():
    """The one that waits comes while the view is being made, here in the same thread."""
    index = Meeting()
    shared = SharedView(index)
    stopped = StopSignal()
    stopped.stop()
    ended = []

    def wait():
        with pytest.raises(Stopped):
            shared.view(REQUEST, stopped)
        ended.append(True)

    index.on_view = wait
    shared.view(REQUEST, StopSignal())

    assert ended == [True]
