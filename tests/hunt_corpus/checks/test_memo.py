from __future__ import annotations

from memo import ReportBook


def test_one_report_for_a_name():
    book = ReportBook()
    assert book.report("a") is book.report("a")
    assert book.built == 1


def test_lines_are_counted():
    book = ReportBook()
    assert book.write("a", "x") == 1
    assert book.write("a", "y") == 2
