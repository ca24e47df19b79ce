"""What is proven, and above all what is not: a correct class must never be called racy."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("frontrun", reason="needs the packages of the hunt")

from cleveragents.hunt.candidate import Candidate, Pattern
from cleveragents.hunt.prove import ProveOptions, prove
from cleveragents.hunt.verdict import Finding, Strikes, Verdict
from unit.hunt.prove.cases import CORRECT, RACY, Case

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_NUMBERS = itertools.count()


def candidate_of(case: Case, module: str) -> Candidate:
    return Candidate(
        module=module,
        path=f"{module}.py",
        import_root="",
        owner=case.owner,
        state=case.state,
        patterns=(Pattern.READ_MODIFY_WRITE,),
        calls=case.calls,
        accesses=(),
        evidence=(),
        line=1,
    )


@pytest.fixture
def proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finding]:
    # To look for one that strikes today takes seconds after each proof, and finds it at once.
    monkeypatch.setattr("cleveragents.hunt.prove.prover._TODAY_S", 0.3)
    monkeypatch.setattr("cleveragents.hunt.prove.trying._TODAY_S", 0.1)

    def run(case: Case, **options: object) -> Finding:
        module = f"hunted_{next(_NUMBERS)}"
        (tmp_path / f"{module}.py").write_text(case.source, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        try:
            given = ProveOptions(**{"budget_s": 6.0, **options})
            return prove(candidate_of(case, module), tmp_path, given)
        finally:
            sys.modules.pop(module, None)

    return run


@pytest.mark.parametrize("name", RACY)
def test_a_race_is_proven_and_replayed(name: str, proven: Callable[..., Finding]) -> None:
    finding = proven(RACY[name])
    assert finding.verdict is Verdict.PROVEN, finding.reason
    assert finding.replays == finding.reproduced == 10
    assert finding.observed not in finding.sequential or "object" in str(finding.observed)
    assert {step.thread for step in finding.steps} >= {0, 1}
    assert finding.strikes in Strikes


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_class_is_never_proven_racy(name: str, proven: Callable[..., Finding]) -> None:
    finding = proven(CORRECT[name], budget_s=1.0)
    assert finding.verdict in {Verdict.SILENT, Verdict.BENIGN}, finding.reason


DEADLOCK = Case(
    """
import threading
class Box:
    def __init__(self):
        self.one, self.two, self.n = threading.Lock(), threading.Lock(), 0
    def there(self):
        with self.one, self.two:
            self.n += 1
    def back(self):
        with self.two, self.one:
            self.n += 1
""",
    ("there", "back"),
)


def test_locks_taken_in_two_orders_are_a_deadlock(proven: Callable[..., Finding]) -> None:
    finding = proven(DEADLOCK)
    assert finding.verdict is Verdict.DEADLOCK
    assert finding.observed is None
    assert "wait for one another" in finding.reason
    assert finding.steps


ENDS = {
    "import error": (Case("import no_such_module_here", ("add",)), Verdict.UNIMPORTABLE),
    "exit at import": (Case("raise SystemExit(3)", ("add",)), Verdict.UNIMPORTABLE),
    "no such class": (Case("n = 1", ("add",)), Verdict.UNIMPORTABLE),
    "not buildable": (
        Case("class Box:\n def __init__(self):\n  raise OSError\n def add(self): pass\n", ("add",)),
        Verdict.UNBUILDABLE,
    ),
    "exit at birth": (
        Case("class Box:\n def __init__(self):\n  exit(3)\n def add(self): pass\n", ("add",)),
        Verdict.UNBUILDABLE,
    ),
    "one alone": (
        Case(
            "import sys\nclass Box:\n def __init__(self):\n"
            "  if hasattr(sys, 'hunted_box'): raise ValueError\n  sys.hunted_box = self\n"
            " def add(self): pass\n",
            ("add",),
        ),
        Verdict.UNBUILDABLE,
    ),
    "own thread at birth": (
        Case(
            "import threading\nclass Box:\n def __init__(self):\n"
            "  self.t = threading.Thread(target=print)\n  self.t.start()\n def add(self): pass\n",
            ("add",),
        ),
        Verdict.GAVE_UP,
    ),
    "own threads in a call": (
        Case(
            "from concurrent.futures import ThreadPoolExecutor\nclass Box:\n def add(self):\n"
            "  with ThreadPoolExecutor(1) as pool: return pool.submit(len, []).result()\n",
            ("add",),
        ),
        Verdict.GAVE_UP,
    ),
    "coroutine": (
        Case("class Box:\n n = 0\n async def add(self):\n  self.n += 1\n", ("add",)),
        Verdict.NOT_TRIABLE,
    ),
    "endless call": (
        Case("class Box:\n def add(self):\n  while True: pass\n", ("add",)),
        Verdict.NOT_TRIABLE,
    ),
    "always waits": (
        Case(
            "import threading\nclass Box:\n def __init__(self): self.e = threading.Event()\n"
            " def add(self): self.e.wait()\n",
            ("add",),
        ),
        Verdict.NOT_TRIABLE,
    ),
    "unsteady": (
        Case(
            "import builtins\n"
            "builtins.hunted_n = getattr(builtins, 'hunted_n', 0)\n"
            "class Box:\n def add(self):\n"
            "  import builtins\n  builtins.hunted_n += 1\n  return builtins.hunted_n\n",
            ("add",),
        ),
        Verdict.UNSTEADY,
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_cannot_be_tried_is_said_to_be_so(name: str, proven: Callable[..., Finding]) -> None:
    case, verdict = ENDS[name]
    finding = proven(case)
    assert finding.verdict is verdict, finding.reason
    assert finding.reason


def test_an_order_in_a_list_is_only_a_suspicion(proven: Callable[..., Finding]) -> None:
    finding = proven(CORRECT["log in the order of arrival"], budget_s=3.0)
    assert finding.verdict is Verdict.BENIGN
    assert "order" in finding.reason


def test_a_plain_increment_strikes_only_without_the_interpreter_lock(
    proven: Callable[..., Finding],
) -> None:
    assert proven(RACY["counter"]).strikes is Strikes.FREE_THREADED


def test_an_update_with_a_call_in_its_window_strikes_today(proven: Callable[..., Finding]) -> None:
    source = """
class Box:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n = int(str(self.n)) + 1
"""
    assert proven(Case(source, ("add",))).strikes is Strikes.TODAY


def test_a_trial_that_strikes_today_is_preferred(proven: Callable[..., Finding]) -> None:
    source = """
class Box:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
    def grow(self):
        self.n = max(self.n, 0) + 1
"""
    finding = proven(Case(source, ("add", "grow")))
    assert finding.strikes is Strikes.TODAY
    assert "subject.grow()" in str(finding.trial)


def test_the_code_of_the_tree_is_tried_and_not_a_package_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "libcst", ModuleType("libcst"))
    monkeypatch.setitem(sys.modules, "libcst.inner", ModuleType("libcst.inner"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "libcst.py").write_text(RACY["counter"].source, encoding="utf-8")
    finding = prove(candidate_of(RACY["counter"], "libcst"), tmp_path)
    assert finding.verdict is Verdict.PROVEN
    assert finding.steps[0].path == "libcst.py"
    assert "libcst.inner" not in sys.modules
