"""What a report says of a strange run."""

from __future__ import annotations

import pytest

pytest.importorskip("frontrun", reason="needs the packages of the hunt")

from cleveragents.hunt.prove.telling import apart

_LONG = f"Box({'a=1, ' * 30}n=[1, 2], m=3{', b=1' * 30})"


def test_short_texts_are_told_whole() -> None:
    assert apart(["Box(n=1)", "Box(n=2)"]) == ["Box(n=1)", "Box(n=2)"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("m=3", "m=4", ["…m=3…", "…m=4…"]),
        ("[1, 2]", "[1]", ["…1, 2…", "…1…"]),
        ("Box", "Bag", ["Box(a=1…", "Bag(a=1…"]),
    ],
)
def test_of_long_texts_the_parts_that_differ_are_told(old: str, new: str, told: list[str]) -> None:
    assert apart([_LONG, _LONG.replace(old, new)]) == told
