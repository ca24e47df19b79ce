"""A journal says the same after it was written and read, or it says that it is damaged."""

from __future__ import annotations

import json
import os
import zlib

import pytest

from cleveragents.domain.errors import PlanError
from cleveragents.infrastructure.apply.journal import Folder, Journal, Operation
from cleveragents.infrastructure.apply.target import Signature
from unit.infrastructure.apply.forest import HOME, engine, look

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
        tampered(operations=[["x", 7, "0", None, list(SEEN.plain())]]),
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
        "stage",
    ],
)
def test_damaged_journal_is_kept_and_changes_nothing(tree, data):
    before = look(tree)
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    (folder / "journal").write_bytes(data)
    with pytest.raises(PlanError) as caught:
        engine(tree).recover()
    assert caught.value.code == "CA4106"
    assert (folder / "journal").read_bytes() == data
    assert look(tree) == before
    with pytest.raises(PlanError):
        engine(tree).apply("p2", [])


def test_journal_that_is_a_link_is_not_read(tree, tmp_path):
    (tmp_path / "elsewhere").write_bytes(JOURNAL.encode())
    folder = tree / HOME / "apply" / "p1"
    folder.mkdir(parents=True)
    (folder / "journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PlanError) as caught:
        engine(tree).recover()
    assert caught.value.code == "CA4106"
