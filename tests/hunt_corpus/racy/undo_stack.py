"""Two undos pop the same top: one of them fails, or an action is on both stacks."""

from __future__ import annotations


class UndoStack:
    def __init__(self):
        self._done = []
        self._undone = []

    def do(self, action):
        self._done.append(action)
        self._undone = []
        return len(self._done)

    def undo(self):
        if not self._done:
            return None
        action = self._done[-1]
        self._done = self._done[:-1]
        self._undone.append(action)
        return action

    def redo(self):
        if not self._undone:
            return None
        action = self._undone.pop()
        self._done.append(action)
        return action
