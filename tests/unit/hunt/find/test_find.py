"""`find` names racy state by reading, and says nothing of state that is kept in one piece."""

from __future__ import annotations

import os
import textwrap

import pytest

from cleveragents.hunt.candidate import EvidenceKind, Pattern
from cleveragents.hunt.find import Skipped, find
from cleveragents.hunt.records import candidate_from, to_record


@pytest.fixture
def hunt(tmp_path):
    """Write one module and return what is found in it."""

    def run(source, name="shared.py"):
        (tmp_path / name).write_text(textwrap.dedent(source))
        return find(tmp_path, [name])

    return run


def one(found):
    assert len(found.candidates) == 1, [one.name for one in found.candidates]
    return found.candidates[0]


BOX = """
import threading

class Box:
    def __init__(self, hook=None):
        self._lock = threading.Lock()
        self._gate = threading.Condition(self._lock)
        self._locks = {{}}
        self.n = 0
        self.m = 0
        self.items = []
        self.table = {{}}
        self.hook = hook

    def clear(self):
        with self._lock:
            self.items.clear()
            self.table.clear()
            self.n = self.m = 0

    def both(self):
        with self._lock:
            return self.n, self.m

{method}
"""


def box(method):
    return BOX.format(method=textwrap.indent(textwrap.dedent(method), "    "))


