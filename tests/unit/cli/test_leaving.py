from __future__ import annotations

import signal
import time

from unit.cli.plankit import PlanTree

HANG = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
def sleep():
    threading.Event().wait(60)
def hang(attempt):
    open("began", "w").close()
    sleep()
def hang_pool(attempt):
    open("began", "w").close()
    ThreadPoolExecutor(1).submit(sleep).result()
"""


def plan(function: str) -> str:
    return (
        f"goal: g\nnodes:\n  done: {{actor: {{scripted: [{{print: x}}]}}}}\n"
        f"  a: {{needs: [done], actor: {{python: 'hang:{function}'}}}}\n"
    )


def stopped_after_s(tmp_path, monkeypatch, capsys, function) -> tuple[PlanTree, int, float]:
    """Run a function that ignores its stop, press Ctrl-C twice, and time what follows."""
    tree = PlanTree(tmp_path, monkeypatch, capsys)
    (tmp_path / "hang.py").write_text(HANG)
    process = tree.start(plan(function))
    tree.wait_until((tmp_path / "began").exists)
    process.send_signal(signal.SIGINT)
    line = ""
    while "stopping: " not in line:
        line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.communicate(timeout=30)
    return tree, process.returncode, time.monotonic() - began


def test_ctrl_c_twice_waits_for_no_function_that_hangs(tmp_path, monkeypatch, capsys):
    tree, code, took_s = stopped_after_s(tmp_path, monkeypatch, capsys, "hang")
    assert code == 130
    assert took_s < 3
    assert tree.plans()[0]["state"] == "paused"


def test_ctrl_c_twice_waits_for_no_thread_that_python_would_join(tmp_path, monkeypatch, capsys):
    tree, code, took_s = stopped_after_s(tmp_path, monkeypatch, capsys, "hang_pool")
    assert code == 130
    assert took_s < 3
    assert tree.plans()[0]["state"] == "paused"
