"""A journal says the same after it was written and read, or it says that it is damaged."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path

import pytest

from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.apply.journal import Folder, Journal, Operation
from cleveragents.infrastructure.apply.target import Signature
from unit.infrastructure.apply.forest import HOME, engine, look, targets

SEEN = Signature(0o100644, 3, 1_700_000_000_123_456_789, 42, 0, 0)
JOURNAL = Journal(
    "p1",
    bytes(range(256)),
    (
        Operation(os.fsdecode(b"na\xefve"), 0, "0", SEEN, None),
        Operation("new/x", 1, "1", None, SEEN),
    ),
    ("new",),
    (Folder("gone", 0o750, 1, 2),),
    (3, 4),
)


def sealed(body):
    return b"cleveragents apply 1 %08x\n%s" % (zlib.crc32(body), body)


def tampered(**changes):
    body = json.loads(JOURNAL.encode().partition(b"\n")[2])
    return sealed(json.dumps(body | changes).encode())


def test_journal_survives_writing_and_reading():
    assert Journal.decode(JOURNAL.encode()) == JOURNAL


@pytest.mark.parametrize(
    "data",
    [
        b"",
        JOURNAL.encode()[:-1],
        JOURNAL.encode().replace(b"apply 1", b"apply 2"),
        sealed(b"{}"),
        sealed(b"[]"),
        tampered(made=["../outside"]),
        tampered(removed=[["/etc", 0, 0, 0]]),
        tampered(operations=[[".git/hooks/x", 0, "0", None, list(SEEN.plain())]]),
        tampered(operations=[["x", 0, "../../x", None, list(SEEN.plain())]]),
        tampered(operations=[["x", 0, "0", None, None]]),
        tampered(note=7),
        tampered(apply="p2"),
        sealed(b"[" * 100_000),
        JOURNAL.encode(),
    ],
    ids=[
        "empty",
        "cut",
        "newer",
        "hollow",
        "no-record",
        "leads-out",
        "absolute",
        "into-git",
        "slot",
        "removes-anything",
        "note",
        "another-apply",
        "deep",
        "of-a-stranger",
    ],
)
def test_damaged_journal_is_kept_and_changes_nothing(tree, data):
    before = look(tree)
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    (folder / "journal").write_bytes(data)
    (found,) = engine(tree, on_recovered=lambda _: 1 / 0).recover()
    assert (found.apply_id, found.outcome, found.note) == ("p1", "left", b"")
    assert found.reason
    assert (folder / "journal").read_bytes() == data
    assert look(tree) == before
    with pytest.raises(PlanError) as caught:
        engine(tree).apply("p2", [])
    assert (caught.value.code, caught.value.facts["reason"]) == ("CA4106", found.reason)
    assert "move it away" in caught.value.hint


def test_journal_that_is_a_link_is_not_read(tree, tmp_path):
    (tmp_path / "elsewhere").write_bytes(JOURNAL.encode())
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    (folder / "journal").symlink_to(tmp_path / "elsewhere")
    assert [one.outcome for one in engine(tree).recover()] == ["left"]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_journal_that_is_no_file_is_not_read(tree, make):
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    make(folder / "journal")
    assert [one.outcome for one in engine(tree).recover()] == ["left"]


@pytest.mark.parametrize("stage", [-1, 7])
def test_journal_of_ours_that_names_an_unknown_folder_is_not_followed(tree, stage):
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    (folder / "seal").touch()
    seen = (folder / "seal").stat()
    fields = [["keep.txt", stage, "0", list(SEEN.plain()), None]]
    data = tampered(operations=fields, made=[], removed=[], seal=[seen.st_ino, seen.st_ctime_ns])
    (folder / "journal").write_bytes(data)
    (found,) = engine(tree).recover()
    assert (found.outcome, found.reason) == ("left", "it names a folder that is not known")


def test_journal_in_a_copy_of_a_tree_is_not_followed(tree, tmp_path):
    """Its files have other numbers there, and so could not be told from the user's."""

    def die(point):
        if point == "mid-flip":
            raise KeyboardInterrupt

    def dies_again(point):
        die(point)
        if point == "after-mark":
            raise SystemExit

    with pytest.raises(SystemExit):
        engine(tree, fault=dies_again).apply("p1", targets(tree))
    shutil.copytree(tree, tmp_path / "copy", symlinks=True)
    before = look(tmp_path / "copy")
    (found,) = engine(tmp_path / "copy").recover()
    assert (found.outcome, look(tmp_path / "copy")) == ("left", before)
    assert "it was not made here" in found.reason
    assert [one.outcome for one in engine(tree).recover()] == ["old"]


def test_file_in_the_place_of_an_apply_is_left(tree):
    (tree / HOME / "apply").mkdir(parents=True)
    (tree / HOME / "apply" / "p1").write_bytes(b"")
    assert [one.outcome for one in engine(tree).recover()] == ["left"]


def test_file_in_the_place_of_all_applies_is_nothing_to_recover(tree):
    (tree / HOME).mkdir()
    (tree / HOME / "apply").write_bytes(b"")
    assert engine(tree).recover() == ()
