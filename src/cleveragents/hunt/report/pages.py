"""Findings as text: a page of Markdown each, ready to be filed, and short lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cleveragents.domain.wording import counted
from cleveragents.hunt.report.judgement import listed, severity_of, suggestion_for
from cleveragents.hunt.verdict import Strikes, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cleveragents.hunt.report.hunt_report import HuntReport
    from cleveragents.hunt.verdict import Finding, Outcome, Step

__all__ = ["interleaving", "markdown", "page", "terminal"]

_OUTCOMES_SHOWN: Final = 6
_SUSPICIONS_SHOWN: Final = 10
_WHERE: Final = {
    Strikes.TODAY: "It can strike under the interpreter lock, today",
    Strikes.FREE_THREADED: "It strikes on free-threaded builds; with the interpreter lock no"
    " switch falls into the window",
    None: "Whether it strikes under the interpreter lock is not known",
}


def markdown(report: HuntReport, test_of: Callable[[Finding], str]) -> str:
    """Return the whole report; `test_of` writes the regression test of a finding."""
    parts = [_head(report), *(page(report, one, test_of(one)) for one in report.bugs)]
    for title, findings in (
        ("Known, by the baseline", report.known),
        ("Suspicions that are not proven", report.suspicions),
    ):
        if findings:
            lines = [f"- `{one.candidate.name}` ({_at(one)}): {one.reason}" for one in findings]
            parts.append("\n".join([f"## {title}", "", *lines]))
    if report.skipped:
        lines = [f"- `{path}`: {why}" for path, why in sorted(report.skipped.items())]
        parts.append("\n".join(["## Not read", "", *lines]))
    return "\n\n".join(parts) + "\n"


def page(report: HuntReport, finding: Finding, test: str) -> str:
    """Return one finding as a page that can be filed as it is."""
    candidate = finding.candidate
    claim = " Its docstring claims that threads may share it: that is disproved."
    evidence = [f"- {one.reason} (`{one.path}:{one.line}`)" for one in candidate.evidence]
    fix = report.fix_of(finding)
    sections = [
        f"## {_title(finding)}",
        " · ".join(
            [
                f"`{_at(finding)}`",
                f"severity {severity_of(finding)}",
                listed(candidate.patterns),
                f"id `{candidate.id}`",
            ]
        ),
        f"{finding.reason}.{claim if candidate.claims_safety else ''}",
        f"{_WHERE[finding.strikes]}. {_seen(finding)}.",
        "### The interleaving",
        _fenced("\n".join(interleaving(finding.steps)), "text"),
        "### What came out, and what whole calls give",
        _fenced("\n".join(_outcomes(finding)), "text"),
        "### Why the object is shared",
        "\n".join(evidence) or "- nothing in the source says so",
        "### Suggested change",
        f"{suggestion_for(candidate)}." + (f" Here {fix}." if fix else ""),
        "### Regression test",
        _fenced(test, "python"),
    ]
    return "\n\n".join(sections)


def terminal(report: HuntReport) -> Iterator[str]:
    """Yield the lines that a person reads after a hunt."""
    for finding in report.bugs:
        yield f"{_title(finding)}  [{severity_of(finding)}]"
        yield f"  at       {_at(finding)}"
        yield f"  what     {finding.reason}"
        yield f"  strikes  {_WHERE[finding.strikes][0].lower()}{_WHERE[finding.strikes][1:]}"
        yield f"  seen     {finding.reproduced} of {finding.replays} replays"
        if finding.candidate.claims_safety:
            yield "  claim    its docstring says that threads may share it: disproved"
        yield from (f"  {line}" for line in interleaving(finding.steps))
        yield f"  change   {suggestion_for(finding.candidate)}"
        if report.fix_of(finding):
            yield f"  fix      {report.fix_of(finding)}"
        yield ""
    if report.suspicions:
        yield "not proven:"
        for one in report.suspicions[:_SUSPICIONS_SHOWN]:
            yield f"  {one.candidate.name} ({_at(one)}): {one.reason}"
        if len(report.suspicions) > _SUSPICIONS_SHOWN:
            yield f"  … and {len(report.suspicions) - _SUSPICIONS_SHOWN} more"
        yield ""
    yield summary(report)


def summary(report: HuntReport) -> str:
    """Return the hunt in one line."""
    counts = [
        counted(len(report.bugs), "proven bug"),
        *([f"{len(report.known)} known by the baseline"] if report.known else []),
        f"{len(report.suspicions)} not proven",
        f"{len(report.silent)} silent",
        *([f"{report.untried} not tried yet"] if report.untried else []),
    ]
    tried = len(report.findings) + report.untried
    of = f"{counted(tried, 'candidate')} in {counted(report.modules, 'module')}"
    return f"{', '.join(counts)}; {of}"


def interleaving(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of an interleaving: each thread in a column of its own."""
    places = [f"{step.path}:{step.line}" for step in steps]
    width = max(map(len, places), default=0)
    for step, place in zip(steps, places, strict=True):
        indent = "    " * step.thread
        yield f"{place.ljust(width)}  {indent}{step.thread + 1} | {step.source.strip()}"


def _seen(finding: Finding) -> str:
    return (
        f"The interleaving was replayed {finding.replays} times and came out the same"
        f" {finding.reproduced} times; {finding.explored} interleavings were explored"
        f" ({finding.strategy})"
    )


def _outcomes(finding: Finding) -> Iterator[str]:
    trial = finding.trial
    if trial is not None:
        yield from (f"setup    {line}" for line in (f"subject = {trial.subject}", *trial.setup))
        yield f"at once  {'   |   '.join(trial.calls)}"
    if finding.observed is not None:
        yield f"seen     {_told(finding.observed)}"
    for number, one in enumerate(finding.sequential[:_OUTCOMES_SHOWN], 1):
        yield f"order {number}  {_told(one)}"


def _told(outcome: Outcome) -> str:
    return f"{'; '.join(outcome.calls)}; then {outcome.state}"


def _title(finding: Finding) -> str:
    kind = "Deadlock" if finding.verdict is Verdict.DEADLOCK else "Data race"
    return f"{kind}: {finding.candidate.name}"


def _at(finding: Finding) -> str:
    return f"{finding.candidate.path}:{finding.candidate.line}"


def _head(report: HuntReport) -> str:
    return f"# Data races\n\n{summary(report)}."


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
