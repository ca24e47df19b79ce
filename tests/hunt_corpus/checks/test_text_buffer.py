from __future__ import annotations

from text_buffer import TextBuffer


def test_lines_in_order():
    buffer = TextBuffer()
    assert buffer.write_line("a") == 1
    assert buffer.write_line("b") == 2
    assert buffer.getvalue() == "a\nb\n"
    assert buffer.take() == "a\nb\n"
    assert buffer.getvalue() == ""
