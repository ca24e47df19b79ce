"""Findings for the tests of reports, made by hand."""

from __future__ import annotations

from dataclasses import replace

from cleveragents.hunt.candidate import Access, Candidate, Evidence, EvidenceKind, Pattern
from cleveragents.hunt.trial import Trial
from cleveragents.hunt.verdict import Finding, Outcome, Step, Strikes, Verdict

STOCK = Candidate(
    module="shop",
    path="src/shop.py",
    import_root="src",
    owner="Stock",
    state=("_items",),
    patterns=(Pattern.CHECK_THEN_ACT, Pattern.READ_MODIFY_WRITE),
    calls=("add", "total"),
    accesses=(
        Access(call="add", line=14, kind="test", guarded=False),
        Access(call="add", line=15, kind="write", guarded=False),
        Access(call="total", line=20, kind="iterate", guarded=True),
    ),
    evidence=(
        Evidence(
            kind=EvidenceKind.MODULE_INSTANCE,
            reason="The module keeps one as `STOCK`",
            path="src/shop.py",
            line=24,
        ),
    ),
    line=6,
    claims_safety=True,
)

LOST = Finding(
    candidate=STOCK,
    verdict=Verdict.PROVEN,
    reason="One of two additions is lost when both find the name missing",
    trial=Trial(
        imports=("from shop import Stock",),
        subject="Stock()",
        setup=("subject.add('b')",),
        calls=("subject.add('a')", "subject.add('a')"),
    ),
    observed=Outcome(calls=("returned 1", "returned 1"), state="{'a': 1, 'b': 1}"),
    sequential=(
        Outcome(calls=("returned 1", "returned 2"), state="{'a': 2, 'b': 1}"),
        Outcome(calls=("returned 2", "returned 1"), state="{'a': 2, 'b': 1}"),
    ),
    steps=(
        Step(thread=0, path="src/shop.py", line=14, function="add", source="if name not in …:"),
        Step(thread=1, path="src/shop.py", line=15, function="add", source="  self._items[name]"),
        Step(thread=0, path="src/shop.py", line=15, function="add", source="  self._items[name]"),
    ),
    replays=10,
    reproduced=10,
    strikes=Strikes.TODAY,
    strategy="random",
    explored=42,
    trials=3,
)


def other(name, verdict, reason="It differs only in the order of a list"):
    """Return a finding of another class."""
    return replace(
        LOST,
        candidate=replace(STOCK, owner=name, claims_safety=False),
        verdict=verdict,
        reason=reason,
    )
