"""Delegates to `queue.SimpleQueue`, whose operations are whole."""

from __future__ import annotations

import queue as queues


class WorkQueue:
    def __init__(self):
        self._tasks = queues.SimpleQueue()

    def put(self, task):
        self._tasks.put(task)

    def take(self):
        try:
            return self._tasks.get_nowait()
        except queues.Empty:
            return None

    def pending(self):
        return self._tasks.qsize()


queue = WorkQueue()
