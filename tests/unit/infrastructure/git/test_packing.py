from __future__ import annotations

import random

import pytest

from cleveragents.infrastructure.git.packing import packing_for

NOISE = random.Random(1).randbytes(1_000_000)


def disk_size(repository, oid):
    return (repository.folder / "objects" / oid[:2] / oid[2:]).stat().st_size


def test_large_content_that_cannot_shrink_is_kept_as_it_is(repository):
    oid = repository.keep(NOISE)
    with (repository.folder / "objects" / oid[:2] / oid[2:]).open("rb") as file:
        assert file.read(2) == b"\x78\x01"
        # A block that is stored, not packed: the first bits of the stream say so.
        assert file.read(1)[0] & 0b110 == 0
    assert [*repository.read([oid])] == [NOISE]


def test_large_content_that_shrinks_is_packed(repository):
    data = b"the same line again\n" * 100_000
    assert disk_size(repository, repository.keep(data)) < len(data) // 10


@pytest.mark.parametrize("data", [b"", b"x", NOISE[:999_999]], ids=["empty", "byte", "small"])
def test_small_content_is_not_even_looked_at(data):
    assert packing_for(data) == {}


def test_content_that_shrinks_only_in_the_middle_is_packed():
    mixed = NOISE[:400_000] + bytes(600_000) + NOISE[:400_000]
    assert packing_for(mixed) == {}
