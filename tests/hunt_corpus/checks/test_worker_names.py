from __future__ import annotations

from worker_names import Worker


def test_names_are_numbered():
    Worker.forget()
    assert Worker().register() == "worker-1"
    assert Worker("io").register() == "io-2"
    assert Worker.spawned() == 2
