"""The number of a job is the length of the list: two jobs get one number."""

from __future__ import annotations


class JobBoard:
    def __init__(self):
        self._jobs = {}
        self._done = []

    def post(self, title):
        number = len(self._jobs) + len(self._done) + 1
        self._jobs[number] = title
        return number

    def finish(self, number):
        if number not in self._jobs:
            return None
        self._done.append(number)
        return self._jobs.pop(number)

    def open_jobs(self):
        return dict(self._jobs)