RACY = {
    "augmented": ("def go(self):\n  self.n += 1", Pattern.READ_MODIFY_WRITE),
    "through a local": ("def go(self):\n  n = self.n\n  self.n = n + 1", Pattern.READ_MODIFY_WRITE),
    "item": (
        "def go(self, k):\n  self.table[k] = self.table.get(k, 0) + 1",
        Pattern.READ_MODIFY_WRITE,
    ),
    "inside": ("def go(self, k):\n  self.table[k].n += 1", Pattern.READ_MODIFY_WRITE),
    "swap": (
        "def go(self):\n  old, self.items = self.items, []\n  return old",
        Pattern.READ_MODIFY_WRITE,
    ),
    "generator": ("def go(self):\n  return next(self.table)", Pattern.READ_MODIFY_WRITE),
    "orphan": (
        "def go(self, k):\n  self.table.setdefault(k, []).append(k)",
        Pattern.READ_MODIFY_WRITE,
    ),
    "membership": (
        "def go(self, k):\n  if k not in self.table:\n    self.table[k] = 1",
        Pattern.CHECK_THEN_ACT,
    ),
    "early return": (
        "def go(self, k):\n  if k in self.table: return\n  self.table[k] = 1",
        Pattern.CHECK_THEN_ACT,
    ),
    "key error": (
        (
            "def go(self, k):\n  try:\n    return self.table[k]\n  except KeyError:\n"
            "    self.table[k] = 1"
        ),
        Pattern.CHECK_THEN_ACT,
    ),
    "lazy": ("def go(self):\n  if not self.n:\n    self.n = object()", Pattern.CHECK_THEN_ACT),
    "emptiness": (
        "def go(self):\n  if self.items:\n    return self.items.pop()",
        Pattern.CHECK_THEN_ACT,
    ),
    "local test": (
        "def go(self, k):\n  v = self.table.get(k)\n  if v is None:\n    self.table[k] = 1",
        Pattern.CHECK_THEN_ACT,
    ),
    "test then use": (
        "def go(self):\n  return self.items[0] if self.items else None",
        Pattern.CHECK_THEN_ACT,
    ),
    "two stays": (
        (
            "def go(self, k):\n  with self._lock:\n    v = self.table.get(k)\n"
            "  if v is None:\n    with self._lock:\n      self.table[k] = 1"
        ),
        Pattern.CHECK_THEN_ACT,
    ),
    "last": (
        "def go(self, x):\n  self.items.append(x)\n  return self.items[-1]",
        Pattern.LAST_ELEMENT,
    ),
    "length": (
        "def go(self, x):\n  self.items.append(x)\n  return len(self.items)",
        Pattern.LAST_ELEMENT,
    ),
    "loop": (
        "def go(self):\n  for x in self.items:\n    print(x)",
        Pattern.ITERATE_BESIDE_MUTATE,
    ),
    "view": (
        "def go(self):\n  return {k for k, v in self.table.items() if v}",
        Pattern.ITERATE_BESIDE_MUTATE,
    ),
    "torn": ("def go(self, n):\n  self.n = n\n  self.m = n", Pattern.TORN_UPDATE),
    "refill": (
        (
            "def go(self, x):\n  self.items.clear()\n  self.items.extend(x)\n"
            "def peek(self):\n  return list(self.items)"
        ),
        Pattern.TORN_UPDATE,
    ),
    "bare write": (
        "def go(self):\n  self.n = 0\ndef add(self):\n  with self._lock:\n    self.n += 1",
        Pattern.MIXED_GUARD,
    ),
    "bare pair": ("def go(self):\n  return self.n - self.m", Pattern.MIXED_GUARD),
    "new lock": (
        "def go(self):\n  with threading.Lock():\n    self.n += 1",
        Pattern.LOCK_PER_CALL,
    ),
    "new local lock": (
        "def go(self):\n  lock = threading.Lock()\n  with lock:\n    self.n += 1",
        Pattern.LOCK_PER_CALL,
    ),
    "callback": (
        "def go(self, call):\n  with self._lock:\n    self.n = call()",
        Pattern.LOCK_HELD_ACROSS,
    ),
    "hook": (
        "def go(self):\n  with self._lock:\n    self.n = self.hook()",
        Pattern.LOCK_HELD_ACROSS,
    ),
    "sleep": (
        "def go(self):\n  with self._lock:\n    self.n = 1\n    time.sleep(1)",
        Pattern.LOCK_HELD_ACROSS,
    ),
    "await": (
        "async def stay(self):\n  pass\ndef go(self):\n  self.n -= 1",
        Pattern.READ_MODIFY_WRITE,
    ),
    "heap": (
        "def go(self):\n  if self.items:\n    heapq.heappop(self.items)",
        Pattern.CHECK_THEN_ACT,
    ),
    "delete": (
        "def go(self, k):\n  if k in self.table:\n    del self.table[k]",
        Pattern.CHECK_THEN_ACT,
    ),
    "key lock, whole": (
        "def go(self, k):\n  with self._locks[k]:\n    self.n += 1",
        Pattern.READ_MODIFY_WRITE,
    ),
    "handed out": (
        (
            "def _get(self, k):\n  with self._lock:\n    return self.table[k]\n"
            "def go(self, k):\n  self._get(k).n += 1"
        ),
        Pattern.READ_MODIFY_WRITE,
    ),
    "property": (
        "@property\ndef size(self):\n  return self.n\ndef go(self):\n  self.n = self.size + 1",
        Pattern.READ_MODIFY_WRITE,
    ),
    "unlocked helper": (
        "def _add_locked(self):\n  self.n += 1\ndef go(self):\n  self._add_locked()",
        Pattern.READ_MODIFY_WRITE,
    ),
    "released": (
        (
            "def go(self):\n  self._lock.acquire()\n  n = self.n\n  self._lock.release()\n"
            "  self.n = n + 1"
        ),
        Pattern.READ_MODIFY_WRITE,
    ),
    "match": (
        "def go(self):\n  match self.n:\n    case 0:\n      self.n = 1\n    case _:\n      pass",
        Pattern.CHECK_THEN_ACT,
    ),
    "while": (
        "def go(self):\n  while self.items:\n    self.items.pop()",
        Pattern.CHECK_THEN_ACT,
    ),
    "walrus": (
        "def go(self, k):\n  if (v := self.table.get(k)) is None:\n    self.table[k] = v",
        Pattern.CHECK_THEN_ACT,
    ),
}


@pytest.mark.parametrize("name", RACY)
def test_touch_that_no_lock_keeps_in_one_piece_is_named_with_its_pattern(hunt, name):
    method, pattern = RACY[name]
    found = hunt(box(method)).candidates
    assert [one for one in found if pattern in one.patterns and "go" in one.calls]


