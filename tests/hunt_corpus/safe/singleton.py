"""A lock of the class: whoever builds or drops the instance holds it."""

from __future__ import annotations

import threading


class Metrics:
    _instance = None
    _instance_lock = threading.Lock()

    def __init__(self):
        self.values = {}

    @classmethod
    def get_instance(cls):
        with cls._instance_lock:
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance

    @classmethod
    def record(cls, name, value):
        with cls._instance_lock:
            if cls._instance is None:
                cls._instance = cls()
            cls._instance.values[name] = value

    @classmethod
    def read(cls, name):
        with cls._instance_lock:
            return None if cls._instance is None else cls._instance.values.get(name)

    @classmethod
    def reset(cls):
        with cls._instance_lock:
            cls._instance = None
