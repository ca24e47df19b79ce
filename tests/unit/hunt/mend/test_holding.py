"""A fix is kept when the mended code holds, and taken back when it does not."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from textwrap import dedent

import pytest

from cleveragents.hunt.find import find
from cleveragents.hunt.mend import __main__ as program
from cleveragents.hunt.mend import holding
from cleveragents.hunt.mend.anatomy import CannotMend
from cleveragents.hunt.mend.holding import mend_files
from cleveragents.hunt.records import to_record
from cleveragents.hunt.verdict import Finding, Verdict

RACY = dedent(
    """
    import threading


    class Stock:
        def __init__(self):
            self._items = {}

        def add(self, name: str) -> int:
            if name not in self._items:
                self._items[name] = 0
            self._items[name] += 1
            return self._items[name]

        def apply(self, change) -> None:
            self._items = change(self._items)
    """
)
OPTIONS = {"budget_s": 3.0}


def found(root, text):
    (root / "shop.py").write_text(text, encoding="utf-8")
    (candidate,) = find(root, ["shop.py"]).candidates
    return Finding(candidate=candidate, verdict=Verdict.PROVEN, reason="seen")


def test_a_fix_that_holds_is_kept(tmp_path):
    finding = found(tmp_path, RACY.partition("    def apply")[0])
    told = mend_files(tmp_path, [finding], OPTIONS)
    assert (told.mended, told.refused) == ([finding.candidate.id], {})
    assert told.explored > 10
    assert "with self._lock:" in (tmp_path / "shop.py").read_text(encoding="utf-8")


def test_where_no_fix_is_known_the_file_stays_as_it_was(tmp_path):
    finding = found(tmp_path, RACY)
    told = mend_files(tmp_path, [finding], OPTIONS)
    assert told.mended == []
    assert "in the middle" in told.refused[finding.candidate.id]
    assert (tmp_path / "shop.py").read_text(encoding="utf-8") == RACY


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (Verdict.PROVEN, "still racy"),
        (Verdict.DEADLOCK, "a deadlock"),
        (Verdict.GAVE_UP, "gave-up"),
    ],
)
def test_a_fix_that_does_not_hold_is_taken_back(tmp_path, monkeypatch, verdict, says):
    text = RACY.partition("    def apply")[0]
    finding = found(tmp_path, text)
    monkeypatch.setattr(holding, "_proof", lambda *_: replace(finding, verdict=verdict))
    told = mend_files(tmp_path, [finding], OPTIONS)
    assert says in told.refused[finding.candidate.id]
    assert (tmp_path / "shop.py").read_text(encoding="utf-8") == text


def test_a_proof_that_breaks_is_no_proof(tmp_path):
    finding = found(tmp_path, RACY)
    with pytest.raises(CannotMend, match="the proof of the fix broke"):
        holding._proof(tmp_path, finding.candidate, {"budget_s": 1.0, "unknown": 1})


def test_the_program_answers_with_what_became_of_each_finding(tmp_path, monkeypatch, capsys):
    finding = found(tmp_path, RACY)
    question = {"findings": [to_record(finding)], "options": OPTIONS}
    monkeypatch.setattr(sys, "argv", ["mend", str(tmp_path)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(question)))
    assert program.main() == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["refused"]) == [finding.candidate.id]
