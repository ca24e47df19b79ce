from __future__ import annotations

import json
import sys
import tempfile

import pytest

from cleveragents.cli.demo_llm import SCRIPT
from cleveragents.cli.main import main

pytestmark = pytest.mark.long


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_demo_with_a_model_tells_what_its_server_billed(temporary, capsys):
    pytest.importorskip("pydantic_ai")
    assert main(["demo", "--llm", "--json"]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert all(report["checks"].values()), report["checks"]
    assert len(report["checks"]) == 8
    assert report["spent"] == report["billed"] != "0.00 USD"
    assert report["requests"] == len(SCRIPT)
    assert report["errors"] == {"plan.check_failed": 1}
    assert "+    return price - price * percent / 100" in report["diff"]
    assert "fix  -> read_file" in shown.err
    assert list(temporary.iterdir()) == []


def test_demo_with_a_model_can_be_kept_and_looked_at(temporary, capsys):
    pytest.importorskip("pydantic_ai")
    assert main(["demo", "--llm", "--keep"]) == 0
    text = capsys.readouterr().out
    (folder,) = temporary.iterdir()
    assert f"kept      {folder / 'shop'}" in text
    assert "✗" not in text
    assert "scripted: nothing of this was paid" in text


@pytest.mark.usefixtures("temporary")
def test_demo_with_a_model_says_which_packages_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.setitem(sys.modules, "pydantic_ai.models.openai", None)
    assert main(["demo", "--llm"]) == 3
    told = capsys.readouterr().err
    assert "error[CA1007]" in told
    assert "hint: Run `pip install 'cleveragents[llm]'`" in told