SAFE = {
    "locked": "def go(self):\n  with self._lock:\n    self.n += 1",
    "condition of the lock": "def go(self):\n  with self._gate:\n    self.n += 1",
    "wait of the condition": (
        "def go(self):\n  with self._gate:\n    while not self.items:\n      self._gate.wait()\n"
        "    return self.items.pop()"
    ),
    "acquire": (
        "def go(self):\n  self._lock.acquire()\n  try:\n    self.n += 1\n  finally:\n"
        "    self._lock.release()"
    ),
    "acquire or leave": (
        "def go(self):\n  if not self._lock.acquire(timeout=1):\n    return\n  self.n += 1\n"
        "  self._lock.release()"
    ),
    "local name": "def go(self):\n  lock = self._lock\n  with lock:\n    self.n += 1",
    "private helper": (
        "def _add(self):\n  self.n += 1\ndef go(self):\n  with self._lock:\n    self._add()"
    ),
    "locked helper": "def _add_locked(self):\n  self.n += 1",
    "documented helper": 'def _add(self):\n  """The lock must be held."""\n  self.n += 1',
    "decorator by name": "@synchronized\ndef go(self):\n  self.n += 1",
    "context manager": (
        "@contextlib.contextmanager\ndef _inside(self):\n  with self._lock:\n    yield\n"
        "def go(self):\n  with self._inside():\n    self.n += 1"
    ),
    "looked at again": (
        "def go(self, k):\n  if self.table.get(k) is None:\n    with self._lock:\n"
        "      if self.table.get(k) is None:\n        self.table[k] = 1"
    ),
    "single steps": (
        "def put(self, k):\n  self.table[k] = 1\n"
        "def take(self, k):\n  return self.table.pop(k, 0)\n"
        "def ensure(self, k):\n  return self.table.setdefault(k, 1)\n"
        "def push(self, x):\n  self.items.append(x)"
    ),
    "two arms": ("def go(self, k):\n  if k:\n    return self.table.get(k)\n  self.table[k] = 1"),
    "only read": "def go(self):\n  return self.hook if self.hook else None",
    "drained": (
        "def go(self):\n  with self._lock:\n    items, self.items = self.items, []\n"
        "  return [x for x in items if x]"
    ),
    "two keys": "def go(self):\n  self.table['a'] = 1\n  return self.table['b']",
    "set up": "def __setstate__(self, state):\n  self.n += 1",
    "dunder": "def __repr__(self):\n  self.n += 1",
}


@pytest.mark.parametrize("name", SAFE)
def test_state_that_is_kept_in_one_piece_is_not_named(hunt, name):
    assert not hunt(box(SAFE[name])).candidates


@pytest.mark.parametrize(
    "head",
    [
        "@dataclass(frozen=True)\nclass A:",
        "class A(NamedTuple):",
        "class A(Enum):",
        "class A(Protocol):",
        "class A(TypedDict):",
        "class A(unittest.TestCase):",
    ],
)
def test_classes_that_keep_no_shared_state_are_left_out(hunt, head):
    assert not hunt(f"{head}\n    def go(self):\n        self.n += 1\n").candidates


@pytest.mark.parametrize(
    "made", ["queue.Queue()", "threading.local()", "itertools.count()", "ContextVar('x')"]
)
def test_things_made_for_threads_are_not_suspicious(hunt, made):
    source = f"""
    class A:
        def __init__(self):
            self.it = {made}
        def go(self):
            self.it.put(1)
            return self.it
    """
    assert not hunt(source).candidates


def test_lock_by_key_guards_what_is_kept_under_the_key(hunt):
    source = """
    class A:
        def go(self, k):
            with self._locks[k]:
                self.table[k] += 1
        def get(self, k):
            with self._lock_for(k):
                return self.table[k]
    """
    assert not hunt(source).candidates


def test_emptiness_of_a_queue_says_nothing_about_the_next_get(hunt):
    source = """
    import queue
    class A:
        def __init__(self):
            self.q = queue.Queue()
        def go(self):
            if not self.q.empty():
                return self.q.get_nowait()
    """
    assert one(hunt(source)).patterns == (Pattern.CHECK_THEN_ACT,)


