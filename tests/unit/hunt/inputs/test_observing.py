"""What tests call is learned on a copy of the tree."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

from cleveragents.hunt.inputs import observe
from cleveragents.hunt.inputs.known import Known
from cleveragents.hunt.inputs.recorder import Recorder


def test_calls_of_tests_are_told_and_the_tree_stays_as_it_is(tmp_path, monkeypatch, capsys):
    (tmp_path / "shop.py").write_text(
        "class Stock:\n    def add(self, name, *more, by=1, **rest): open('left', 'w').close()\n"
    )
    (tmp_path / "test_shop.py").write_text(
        "from shop import Stock\ndef test_it(): Stock().add('a', 2, by=3, c=4)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q"]
    monkeypatch.setattr(sys, "argv", ["observe", str(tmp_path)])
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(command)))
    # A process needs a file to write to, and pytest's own stand-in is none.
    with (tmp_path.parent / "said").open("w") as said:
        monkeypatch.setattr(sys, "stderr", said)
        assert observe.main() == 0
    assert json.loads(capsys.readouterr().out) == {"shop:Stock.add": ["'a', 2, by=3, c=4"]}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["shop.py", "test_shop.py"]


def test_a_command_that_runs_no_test_teaches_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["observe", str(tmp_path)])
    monkeypatch.setattr(sys, "stdin", io.StringIO('["true"]'))
    with (tmp_path.parent / "said").open("w") as said:
        monkeypatch.setattr(sys, "stderr", said)
        assert observe.main() == 0
    assert capsys.readouterr().out == "{}"


def test_few_rows_are_kept_and_none_twice():
    recorder = Recorder(Path("/"))
    for row in ["1", "1", *map(str, range(20))]:
        recorder.note("a:f", row)
    (rows,) = recorder.stop().values()
    assert len(rows) == len(set(rows)) <= 10


def test_what_is_told_comes_before_what_files_say():
    files = Known({"a:A": "A(1)", "a:B": "B()"}, {"a:A.f": ("1",)})
    told = Known.of({"a:A": "A(2)"}, {"a:A.f": ["2"], "a:A.g": ["3"]})
    both = files.with_more(told)
    assert both.factories == {"a:A": "A(2)", "a:B": "B()"}
    assert both.arguments == {"a:A.f": ("2", "1"), "a:A.g": ("3",)}
    assert Known.of(None, None) == Known()
