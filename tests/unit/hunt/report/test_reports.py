"""One hunt, told to people and to programs."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import pytest

from cleveragents.domain.errors import RequestError
from cleveragents.hunt.candidate import Evidence, EvidenceKind
from cleveragents.hunt.records import finding_from, to_record
from cleveragents.hunt.report.baseline import baseline_text, read_baseline
from cleveragents.hunt.report.hunt_report import HuntReport
from cleveragents.hunt.report.judgement import Severity, severity_of, suggestion_for
from cleveragents.hunt.report.pages import markdown, terminal
from cleveragents.hunt.report.sarif import sarif
from cleveragents.hunt.verdict import Strikes, Verdict
from unit.hunt.findings import LOST, STOCK, other

QUIET = other("Quiet", Verdict.SILENT, "Nothing was found")
ORDER = other("Log", Verdict.BENIGN)
STUCK = other("Pair", Verdict.DEADLOCK, "Each call waits for what the other holds")


def report(*findings, **more):
    return HuntReport(plan_id="hunt-1", findings=findings, modules=3, **more)


def test_a_finding_survives_its_way_through_the_store():
    assert finding_from(json.loads(json.dumps(to_record(LOST)))) == LOST
    bare = replace(QUIET, trial=None, observed=None, strikes=None)
    assert finding_from(json.loads(json.dumps(to_record(bare)))) == bare


def test_bugs_suspicions_and_silence_are_told_apart():
    told = report(LOST, QUIET, ORDER, STUCK, known_ids=frozenset({STUCK.candidate.id}))
    assert told.bugs == (LOST,)
    assert told.known == (STUCK,)
    assert told.suspicions == (ORDER,)
    assert told.silent == (QUIET,)


def test_the_id_of_a_candidate_stays_when_its_lines_move():
    moved = replace(STOCK, line=60, path="lib/shop.py", accesses=(), calls=())
    assert moved.id == STOCK.id
    assert replace(STOCK, state=("_other",)).id != STOCK.id


@pytest.mark.parametrize(
    ("strikes", "kind", "severity"),
    [
        (Strikes.TODAY, EvidenceKind.MODULE_INSTANCE, Severity.HIGH),
        (None, EvidenceKind.HAS_LOCK, Severity.HIGH),
        (Strikes.TODAY, EvidenceKind.STATEFUL, Severity.MEDIUM),
        (Strikes.FREE_THREADED, EvidenceKind.CLAIMS_SAFETY, Severity.MEDIUM),
        (Strikes.FREE_THREADED, EvidenceKind.USES_THREADS, Severity.LOW),
    ],
)
def test_severity_asks_where_it_strikes_and_whether_threads_share_it(strikes, kind, severity):
    evidence = (Evidence(kind=kind, reason="so", path="a.py", line=1),)
    found = replace(LOST, strikes=strikes, candidate=replace(STOCK, evidence=evidence))
    assert severity_of(found) is severity


def test_the_suggested_change_names_the_lock_and_who_lacks_it():
    assert suggestion_for(STOCK) == (
        "Make one lock beside `_items` in `__init__`, and hold it in `add`"
    )
    assert suggestion_for(replace(STOCK, lock="_lock", state=("a", "b"))) == (
        "Hold `self._lock` in `add` around every use of `a` and `b`"
    )
    assert suggestion_for(replace(STOCK, owner=None, accesses=())) == (
        "Make one lock beside `_items` in the module, and hold it in `add` and `total`"
    )


def test_a_page_holds_all_that_somebody_needs_who_never_saw_it():
    told = report(LOST, STUCK, ORDER, skipped={"bad.py": "It does not parse"}, untried=2)
    text = markdown(told, lambda _: "def test_race(): ...")
    for part in (
        "## Data race: shop:Stock._items",
        "## Deadlock: shop:Pair._items",
        "`src/shop.py:6` · severity high · check-then-act and read-modify-write",
        "One of two additions is lost when both find the name missing.",
        "that is disproved",
        "replayed 10 times and came out the same 10 times; 42 interleavings",
        "src/shop.py:15      2 | self._items[name]",
        "at once  subject.add('a')   |   subject.add('a')",
        "seen     returned 1; returned 1; then {'a': 1, 'b': 1}",
        "order 2  returned 2; returned 1; then {'a': 2, 'b': 1}",
        "- The module keeps one as `STOCK` (`src/shop.py:24`)",
        "def test_race(): ...",
        "## Suspicions that are not proven\n\n- `shop:Log._items`",
        "- `bad.py`: It does not parse",
        "2 proven bugs, 1 not proven, 0 silent, 2 not tried yet; 5 candidates in 3 modules.",
    ):
        assert part in text


def test_a_terminal_shows_what_where_and_what_became_of_the_fix():
    mended = frozenset({LOST.candidate.id})
    many = [other(f"Log{n}", Verdict.BENIGN) for n in range(12)]
    told = report(LOST, STUCK, *many, mended_ids=mended, refused={STUCK.candidate.id: "it awaits"})
    text = "\n".join(terminal(told))
    assert "Data race: shop:Stock._items  [high]\n  at       src/shop.py:6\n" in text
    assert "  strikes  it can strike under the interpreter lock, today" in text
    assert "  fix      a fix holds" in text
    assert "  fix      no fix holds: it awaits" in text
    assert "… and 2 more" in text


def test_sarif_is_what_its_schema_asks_for_and_marks_what_is_known():
    told = report(LOST, STUCK, ORDER, known_ids=frozenset({STUCK.candidate.id}))
    found = sarif(told, "1.0")
    jsonschema.validate(found, _SARIF)
    new, known = found["runs"][0]["results"]
    assert (new["level"], new["baselineState"], known["baselineState"]) == (
        "error",
        "new",
        "unchanged",
    )
    assert new["locations"][0]["physicalLocation"]["region"] == {"startLine": 14}
    flows = new["codeFlows"][0]["threadFlows"]
    assert [one["executionOrder"] for one in flows[0]["locations"]] == [1, 3]
    rule = found["runs"][0]["tool"]["driver"]["rules"][new["ruleIndex"]]
    assert rule["id"] == new["ruleId"] == "race/check-then-act"


def test_json_tells_everything():
    told = json.loads(json.dumps(report(LOST, QUIET, ORDER).record()))
    (bug,) = told["bugs"]
    assert bug["candidate"]["owner"] == "Stock"
    assert bug["severity"] == "high"
    assert told["silent"] == ["shop:Quiet._items"]
    assert [one["name"] for one in told["suspicions"]] == ["shop:Log._items"]


def test_a_baseline_accepts_what_it_was_written_for(tmp_path):
    file = tmp_path / "known.json"
    file.write_text(baseline_text([LOST, STUCK]), encoding="utf-8")
    assert read_baseline(file) == {LOST.candidate.id, STUCK.candidate.id}


@pytest.mark.parametrize("text", ["", "[]", '{"known": [1]}', '{"known": [{}]}'])
def test_a_file_that_is_no_baseline_is_refused(tmp_path, text):
    file = tmp_path / "known.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RequestError, match="is not one"):
        read_baseline(file)
    with pytest.raises(RequestError, match="cannot be read"):
        read_baseline(tmp_path / "none.json")


_TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
_LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "message": _TEXT,
        "physicalLocation": {
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {"required": ["uri", "uriBaseId"]},
                "region": {"properties": {"startLine": {"type": "integer", "minimum": 1}}},
            },
        },
    },
}
#: The part of the published schema of SARIF 2.1.0 that a code scanner asks of a result.
_SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "results": {
                        "items": {
                            "required": ["ruleId", "message", "locations"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "baselineState": {
                                    "enum": ["new", "unchanged", "updated", "absent"]
                                },
                                "message": _TEXT,
                                "locations": {"type": "array", "items": _LOCATION},
                            },
                        }
                    }
                },
            }
        },
    },
}