def test_state_of_a_module_has_no_owner_and_its_functions_are_the_calls(hunt):
    found = one(
        hunt(
            """
            _count = 0
            _seen = {}

            def bump():
                global _count
                _count += 1
                return _count

            def _private():
                return len(_seen)

            def see(k):
                if k not in _seen:
                    _seen[k] = bump()
            """
        )
    )
    assert (found.owner, found.module, found.import_root) == (None, "shared", ".")
    assert found.state == ("_count", "_seen")
    assert found.calls == ("bump", "see", "_private")
    assert found.evidence[0].kind is EvidenceKind.MODULE_INSTANCE
    assert found.line == 2


def test_cached_function_that_makes_an_object_may_make_two(hunt):
    found = one(
        hunt("@lru_cache\ndef pool():\n    return Pool()\n\ndef use():\n    return pool()\n")
    )
    assert found.calls == ("pool", "use")


EVIDENCE = {
    EvidenceKind.MODULE_INSTANCE: "shared = A()",
    EvidenceKind.SINGLETON: "def get():\n    global a\n    a = A()",
    EvidenceKind.REGISTERED: "x = providers.Singleton(A)",
    EvidenceKind.PASSED_TO_THREADS: (
        "def main():\n    a = A()\n    pool = ThreadPoolExecutor()\n    pool.map(a.go, [])"
    ),
    EvidenceKind.USES_THREADS: "import threading",
    EvidenceKind.STATEFUL: "",
}


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        *EVIDENCE.items(),
        (EvidenceKind.SINGLETON, "@lru_cache\ndef get():\n    return A()"),
        (EvidenceKind.REGISTERED, "def f(app):\n    app.state.a = A()"),
        (EvidenceKind.REGISTERED, "def f():\n    ALL['a'] = A()"),
        (
            EvidenceKind.PASSED_TO_THREADS,
            "def f():\n    a: X = A()\n    Thread(target=f, args=(a,))",
        ),
        (
            EvidenceKind.PASSED_TO_THREADS,
            "def f(pool):\n    a = A()\n    def work():\n        a.go()\n    pool.submit(work)",
        ),
        (EvidenceKind.PASSED_TO_THREADS, "def f(p):\n    a = A()\n    p.submit(lambda: a.go())"),
        (EvidenceKind.PASSED_TO_THREADS, "class T(A, Thread):\n    pass"),
    ],
)
def test_strongest_reason_to_believe_in_sharing_comes_first(hunt, kind, more):
    source = f"class A:\n    def go(self):\n        self.n += 1\n\n{more}\n"
    found = [one for one in hunt(source).candidates if one.owner == "A"]
    assert found[0].evidence[0].kind is kind


def test_a_private_method_that_nobody_calls_is_tried_only_if_there_is_no_other(hunt):
    racy = "def {}(self):\n    self.n += 1"
    assert one(hunt(box(racy.format("go") + "\n" + racy.format("_reset")))).calls[0] == "go"
    assert "_reset" not in one(hunt(box(racy.format("go") + "\n" + racy.format("_reset")))).calls
    alone = "class Alone:\n    def __init__(self):\n        self.n = 0\n\n    def _go(self):\n"
    assert one(hunt(alone + "        self.n += 1\n")).calls == ("_go",)


@pytest.mark.parametrize("text", ["`add` is for one thread.", "Used by one thread at a time."])
def test_what_is_said_to_be_for_one_thread_is_not_taken_to_be_shared(hunt, text):
    source = (
        f'import threading\nclass Box:\n    """A box. {text}"""\n'
        "    def __init__(self):\n        self.n = 0\n"
        "    def add(self):\n        self.n += 1\nBOX = Box()\n"
    )
    found = one(hunt(source))
    assert [reason.kind for reason in found.evidence] == [EvidenceKind.STATEFUL]


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("A thread-safe box.", True),
        ("Safe to share.", True),
        ("It is not thread-safe.", False),
        ("A box.", False),
        ("Thread-safe. Never use it in several threads.", False),
    ],
)
def test_claim_of_safety_is_noted_unless_it_is_denied(hunt, text, claims):
    found = one(hunt(f'class A:\n    """{text}"""\n    def go(self):\n        self.n += 1\n'))
    assert found.claims_safety is claims
    assert (found.evidence[0].kind is EvidenceKind.CLAIMS_SAFETY) is claims


