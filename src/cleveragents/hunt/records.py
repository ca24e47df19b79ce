"""Candidates and findings as JSON, to pass between processes and into the store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cleveragents.hunt.candidate import Access, Candidate, Evidence, EvidenceKind, Pattern
from cleveragents.hunt.trial import Trial
from cleveragents.hunt.verdict import Finding, Outcome, Step, Strikes, Verdict

__all__ = ["candidate_from", "finding_from", "to_record"]


def to_record(value: Candidate | Finding) -> dict[str, Any]:
    """Return a candidate or a finding as plain JSON values."""
    return asdict(value)


def candidate_from(record: dict[str, Any]) -> Candidate:
    """Return the candidate that a record holds."""
    return Candidate(
        **record
        | {
            "state": tuple(record["state"]),
            "calls": tuple(record["calls"]),
            "patterns": tuple(map(Pattern, record["patterns"])),
            "accesses": tuple(Access(**one) for one in record["accesses"]),
            "evidence": tuple(
                Evidence(**one | {"kind": EvidenceKind(one["kind"])}) for one in record["evidence"]
            ),
        }
    )


def finding_from(record: dict[str, Any]) -> Finding:
    """Return the finding that a record holds."""
    trial, observed, strikes = record["trial"], record["observed"], record["strikes"]
    return Finding(
        **record
        | {
            "candidate": candidate_from(record["candidate"]),
            "verdict": Verdict(record["verdict"]),
            "trial": None if trial is None else _trial(trial),
            "observed": None if observed is None else _outcome(observed),
            "sequential": tuple(map(_outcome, record["sequential"])),
            "steps": tuple(Step(**one) for one in record["steps"]),
            "strikes": None if strikes is None else Strikes(strikes),
        }
    )


def _trial(record: dict[str, Any]) -> Trial:
    tuples = {name: tuple(record[name]) for name in ("imports", "setup", "calls")}
    return Trial(**record | tuples)


def _outcome(record: dict[str, Any]) -> Outcome:
    return Outcome(calls=tuple(record["calls"]), state=record["state"])
