"""What must be on the disk before what: a power cut in between finds everything or nothing."""

from __future__ import annotations

import pytest

from cleveragents.infrastructure.apply import native
from unit.infrastructure.apply.forest import engine, targets

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(params=["whole", "each"])
def flush(request, monkeypatch):
    """How much is made durable: one call for a file system, or every file and folder."""
    if request.param == "each":
        monkeypatch.setattr(native, "function", lambda _: None)
    return {"whole": "call:flush-whole", "each": "call:flush"}[request.param]


@pytest.fixture
def heard(tree, flush):  # noqa: ARG001  # it says how the disk answers
    points = []
    engine(tree, fault=points.append).apply(
        "p1", targets(tree), on_flipped=lambda: points.append("told")
    )
    return points


def between(points, first, last):
    begin = points.index(first)
    return points[begin : points.index(last, begin)]


def test_staged_contents_are_durable_before_the_journal_is_written(heard, flush):
    assert flush in between(heard, "after-stage", "after-sync")


def test_each_staged_file_is_durable_where_no_call_flushes_all(heard, flush):
    staged = between(heard, "call:create", "after-stage")
    expected = staged.count("call:create") if flush == "call:flush" else 0
    assert staged.count("call:flush") == expected


def test_journal_is_durable_before_it_is_valid(heard):
    calls = between(heard, "after-sync", "after-check")
    assert calls[calls.index("call:create") :].count("call:flush") == 1


def test_journal_is_valid_durably_before_anything_is_replaced(heard):
    assert between(heard, "before-journal", "after-journal")[1:] == ["call:move", "call:flush"]
    replacing = {"call:move-new", "call:exchange", "call:hold", "call:remove-folder"}
    assert replacing.isdisjoint(heard[: heard.index("after-journal")])


def test_flip_is_durable_before_it_is_called_done_and_told(heard, flush):
    calls = between(heard, "after-flip", "told")
    assert calls[-2:] == ["call:move", "call:flush"]  # the journal says that it is flipped
    assert flush in calls[:-2]


def test_end_is_durable_before_anything_that_is_kept_is_removed(heard):
    calls = between(heard, "before-done", "after-done")
    assert calls[-2:] == ["call:move", "call:flush"]
    assert "call:remove" not in calls


def test_going_back_is_decided_durably_before_anything_goes_back(tree, flush):
    points = []

    def fault(point):
        points.append(point)
        if point == "after-flip" and points.count(point) == 1:
            raise OSError(28, "full")

    with pytest.raises(Exception, match="full"):
        engine(tree, fault=fault).apply("p1", targets(tree))
    decided = between(points, "after-flip", "after-mark")
    assert decided[-1] == "call:flush"
    assert "call:move" in decided
    back = between(points, "after-mark", "after-rollback")
    last = len(back) - back[::-1].index("mid-rollback")
    assert flush in back[last:]
