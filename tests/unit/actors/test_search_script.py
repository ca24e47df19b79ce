"""The program that searches where ripgrep is not; the tool is tested with it as a process."""

from __future__ import annotations

import io
import json

import pytest

from cleveragents.actors.search_script import main


@pytest.fixture
def searched(tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "z.txt").write_bytes(b"needle\r\nhay\nNeedle")
    (tmp_path / "a\n.txt").write_bytes(b"a needle")
    (tmp_path / "binary").write_bytes(b"needle\0")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"needle")
    (tmp_path / "link").symlink_to("b/z.txt")
    monkeypatch.chdir(tmp_path)

    def search(pattern, *, ignore_case=False, matches_max=100):
        asked = {
            "pattern": pattern,
            "ignore_case": ignore_case,
            "folder": ".",
            "matches_max": matches_max,
        }
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(asked)))
        code = main()
        shown = capfdbinary.readouterr()
        return code, shown.out, shown.err

    return search


def test_search_prints_what_ripgrep_would(searched):
    code, out, _ = searched("needle")
    assert (code, out) == (0, b"./a\n.txt\x001:a needle\n./b/z.txt\x001:needle\r\n")


def test_search_passes_over_files_that_cannot_be_read(searched, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert searched("needle")[:2] == (1, b"")


def test_search_may_take_capitals_for_small_letters(searched):
    assert searched("NEEDLE", ignore_case=True)[1].count(b"\0") == 3


def test_search_ends_when_there_are_enough(searched):
    assert searched("needle", matches_max=0)[1].count(b"\0") == 1


def test_search_without_a_match_says_so_by_its_code(searched):
    assert searched("nowhere")[:2] == (1, b"")


def test_search_by_a_bad_pattern_says_why(searched):
    code, out, said = searched("(")
    assert (code, out) == (2, b"")
    assert b"unterminated" in said