def test_evidence_ranks_above_patterns(tmp_path):
    racy = "class {}:\n    def go(self):\n        self.n += 1\n"
    (tmp_path / "a.py").write_text(racy.format("Plain"))
    (tmp_path / "b.py").write_text(racy.format("Kept") + "\nkept = Kept()\n")
    found = find(tmp_path, [])
    assert [one.owner for one in found.candidates] == ["Kept", "Plain"]
    assert found.candidates[0].rank > found.candidates[1].rank


def test_evidence_is_seen_from_other_modules_and_from_tests(tmp_path):
    (tmp_path / "a.py").write_text("class A:\n    def go(self):\n        self.n += 1\n")
    (tmp_path / "test_a.py").write_text(
        "from a import A\n\ndef test_a(pool):\n    a = A()\n    pool.submit(a.go)\n"
        "class Twin:\n    def go(self):\n        self.n += 1\n"
    )
    found = find(tmp_path, ["."])
    assert one(found).evidence[0].path == "test_a.py"


def test_bases_of_the_tree_count_and_are_named_once(tmp_path):
    (tmp_path / "base.py").write_text(
        "import threading\nclass Base:\n    def __init__(self):\n"
        "        self._lock = threading.Lock()\n        self.n = 0\n"
        "    def add(self):\n        with self._lock:\n            self.n += 1\n"
        "    def step(self):\n        self.k += 1\n"
    )
    (tmp_path / "child.py").write_text(
        "from base import Base\nclass Child(Base):\n    def add(self):\n"
        "        super().add()\n    def reset(self):\n        self.n = 0\n"
    )
    found = {one.owner: one for one in find(tmp_path, []).candidates}
    assert found["Base"].state == ("k",)
    assert found["Child"].patterns == (Pattern.MIXED_GUARD,)
    assert found["Child"].lock == "_lock"
    assert found["Child"].calls == ("reset", "add")


def test_abstract_base_is_tried_through_its_child(hunt):
    source = """
    class Base:
        def go(self):
            self.n += self.step()
        @abstractmethod
        def step(self): ...
    class Child(Base):
        def step(self):
            return 1
    """
    assert {one.owner for one in hunt(source).candidates} == {"Base", "Child"}


def test_decorator_that_takes_the_lock_guards_what_it_wraps(hunt):
    source = """
    def alone(function):
        def inner(self, *args):
            with self._lock:
                return function(self, *args)
        return inner
    class A:
        @alone
        def go(self):
            self.n += 1
    """
    assert not hunt(source).candidates


def test_lock_that_is_named_is_the_one_behind_the_condition(hunt):
    assert one(hunt(box("def go(self):\n  self.n += 1"))).lock == "_lock"


def test_class_of_one_event_loop_is_left_out_with_the_reason(hunt):
    found = hunt("class A:\n    async def go(self):\n        self.n += 1\n")
    assert not found.candidates
    assert "event loop" in found.skipped[0].reason


def test_coroutines_of_a_class_with_threads_are_not_among_the_calls(hunt):
    source = """
    import threading
    class A:
        async def stay(self):
            self.n = 1
        def go(self):
            self.n += 1
    """
    assert one(hunt(source)).calls == ("go",)


def test_state_that_one_thread_of_its_own_touches_is_confined(hunt):
    source = """
    import threading
    class A:
        def start(self):
            threading.Thread(target=self._run, name="a").start()
        def _run(self):
            self.n += 1
    """
    assert not hunt(source).candidates


def test_private_method_that_a_thread_runs_is_tried_last(hunt):
    source = """
    import threading
    class A:
        def start(self):
            threading.Thread(target=self._run).start()
        def _run(self):
            self.n += 1
        def get(self):
            return self.n
    """
    assert one(hunt(source)).calls == ("get", "_run")


