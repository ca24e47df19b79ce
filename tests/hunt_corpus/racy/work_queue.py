"""Both workers see one task left; the second pops from an empty queue: IndexError."""

from __future__ import annotations

from collections import deque


class WorkQueue:
    def __init__(self):
        self._tasks = deque()
        self._taken = 0

    def put(self, task):
        self._tasks.append(task)

    def take(self):
        if not self._tasks:
            return None
        task = self._tasks.popleft()
        self._taken += 1
        return task

    def pending(self):
        return len(self._tasks)

    def taken(self):
        return self._taken


queue = WorkQueue()
