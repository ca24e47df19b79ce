"""The test of the state and its change are under the lock."""

from __future__ import annotations

import threading
from enum import Enum


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class InvalidTransition(Exception):
    pass


class Job:
    """A job that exactly one worker may start."""

    def __init__(self, name: str = "job") -> None:
        self.name = name
        self.state = State.WAITING
        self.attempts = 0
        self._lock = threading.Lock()

    def start(self) -> int:
        with self._lock:
            if self.state is not State.WAITING:
                raise InvalidTransition(f"{self.name} is {self.state.value}")
            self.state = State.RUNNING
            self.attempts += 1
            return self.attempts

    def finish(self) -> None:
        with self._lock:
            if self.state is not State.RUNNING:
                raise InvalidTransition(f"{self.name} is {self.state.value}")
            self.state = State.DONE

    def retry(self) -> bool:
        with self._lock:
            if self.state is State.DONE:
                return False
            self.state = State.WAITING
            return True
