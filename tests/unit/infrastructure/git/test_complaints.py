from __future__ import annotations

import os

import pytest

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.git.complaints import left_out


def refusal(said, root):
    with pytest.raises(SandboxError) as caught:
        left_out(said, root)
    return caught.value


def test_files_of_ours_that_may_not_be_read_are_named_with_the_command_that_opens_them(tmp_path):
    (tmp_path / "a b").touch()
    (tmp_path / "folder").mkdir()
    said = (
        "warning: could not open directory 'folder/': Permission denied\n"
        'error: open("a b"): Permission denied\n'
        "error: unable to index file 'a b'\n"
    )
    error = refusal(said, tmp_path)
    assert error.code == "CA5101"
    assert error.message.startswith("'folder' and 1 more may not be read")
    assert error.hint.startswith(f"Run `chmod -R u+rX {tmp_path}/folder '{tmp_path}/a b'`")


def test_file_that_we_cannot_even_look_at_needs_another_owner(tmp_path):
    error = refusal("warning: unable to access 'x/.gitignore': Permission denied", tmp_path)
    assert f"`sudo chown -R {os.geteuid()} {tmp_path}/x/.gitignore`" in error.hint


def test_other_complaints_are_told_as_they_are(tmp_path):
    assert refusal("error: short read", tmp_path).message == "`git add` refused: error: short read"


def test_what_is_no_part_of_a_tree_is_left_out_rightly(tmp_path):
    assert left_out("error: 'n/' does not have a commit checked out", tmp_path)
    assert not left_out("warning: in the working copy of 'a', LF will be replaced", tmp_path)