def test_setter_has_a_name_of_its_own(hunt):
    source = """
    class A:
        @property
        def size(self):
            return self._size
        @size.setter
        def size(self, value):
            if self._size < value:
                self._size = value
        def grow(self):
            self.size = 5
    """
    assert one(hunt(source)).calls == ("size.setter", "grow", "size")


def test_calls_are_few_and_states_of_one_call_are_one_candidate(hunt):
    methods = "".join(f"    def m{at}(self):\n        self.a += 1\n" for at in range(12))
    found = one(
        hunt(f"class A:\n{methods}    def z(self):\n        self.a += 1\n        self.b += 1\n")
    )
    assert found.state == ("a", "b")
    assert len(found.calls) == 8


def test_accesses_tell_where_and_whether_under_a_lock(hunt):
    found = one(hunt(box("def go(self):\n  return self.n - self.m")))
    kinds = {(access.call, access.kind, access.guarded) for access in found.accesses}
    assert {("go", "read", False), ("clear", "write", True), ("both", "read", True)} <= kinds


def test_candidate_survives_its_record(hunt):
    found = one(hunt("class A:\n    def go(self):\n        self.n += 1\n"))
    assert candidate_from(to_record(found)) == found


@pytest.mark.parametrize(
    ("path", "others", "module", "import_root"),
    [
        ("src/app/core.py", ("src/app/__init__.py",), "app.core", "src"),
        ("src/space/app/core.py", (), "space.app.core", "src"),
        ("app/__init__.py", (), "app", "."),
        ("tool.py", (), "tool", "."),
        ("lib/tool.py", (), "tool", "lib"),
        ("lib/deep/tool.py", ("use.py:import lib.deep.tool",), "lib.deep.tool", "."),
        ("lib/deep/tool.py", ("lib/deep/tool.py:from ..x import y",), "lib.deep.tool", "."),
    ],
)
def test_module_and_import_root_follow_from_the_tree(tmp_path, path, others, module, import_root):
    head = ""
    for other in others:
        name, _, text = other.partition(":")
        if name == path:
            head = text
            continue
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{head}\nclass A:\n    def go(self):\n        self.n += 1\n")
    found = one(find(tmp_path, []))
    assert (found.module, found.import_root, found.path) == (module, import_root, path)


def test_files_that_cannot_be_read_cost_themselves_alone(tmp_path):
    (tmp_path / "bad.py").write_text("def (:\n")
    (tmp_path / "binary.py").write_bytes(b"\0\1")
    (tmp_path / "huge.py").write_text("#" * 1_000_001)
    (tmp_path / "my-tool.py").write_text("class A:\n    def go(self):\n        self.n += 1\n")
    (tmp_path / "deep.py").write_text("x = " + "-" * 90_000 + "1")
    (tmp_path / "good.py").write_text("class A:\n    def go(self):\n        self.n += 1\n")
    (tmp_path / "link.py").symlink_to("good.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.py").write_text("")
    found = find(tmp_path, [])
    assert one(found).path == "good.py"
    assert [skip.path for skip in found.skipped] == [
        "bad.py",
        "binary.py",
        "deep.py",
        "huge.py",
        "my-tool.py",
    ]
    assert Skipped("binary.py", "It is not text") in found.skipped


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_that_is_not_ours_to_read_is_skipped(tmp_path):
    (tmp_path / "a.py").write_text("")
    (tmp_path / "a.py").chmod(0)
    assert find(tmp_path, []).skipped[0].reason.startswith("It cannot be read")


def test_named_folder_of_tests_is_wanted(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text("class A:\n    def go(self):\n        self.n += 1\n")
    assert not find(tmp_path, []).candidates
    assert one(find(tmp_path, ["tests"])).path == "tests/a.py"


def test_same_tree_gives_the_same_candidates(tmp_path):
    for name in "cab":
        (tmp_path / f"{name}.py").write_text(box("def go(self):\n  self.n += 1\n  self.m += 1"))
    assert find(tmp_path, []) == find(tmp_path, ["."])
