from __future__ import annotations

import time

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies.explicit_files import ExplicitFiles


@pytest.fixture
def root(tmp_path):
    tree = tmp_path / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src/app.py").write_text("one\ntwo\n")
    (tree / "src/empty.py").write_text("")
    (tree / "README.md").write_text("read me")
    (tree / "logo.png").write_bytes(b"\0PNG")
    (tmp_path / "secret.txt").write_text("secret")
    (tree / "link.txt").symlink_to(tmp_path / "secret.txt")
    return tree


def found(root, task="Do it", files=()):
    return list(ExplicitFiles().find(ContextRequest(task, root, files), StopSignal()))


def test_a_named_file_is_found_as_a_whole(root):
    (fragment,) = found(root, files=("src/app.py",))

    assert (fragment.path, fragment.start_line, fragment.end_line) == ("src/app.py", 1, 2)
    assert (fragment.text, fragment.source) == ("one\ntwo", "explicit-files")
    assert fragment.reason == "named in the request"


def test_an_empty_file_is_one_empty_line(root):
    (fragment,) = found(root, files=("src/empty.py",))

    assert (fragment.end_line, fragment.text) == (1, "")


@pytest.mark.parametrize(
    "task",
    [
        "Fix src/app.py",
        "Fix `src/app.py`.",
        "See src/app.py:12, please",
        "(./src/app.py)",
        'Open "src/app.py"; then stop',
    ],
)
def test_a_file_mentioned_in_the_task_is_found(root, task):
    (fragment,) = found(root, task)

    assert (fragment.path, fragment.reason) == ("src/app.py", "mentioned in the task")


def test_a_file_named_and_mentioned_is_found_once_as_named(root):
    named, mentioned = found(root, "Fix README.md and src/app.py", ("src/app.py",))

    assert (named.path, mentioned.path) == ("src/app.py", "README.md")
    assert named.score > mentioned.score


@pytest.mark.parametrize(
    "task",
    ["../secret.txt", "link.txt", "src/", "logo.png", "gone.py", "e.g. this/that", "..."],
)
def test_what_is_outside_missing_or_no_text_is_not_found(root, task):
    assert found(root, task) == []


@pytest.mark.parametrize("task", ["a" * 20_000, "src/../" * 100_000], ids=["word", "path"])
def test_a_long_run_of_letters_is_searched_in_one_go(root, task):
    """The regular expressions of Python hold up every thread while they search."""
    started_s = time.monotonic()

    assert found(root, task) == []

    assert time.monotonic() - started_s < 1


def test_an_absolute_path_outside_is_not_found(root):
    assert found(root, f"Print {root.parent}/secret.txt") == []


def test_a_stopped_search_ends(root):
    stop = StopSignal()
    stop.stop()

    with pytest.raises(Stopped):
        list(ExplicitFiles().find(ContextRequest("src/app.py", root), stop))
