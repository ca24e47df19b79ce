"""What a target says about the file that shall be there."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from cleveragents.domain.changeset import FileMode
from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.apply.survey import signature, signatures
from cleveragents.infrastructure.apply.target import Signature, Target

FILE = Signature(0o100640, 3, 1, 42, 7, 8)
LINK = replace(FILE, mode=0o120777)


@pytest.mark.parametrize(
    ("mode", "expected", "permissions"),
    [
        (None, None, 0o666),
        (FileMode.REGULAR, None, 0o666),
        (FileMode.EXECUTABLE, None, 0o777),
        (None, FILE, 0o640),
        (FileMode.REGULAR, FILE, 0o640),
        (FileMode.EXECUTABLE, FILE, 0o750),
        (FileMode.EXECUTABLE, replace(FILE, mode=0o100700), 0o700),
        (FileMode.REGULAR, replace(FILE, mode=0o102755), 0o2644),
        (FileMode.REGULAR, LINK, 0o666),
    ],
)
def test_new_file_takes_over_the_permissions_of_the_old(mode, expected, permissions):
    assert Target("x", b"", mode, expected).permissions == permissions


def test_target_without_a_mode_stays_what_is_there():
    assert Target("x", b"y", None, LINK).is_symlink
    assert not Target("x", b"y", None, FILE).is_symlink
    assert not Target("x", b"y", None, None).is_symlink
    assert not Target("x", b"y", FileMode.REGULAR, LINK).is_symlink
    assert Target("x", b"y", FileMode.SYMLINK, FILE).is_symlink


def test_owner_is_kept_only_by_a_file_of_the_same_kind():
    assert Target("x", b"y", None, FILE).owner == (7, 8)
    assert Target("x", b"y", None, LINK).owner == (7, 8)
    assert Target("x", b"y", FileMode.SYMLINK, FILE).owner is None
    assert Target("x", b"y", None, None).owner is None


def test_kind_of_a_signature_is_what_it_was_taken_from():
    assert (FILE.kind, LINK.kind) == ("regular", "symlink")


def test_content_is_not_shown():
    assert "secret" not in repr(Target("x", b"secret", None, None))


@pytest.mark.parametrize("path", ["../x", "/x", ".git/config", "a//b", "x\0"])
def test_path_that_leads_out_of_the_tree_is_refused_at_birth(path):
    with pytest.raises(PlanError) as caught:
        Target(path, b"", None, None)
    assert caught.value.code == "CA4003"


def test_removing_nothing_is_refused_at_birth():
    with pytest.raises(PlanError) as caught:
        Target("x", None, None, None)
    assert caught.value.code == "CA4003"


class TestSignature:
    def test_signature_is_none_where_no_file_of_the_tree_is(self, tree):
        (tree / "way").symlink_to(tree / "src")
        paths = ("nothing", "no/thing", "src", "keep.txt/x", "way/app.py")
        assert signatures(tree, paths) == (None,) * 5

    def test_signature_changes_with_the_file(self, tree):
        before = signature(tree, "src/app.py")
        assert before == signature(tree, "src/app.py")
        (tree / "src/app.py").chmod(0o600)
        assert signature(tree, "src/app.py") != before

    def test_failure_to_look_is_raised(self, tree):
        with pytest.raises(OSError, match="too long"):
            signature(tree, "x" * 300 + "/y")

    def test_name_that_is_not_utf8_has_a_signature(self, tree):
        assert signature(tree, os.fsdecode(b"caf\xe9/na\xefve.txt")) is not None
