"""An action is on exactly one stack, because moving it holds the lock."""

from __future__ import annotations

import threading


class UndoStack:
    def __init__(self):
        self._done = []
        self._undone = []
        self._lock = threading.RLock()

    def do(self, action):
        with self._lock:
            self._done.append(action)
            self._undone = []
            return len(self._done)

    def undo(self):
        with self._lock:
            if not self._done:
                return None
            action = self._done[-1]
            self._done = self._done[:-1]
            self._undone.append(action)
            return action

    def redo(self):
        with self._lock:
            if not self._undone:
                return None
            action = self._undone.pop()
            self._done.append(action)
            return action
