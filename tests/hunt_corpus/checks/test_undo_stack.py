from __future__ import annotations

from undo_stack import UndoStack


def test_undo_and_redo():
    stack = UndoStack()
    assert stack.undo() is None
    stack.do("a")
    assert stack.do("b") == 2
    assert stack.undo() == "b"
    assert stack.redo() == "b"
    assert stack.redo() is None
    stack.undo()
    stack.do("c")
    assert stack.redo() is None
