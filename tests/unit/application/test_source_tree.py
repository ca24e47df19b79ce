from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from cleveragents.application.source_tree import FILE_BYTES_MAX, locate, read_text, walk
from cleveragents.domain.stop_signal import Stopped, StopSignal

if TYPE_CHECKING:
    from pathlib import Path

GO_ON = StopSignal()


def _write(file: Path, text: str = "text\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


class TestWalk:
    def test_files_come_sorted_and_without_git(self, tmp_path):
        for name in ("b.py", "a/z.py", "a/b/c.py", ".git/config", "sub/.git"):
            _write(tmp_path / name)

        assert list(walk(tmp_path, GO_ON)) == ["a/b/c.py", "a/z.py", "b.py"]

    def test_ignored_files_and_folders_are_hidden_unless_negated(self, tmp_path):
        for name in ("a.log", "keep.log", "build/x.py", "src/build.py"):
            _write(tmp_path / name)
        _write(tmp_path / ".gitignore", "*.log\n!keep.log\nbuild/\n")

        assert list(walk(tmp_path, GO_ON)) == [".gitignore", "keep.log", "src/build.py"]

    def test_a_nested_gitignore_has_the_last_word_in_its_folder(self, tmp_path):
        for name in ("a.log", "sub/a.log", "sub/keep/a.log", "other/a.log"):
            _write(tmp_path / name)
        _write(tmp_path / ".gitignore", "*.log\n.gitignore\n")
        _write(tmp_path / "sub/.gitignore", "!/a.log\n!keep/\n")

        assert list(walk(tmp_path, GO_ON)) == ["sub/a.log"]

    def test_nothing_brings_back_what_lies_in_an_ignored_folder(self, tmp_path):
        _write(tmp_path / "out/keep.py")
        _write(tmp_path / ".gitignore", ".gitignore\nout/\n!out/keep.py\n")

        assert list(walk(tmp_path, GO_ON)) == []

    @pytest.mark.parametrize("content", [b"a\0*", b"*\xff"], ids=["nul", "bytes"])
    def test_a_gitignore_that_nobody_can_read_hides_nothing(self, tmp_path, content):
        _write(tmp_path / "a.py")
        (tmp_path / ".gitignore").write_bytes(content)

        assert "a.py" in list(walk(tmp_path, GO_ON))

    def test_a_line_that_is_no_pattern_leaves_the_others_alone(self, tmp_path):
        for name in ("a.py", "b.py"):
            _write(tmp_path / name)
        _write(tmp_path / ".gitignore", "# ours\n\n!\n[b-a]\nc\\\na.py\n.gitignore\n")

        assert list(walk(tmp_path, GO_ON)) == ["b.py"]

    def test_links_are_not_followed(self, tmp_path):
        _write(tmp_path / "outside/secret.py")
        _write(tmp_path / "root/a.py")
        (tmp_path / "root/link").symlink_to(tmp_path / "outside")
        (tmp_path / "root/link.py").symlink_to(tmp_path / "outside/secret.py")
        (tmp_path / "root/circle").symlink_to(tmp_path / "root")

        assert list(walk(tmp_path / "root", GO_ON)) == ["a.py"]

    def test_names_that_no_fragment_can_carry_are_left_out(self, tmp_path):
        _write(tmp_path / "a\nb.py")
        _write(tmp_path / "a.py")

        assert list(walk(tmp_path, GO_ON)) == ["a.py"]

    @pytest.mark.parametrize("pattern", ["*" * 40 + "b", "*a" * 40 + "b", "*[ab]?" * 30 + "b"])
    def test_a_pattern_of_many_stars_is_tried_once_not_in_every_way(self, tmp_path, pattern):
        """The regular expressions of Python hold up every thread while they search."""
        _write(tmp_path / ("a" * 200))
        _write(tmp_path / ("a" * 200 + "b"))
        _write(tmp_path / ".gitignore", f"{pattern}\n.gitignore\n")
        started_s = time.monotonic()

        assert list(walk(tmp_path, GO_ON)) == ["a" * 200]

        assert time.monotonic() - started_s < 1

    def test_a_root_that_is_not_there_has_no_files(self, tmp_path):
        assert list(walk(tmp_path / "gone", GO_ON)) == []

    def test_a_stopped_walk_ends(self, tmp_path):
        stop = StopSignal()
        stop.stop("enough")

        with pytest.raises(Stopped, match="enough"):
            list(walk(tmp_path, stop))


class TestAboveTheRoot:
    @pytest.fixture
    def top(self, tmp_path):
        """The top of a repository, as git lays it out."""
        _write(tmp_path / "top/.git/HEAD", "ref: refs/heads/main\n")
        _write(tmp_path / ".gitignore", "*\n")  # beyond the repository, so it says nothing
        return tmp_path / "top"

    def test_the_gitignores_of_the_folders_above_hold_up_to_the_top(self, top):
        for name in ("a.secret", "private/b.py", "deep/c.log", "deep/keep.log", "deep/d.py"):
            _write(top / "sub/nest" / name)
        _write(top / ".gitignore", "*.secret\n/sub/nest/private/\n*.log\n")
        _write(top / "sub/.gitignore", "!keep.log\n/nest/deep/d.py\n")

        assert list(walk(top / "sub/nest", GO_ON)) == ["deep/keep.log"]

    def test_what_the_repository_excludes_has_the_first_word_and_gitignores_the_last(self, top):
        for name in ("sub/a.log", "sub/keep.log", "sub/b.py"):
            _write(top / name)
        _write(top / ".git/info/exclude", "*.log\n/sub/b.py\n")
        _write(top / ".gitignore", "!keep.log\n")

        assert list(walk(top, GO_ON)) == [".gitignore", "sub/keep.log"]
        assert list(walk(top / "sub", GO_ON)) == ["keep.log"]

    def test_a_work_tree_elsewhere_has_the_excludes_of_its_repository(self, top, tmp_path):
        _write(top / ".git/info/exclude", "*.log\n")
        _write(top / ".git/worktrees/w/HEAD")
        _write(top / ".git/worktrees/w/commondir", "../..\n")
        tree = tmp_path / "tree"
        _write(tree / ".git", f"gitdir: {top}/.git/worktrees/w\n")
        _write(tree / "a.log")
        _write(tree / "a.py")

        assert list(walk(tree, GO_ON)) == ["a.py"]

    def test_excludes_may_be_a_link(self, top, tmp_path):
        _write(tmp_path / "mine", "*.log\n")
        (top / ".git/info").mkdir()
        (top / ".git/info/exclude").symlink_to(tmp_path / "mine")
        _write(top / "a.log")

        assert list(walk(top, GO_ON)) == []

    def test_a_root_that_is_a_link_belongs_to_where_it_leads(self, top, tmp_path):
        _write(top / "sub/a.log")
        _write(top / "sub/a.py")
        _write(top / ".gitignore", "*.log\n")
        (tmp_path / "link").symlink_to(top / "sub")

        assert list(walk(tmp_path / "link", GO_ON)) == ["a.py"]

    def test_an_ignored_folder_shows_its_files_when_it_is_the_root(self, top):
        """Who names it wants it; what lies in it is judged as anywhere."""
        _write(top / "build/a.py")
        _write(top / "build/a.log")
        _write(top / ".gitignore", "build/\n*.log\n")

        assert list(walk(top / "build", GO_ON)) == ["a.py"]

    def test_without_a_repository_only_the_root_counts(self, tmp_path):
        _write(tmp_path / ".gitignore", "*\n")
        _write(tmp_path / "root/a.py")
        (tmp_path / ".git").mkdir()  # empty: git would not take it for a repository

        assert list(walk(tmp_path / "root", GO_ON)) == ["a.py"]


NAMES = ["a", "b", "keep", "foo", "foobar", "x.log", "y.py", "z.txt"]
PATTERNS = [
    "*.log",
    "!*.log",
    "keep/",
    "!keep/",
    "keep",
    "!keep",
    "/a",
    "!/a",
    "a/b",
    "!a/b",
    "a/**",
    "!a/**",
    "**/b",
    "!**/b",
    "*",
    "!*",
    "*/",
    "!*/",
    "!*.py",
    "foo*",
    "!foobar",
    "/*",
    "!/keep",
    "a/*",
    "!a/keep",
    "**/",
    "#c",
    "b/",
    "!b/",
    "/a/",
    "\\!x",
    "[ab]",
    "foo/**/x.log",
    "**",
    "keep/*.py",
    "*o*o*",
    "!*o*b*r",
    "*?*.*t",
    "**o***r",
    "*[!x]*y*/",
]


def _grow(folder: Path, chance: random.Random, depth: int = 0) -> None:
    for name in NAMES:
        if chance.random() < 0.6:
            if "." not in name and depth < 3 and chance.random() < 0.6:
                (folder / name).mkdir()
                _grow(folder / name, chance, depth + 1)
            else:
                _write(folder / name)
    if depth == 0 or chance.random() < 0.35:
        _write(folder / ".gitignore", "\n".join(chance.choices(PATTERNS, k=chance.randint(1, 5))))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git to compare with")
def test_random_trees_show_the_files_that_git_shows(tmp_path):
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for seed in range(16):
        root = tmp_path / str(seed)
        root.mkdir()
        _grow(root, random.Random(seed))
        subprocess.run(["git", "init", "-q"], cwd=root, check=True, env=quiet)
        _write(root / ".git/info/exclude", random.Random(seed).choice(PATTERNS))
        git = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
        shown = subprocess.run(git, cwd=root, check=True, env=quiet, capture_output=True, text=True)
        expected = sorted(filter(None, shown.stdout.split("\0")))

        assert sorted(walk(root, GO_ON)) == expected, seed
        for folder in {path.rsplit("/", 1)[0] for path in expected if "/" in path}:
            below = [path[len(folder) + 1 :] for path in expected if path.startswith(f"{folder}/")]
            assert sorted(walk(root / folder, GO_ON)) == below, (seed, folder)


class TestLocate:
    def test_a_file_is_known_by_its_one_name(self, tmp_path):
        _write(tmp_path / "src/a.py")
        (tmp_path / "alias.py").symlink_to(tmp_path / "src/a.py")

        assert locate(tmp_path, "src/a.py") == "src/a.py"
        assert locate(tmp_path, "src/../src/a.py") == "src/a.py"
        assert locate(tmp_path, "alias.py") == "src/a.py"
        assert locate(tmp_path, str(tmp_path / "src/a.py")) == "src/a.py"

    def test_nothing_outside_the_root_is_found(self, tmp_path):
        _write(tmp_path / "secret")
        _write(tmp_path / "root/.git/config")
        (tmp_path / "root/link").symlink_to(tmp_path / "secret")
        (tmp_path / "root/circle").symlink_to(tmp_path / "root/circle")
        names = ("../secret", str(tmp_path / "secret"), "link", "circle", "gone", ".", "a\0b")

        assert [locate(tmp_path / "root", name) for name in (*names, ".git/config")] == [None] * 8


class TestReadText:
    def test_newlines_are_plain_and_the_last_is_left_out(self, tmp_path):
        (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")

        assert read_text(tmp_path / "a") == "one\ntwo\nthree"

    def test_what_is_no_small_text_is_none(self, tmp_path):
        (tmp_path / "binary").write_bytes(b"a\0b")
        (tmp_path / "latin").write_bytes(b"gr\xf6sse")
        (tmp_path / "large").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
        (tmp_path / "link").symlink_to(tmp_path / "latin")
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "pipe")
        names = ("binary", "latin", "large", "link", "folder", "pipe", "gone", "a\0b")

        assert [read_text(tmp_path / name) for name in names] == [None] * 8

    def test_the_largest_allowed_file_is_read(self, tmp_path):
        (tmp_path / "a").write_bytes(b"x" * FILE_BYTES_MAX)

        assert len(read_text(tmp_path / "a")) == FILE_BYTES_MAX
