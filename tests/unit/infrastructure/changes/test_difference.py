from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents.infrastructure.changes.difference import Difference
from cleveragents.infrastructure.git.repository import GitRepository, Write
from unit.infrastructure.changes.worlds import GIT, file, git, look

NAMES = [b"a", b"b", b"dir/c", b"dir/sub/d", b"caf\xe9", b"new\nline", b'quo"te', b"sp ace", b"-x"]
LINES = st.lists(st.sampled_from(["one", "two", "three", "\r", "é", "\x1b[31m"]), max_size=30)
CONTENTS = st.one_of(
    LINES.map(lambda lines: "\n".join(lines).encode()),
    st.binary(max_size=40),
    st.sampled_from([b"", b"\0\1\2", b"same\n" * 20]),
)
FILES = st.dictionaries(
    st.sampled_from([os.fsdecode(name) for name in NAMES]),
    st.tuples(CONTENTS, st.sampled_from([0o100644, 0o100755])),
    max_size=6,
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    return GitRepository(root, root / ".cleveragents")


def commit_of(repository: GitRepository, files: dict[str, tuple[bytes, int]]) -> str:
    empty = repository.commit_tree(repository.git("mktree").decode().strip())
    writes = {path: Write(mode, data) for path, (data, mode) in files.items()}
    return repository.commit(empty, writes) if writes else empty


def plant(folder: Path, files: dict[str, tuple[bytes, int]]) -> None:
    folder.mkdir()
    for path, (data, mode) in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        (folder / path).chmod(mode & 0o777)


def between_folders(top: Path, *options: str) -> bytes:
    """What git says of two folders `a` and `b`, whose names then stand where ours stand."""
    command = ["git", "diff", "--no-index", "--no-prefix", "--no-color", "-M", *options, "a", "b"]
    said = subprocess.run(
        command, cwd=top, env={**os.environ, **GIT}, capture_output=True, check=False
    )
    assert said.returncode in {0, 1}, said.stderr
    return re.sub(rb'(?m)^(rename (?:from|to) "?)[ab]/', rb"\1", said.stdout)


def headed(patch: bytes) -> bytes:
    """Without the letters in the heads: of a new file, git names the same folder twice."""
    head = re.compile(rb"(?m)^diff --git .*$")
    return head.sub(lambda found: re.sub(rb'( "?)[ab]/', rb"\1?/", found[0]), patch)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=FILES, new=FILES)
def test_patch_is_what_git_says_of_two_folders(repository, old, new):
    found = Difference(repository, commit_of(repository, old), commit_of(repository, new))
    with TemporaryDirectory() as folder:
        top = Path(folder)
        plant(top / "a", old)
        plant(top / "b", new)
        whole = between_folders(top, "--binary", "--full-index")
        assert headed(found.patch(binary=True)) == headed(whole)
        assert headed(found.patch()) == headed(between_folders(top))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=FILES, new=FILES)
def test_patch_with_binaries_makes_exactly_the_files(repository, old, new):
    found = Difference(repository, commit_of(repository, old), commit_of(repository, new))
    patch = found.patch(binary=True)
    with TemporaryDirectory() as folder:
        top = Path(folder)
        plant(top / "old", old)
        plant(top / "new", new)
        if patch:
            (top / "patch").write_bytes(patch)
            git(top / "old", "apply", "--whitespace=nowarn", str(top / "patch"))
        seen = [
            {path: (one[0], one[2]) for path, one in look(top / name).items()}
            for name in ("old", "new")
        ]
        assert seen[0] == seen[1]


def test_records_tell_each_file_once(repository):
    lines = b"".join(b"%d\n" % number for number in range(20))
    old = commit_of(
        repository,
        {
            "gone": (b"1\n2\n", 0o100644),
            "changed": (b"1\n2\n", 0o100644),
            "moved": (lines, 0o100644),
            "mode": (b"", 0o100644),
            "binary": (b"\0", 0o100644),
        },
    )
    new = repository.commit(
        old,
        {
            "gone": None,
            "changed": file("1\n3\n4\n"),
            "moved": None,
            os.fsdecode(b"to/caf\xe9"): file(lines + b"more\n"),
            "mode": file("", 0o100755),
            "binary": file(b"\0\1"),
            "made\n": file("x"),
        },
    )
    told = {one["path"]: one for one in Difference(repository, old, new).records()}
    assert {path: (one["change"], one["added"], one["removed"]) for path, one in told.items()} == {
        "binary": ("modify", None, None),
        "changed": ("modify", 2, 1),
        "gone": ("delete", 0, 2),
        "made\n": ("create", 1, 0),
        "mode": ("mode", 0, 0),
        "to/caf\\udce9": ("rename", 1, 0),
    }
    assert told["to/caf\\udce9"]["old_path"] == "moved"
    assert (told["mode"]["mode_before"], told["mode"]["mode_after"]) == ("100644", "100755")
    assert told["made\n"]["before"] is None


def test_nothing_differs_from_itself(repository):
    one = commit_of(repository, {"a": (b"1\n", 0o100644)})
    same = Difference(repository, one, one)
    assert (same.patch(), same.summary(), same.records()) == (b"", b"", [])


def test_color_is_shown_when_asked_for(repository):
    old, new = (commit_of(repository, {"a": (data, 0o100644)}) for data in (b"1\n", b"2\n"))
    found = Difference(repository, old, new)
    assert b"\x1b[" in found.patch(color=True)
    assert b"\x1b[" in found.summary(color=True)
    assert b"\x1b[" not in found.patch() + found.summary()
    assert b" a | 2 +-\n" in found.summary()
