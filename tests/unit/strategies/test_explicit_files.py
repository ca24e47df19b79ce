from __future__ import annotations

import time

import pytest

from cleveragents.domain.context_request import ContextRequest
from cleveragents.domain.stop_signal import Stopped, StopSignal
from cleveragents.strategies.explicit_files import ExplicitFiles
from viewkit import FakeIndex, FakeView


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


def found(root, task="Do it", files=(), *, index=None, overlay=None):
    request = ContextRequest(task, root, files, overlay=overlay)
    return list(ExplicitFiles(index).find(request, StopSignal()))


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


@pytest.mark.parametrize(
    "task",
    ["See src/long.py:50", 'Traceback\n  File "src/long.py", line 50, in f\n    x'],
    ids=["colon", "traceback"],
)
def test_a_line_that_is_mentioned_is_found_with_what_is_around_it(root, task):
    (root / "src/long.py").write_text("\n".join(f"line {n}" for n in range(1, 101)))

    (fragment,) = found(root, task)

    assert (fragment.start_line, fragment.end_line) == (35, 65)
    assert fragment.reason == "line 50 is mentioned in the task"


def test_two_lines_of_a_file_are_two_places(root):
    (root / "src/long.py").write_text("\n".join(f"line {n}" for n in range(1, 101)))

    assert [one.start_line for one in found(root, "src/long.py:1 and src/long.py:100")] == [1, 85]


class TestWithAnIndex:
    """The end of a path is enough: tracebacks come from other machines."""

    @pytest.mark.parametrize("task", ["app.py fails", 'File "/project/src/app.py", line 2, in f'])
    def test_a_file_is_found_by_the_end_of_its_path(self, root, task):
        index = FakeIndex(FakeView({"src/app.py": "", "src/other.py": ""}))

        (fragment,) = found(root, task, index=index)

        assert fragment.path == "src/app.py"

    def test_an_end_that_many_files_share_finds_none(self, root):
        index = FakeIndex(FakeView({f"{name}/app.py": "" for name in "abcd"}))

        assert found(root, "app.py fails", index=index) == []

    def test_a_name_that_no_file_has_finds_none(self, root):
        index = FakeIndex(FakeView({"src/app.py": ""}))

        assert found(root, "nothing.py and ../.. fail", index=index) == []
        assert index.views == 1


class TestOverlay:
    class Written:
        def changed(self):
            return {"src/app.py": b"three\n", "new.py": b"fresh", "README.md": None}

    def test_what_an_actor_wrote_is_found_in_place_of_the_tree(self, root):
        fragments = found(root, "src/app.py, new.py, README.md", overlay=self.Written())

        assert {one.path: one.text for one in fragments} == {
            "src/app.py": "three",
            "new.py": "fresh",
        }


def test_a_log_with_very_many_names_is_cut(root):
    task = " ".join(f"gone{n}.py" for n in range(300)) + " src/app.py"

    assert found(root, task) == []
