from __future__ import annotations

import os
import time

import pytest

from cleveragents.application.source_tree import walk
from cleveragents.domain.stop_signal import StopSignal
from cleveragents.infrastructure.code_index.freshness import EMPTY, Mark, is_settled, read, survey
from indexkit import write

SECOND = 1_000_000_000


def looked(root, before=EMPTY, *, later_s=60, files_max=1000):
    return survey(
        str(root), before, time.time_ns() + later_s * SECOND, StopSignal(), files_max=files_max
    )


def as_walked(root):
    return sorted(walk(root, StopSignal()))


@pytest.mark.parametrize(
    ("mtime_ns", "ctime_ns", "settled"),
    [
        (5 * SECOND + 1, 5 * SECOND + 1, True),
        (10 * SECOND - 1, 10 * SECOND - 1, False),
        (5 * SECOND + 1, 10 * SECOND - 1, False),
        (99 * SECOND, 5 * SECOND + 1, True),
        (8 * SECOND, 8 * SECOND, False),
        (7 * SECOND, 7 * SECOND, True),
    ],
    ids=["old", "this-tick", "touched-back", "set-ahead", "coarse-clock", "coarse-and-old"],
)
def test_mark_is_settled_when_the_next_change_must_give_another(mtime_ns, ctime_ns, settled):
    assert is_settled(Mark(1, mtime_ns, ctime_ns, 1), 10 * SECOND) is settled


def test_survey_finds_what_a_walk_finds_and_keeps_up(tmp_path):
    (tmp_path / ".git").mkdir()
    write(
        tmp_path,
        {
            ".git/HEAD": "x",
            ".gitignore": "*.log\nbuild/\n",
            "a.py": "",
            "b/c.py": "",
            "b/d.log": "",
            "build/x": "",
        },
    )
    (tmp_path / "link.py").symlink_to("a.py")
    before = looked(tmp_path)
    assert sorted(before.files) == as_walked(tmp_path) == [".gitignore", "a.py", "b/c.py"]
    write(tmp_path, {"b/new.py": "", "e/.gitignore": "f", "e/f": "", "e/g": ""})
    after = looked(tmp_path, before)
    assert sorted(after.files) == as_walked(tmp_path)
    write(tmp_path, {".gitignore": "c.py\n"})
    last = looked(tmp_path, after)
    assert sorted(last.files) == as_walked(tmp_path)
    assert "b/c.py" not in last.files
    assert "b/d.log" in last.files
    assert sorted(looked(tmp_path / "b", EMPTY).files) == as_walked(tmp_path / "b")


def test_unchanged_folders_are_not_listed_again(tmp_path, monkeypatch):
    write(tmp_path, {"a/b.py": "", "c.py": ""})
    before = looked(tmp_path)
    monkeypatch.setattr(os, "scandir", None)
    assert looked(tmp_path, before) == before


def test_folder_that_changed_in_this_tick_is_listed_again(tmp_path):
    write(tmp_path, {"a.py": ""})
    before = looked(tmp_path, later_s=0)
    assert not before.folders[""].settled
    assert looked(tmp_path, before).folders[""].settled


def test_files_and_folders_that_vanish_are_left_out(tmp_path, monkeypatch):
    write(tmp_path, {"a/b.py": "", "c.py": "", "d.py": ""})
    lstat = os.lstat

    def vanishing(path, **options):
        if str(path).endswith(("c.py", "a/")):
            raise FileNotFoundError(path)
        return lstat(path, **options)

    monkeypatch.setattr("cleveragents.infrastructure.code_index.freshness.os.lstat", vanishing)
    assert list(looked(tmp_path).files) == ["d.py"]


def test_survey_stops_at_its_limit(tmp_path):
    write(tmp_path, {f"{letter}/x.py": "" for letter in "abcdef"})
    found = looked(tmp_path, files_max=3)
    assert found.cut
    assert list(found.files) == ["a/x.py", "b/x.py", "c/x.py"]


def test_read_gives_content_and_mark_together(tmp_path):
    file = tmp_path / "a.py"
    file.write_bytes(b"x")
    content, mark, settled = read(str(file), time.time_ns() + 60 * SECOND)
    assert (content, mark.size, settled) == (b"x", 1, True)
    assert read(str(file), time.time_ns())[2] is False
    assert read(str(tmp_path), 0) is read(str(tmp_path / "none"), 0) is None


def test_read_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert read(str(tmp_path / "pipe"), 0) is None


def test_file_that_grows_while_it_is_read_is_not_settled(tmp_path, monkeypatch):
    file = tmp_path / "a.py"
    file.write_bytes(b"x")
    fstat, calls = os.fstat, []

    def growing(descriptor):
        calls.append(descriptor)
        if len(calls) % 2 == 0:
            file.write_bytes(b"x" * len(calls) * 3)
        return fstat(descriptor)

    monkeypatch.setattr("cleveragents.infrastructure.code_index.freshness.os.fstat", growing)
    assert read(str(file), time.time_ns() + 60 * SECOND)[2] is False
