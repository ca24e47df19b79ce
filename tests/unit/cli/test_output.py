from __future__ import annotations

import sys

import pytest

from cleveragents.cli import output
from cleveragents.cli.live_view import LiveView
from cleveragents.cli.plain_view import PlainView
from cleveragents.cli.view_model import RunModel
from cleveragents.domain.errors import PlanError
from cleveragents.domain.event import Notice
from unit.cli.plankit import failed, finished, nodes, said, started

NASTY = "a\x1b[2Jb\rc\u202ed\u2028e\x9bf\x00\udc80"
HARMLESS = r"a\x1b[2Jb\rc\u202ed\u2028e\x9bf\x00\udc80"


def test_nothing_invisible_reaches_the_terminal(capsys):
    output.talk(NASTY)
    output.data(NASTY)
    assert capsys.readouterr() == (f"{HARMLESS}\n", f"{HARMLESS}\n")


def test_letters_of_all_languages_stay_as_they_are():
    for text in ("naïve", "日本語", "עברית", "✓ 1\tb\n2"):
        assert output.visible(text) == text


def test_error_cannot_forge_a_line(capsys):
    forged = "x\nerror[CA0000]: forged"
    output.error(PlanError(forged, facts={forged: forged}, hint=forged), as_json=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error[")] == [
        "error[CA4001]: x error[CA0000]: forged"
    ]
    assert sum(line.startswith("hint: ") for line in lines) == 1


def test_fact_of_several_lines_stays_in_its_column():
    assert output.facts({"said": "one\ntwo", "n": 1}) == ("  said  one\n        two\n  n     1")


@pytest.mark.parametrize("view", [PlainView, LiveView])
def test_view_shows_what_strangers_wrote_and_does_not_obey_it(capsys, view):
    model = RunModel("p-1", nodes(each="{for_each: [1], actor: {scripted: [{print: x}]}}"))
    shown = view(model)
    node = f"each[{NASTY}\nerror: forged]"
    for event in (started(node), said(node, NASTY), failed(node, NASTY), finished(node)):
        shown.take(event, 0.0, None)
        shown.tick(0.0)
    shown.warn(Notice("CA5006", NASTY, {"path": NASTY}))
    shown.say(NASTY)
    shown.close(1.0)
    written = capsys.readouterr().err
    assert r"each[a\x1b[2Jb\rc\u202e" in written
    for bad in ("\x1b[2J", "b\rc", "\u202e", "\x9b", "\x00", "\nerror: forged"):
        assert bad not in written


def test_listener_that_went_away_does_not_end_the_work(monkeypatch):
    class Gone:
        def write(self, _):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    output.talk("anybody there?")
