"""Small classes to prove: each source, the calls that are tried, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One class, or module state when `owner` is None."""

    source: str
    calls: tuple[str, ...]
    owner: str | None = "Box"
    state: tuple[str, ...] = ("n",)


RACY = {
    "counter": Case(
        """
class Box:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
""",
        ("add",),
    ),
    "membership test then act": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def claim(self, key):
        if key in self.d:
            return False
        self.d[key] = True
        return True
""",
        ("claim",),
        state=("d",),
    ),
    "truth of a deque": Case(
        """
from collections import deque
class Box:
    def __init__(self):
        self.q = deque()
    def put(self, item):
        self.q.append(item)
    def take(self):
        if not self.q:
            return None
        return self.q.popleft()
""",
        ("take", "put"),
        state=("q",),
    ),
    "chained subscripts": Case(
        """
class Box:
    def __init__(self):
        self.d = {"a": {"b": 0}}
    def add(self):
        self.d["a"]["b"] = self.d["a"]["b"] + 1
""",
        ("add",),
        state=("d",),
    ),
    "ordered dict as lru": Case(
        """
from collections import OrderedDict
class Box:
    def __init__(self):
        self.d = OrderedDict()
    def put(self, key, value):
        if key in self.d:
            self.d.pop(key)
        self.d[key] = value
        if len(self.d) > 1:
            self.d.popitem(last=False)
    def get(self, key):
        if key not in self.d:
            return None
        self.d.move_to_end(key)
        return self.d[key]
""",
        ("get", "put"),
        state=("d",),
    ),
    "heap": Case(
        """
import heapq
class Box:
    def __init__(self):
        self.h = []
    def push(self, n):
        heapq.heappush(self.h, n)
    def pop(self):
        if len(self.h) > 0:
            return heapq.heappop(self.h)
        return None
""",
        ("pop", "push"),
        state=("h",),
    ),
    "queue empty then get": Case(
        """
import queue
class Box:
    def __init__(self):
        self.q = queue.Queue()
        self.q.put(1)
    def take(self):
        if self.q.empty():
            return None
        return self.q.get_nowait()
""",
        ("take",),
        state=("q",),
    ),
    "lazy attribute": Case(
        """
class Thing:
    pass
class Box:
    def __init__(self):
        self._thing = None
    @property
    def thing(self):
        if self._thing is None:
            self._thing = Thing()
        return self._thing
""",
        ("thing",),
        state=("_thing",),
    ),
    "singleton": Case(
        """
class Box:
    _instance = None
    @classmethod
    def shared(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance
""",
        ("shared",),
        state=("_instance",),
    ),
    "singleton by new": Case(
        """
class Box:
    _instance = None
    def __new__(cls):
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance
""",
        ("__new__",),
        state=("_instance",),
    ),
    "module counter": Case(
        """
count = 0
def bump():
    global count
    count = count + 1
    return count
""",
        ("bump",),
        owner=None,
        state=("count",),
    ),
    "module registry": Case(
        """
handlers = {}
def register(name, handler):
    if name not in handlers:
        handlers[name] = []
    handlers[name] = handlers[name] + [handler]
""",
        ("register",),
        owner=None,
        state=("handlers",),
    ),
    "slots": Case(
        """
class Box:
    __slots__ = ("n",)
    def __init__(self):
        self.n = 0
    def add(self, amount):
        self.n = self.n + amount
""",
        ("add",),
    ),
    "iterate beside mutate": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def put(self, key, value):
        self.d[key] = value
    def total(self):
        n = 0
        for key in self.d:
            n += len(str(key))
        return n
""",
        ("total", "put"),
        state=("d",),
    ),
    "torn update": Case(
        """
class Box:
    def __init__(self):
        self.low, self.high = 0, 0
    def move(self, n):
        self.low = n
        self.high = n
    def read(self):
        return self.low, self.high
""",
        ("move", "read"),
        state=("high", "low"),
    ),
    "lock per call": Case(
        """
import threading
class Box:
    def __init__(self):
        self.n = 0
    def add(self):
        with threading.Lock():
            n = self.n
            self.n = n + 1
""",
        ("add",),
    ),
    "special methods": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def __getitem__(self, key):
        if key not in self.d:
            self.d[key] = []
        return self.d[key]
    def __len__(self):
        return len(self.d)
""",
        ("__getitem__", "__len__"),
        state=("d",),
    ),
    "generator": Case(
        """
class Box:
    def __init__(self):
        self.n = 0
    def ids(self, count):
        for _ in range(count):
            self.n = self.n + 1
            yield self.n
""",
        ("ids",),
    ),
    "transfer needs a set-up": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def open(self, name: str):
        self.d[name] = 10
    def draw(self, name: str, amount: int) -> bool:
        if self.d[name] >= amount:
            self.d[name] = self.d[name] - amount
            return True
        return False
""",
        ("draw",),
        state=("d",),
    ),
    "lock by another name": Case(
        """
from threading import Lock
class Box:
    def __init__(self):
        self.guard = Lock()
        self.n = 0
    def add(self):
        with self.guard:
            n = self.n
        with self.guard:
            self.n = n + 1
""",
        ("add",),
    ),
    "context manager": Case(
        """
from contextlib import contextmanager
class Box:
    def __init__(self):
        self.n = 0
    @contextmanager
    def open(self):
        yield self.n
        self.n = self.n + 1
""",
        ("open",),
    ),
    "out parameter": Case(
        """
class Box:
    def __init__(self):
        self.items = [1]
    def drain(self, items):
        items.extend(self.items)
        self.items = []
""",
        ("drain",),
        state=("items",),
    ),
}

CORRECT = {
    "locked counter": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.n = 0
    def add(self):
        with self._lock:
            self.n += 1
            return self.n
""",
        ("add",),
    ),
    "lock by another name": Case(
        """
from threading import RLock
class Box:
    def __init__(self):
        self._lock = RLock()
        self.n = 0
    def add(self):
        with self._lock:
            return self.twice()
    def twice(self):
        with self._lock:
            self.n += 2
            return self.n
""",
        ("add", "twice"),
    ),
    "lock of the module": Case(
        """
import threading
LOCK = threading.Lock()
count = 0
def bump():
    global count
    with LOCK:
        count += 1
        return count
""",
        ("bump",),
        owner=None,
        state=("count",),
    ),
    "lock made by a dataclass": Case(
        """
import threading
from dataclasses import dataclass, field
@dataclass
class Box:
    n: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    def add(self):
        with self._lock:
            self.n += 1
            return self.n
""",
        ("add",),
    ),
    "state of each thread": Case(
        """
import threading
class Box:
    def __init__(self):
        self._own = threading.local()
    def add(self):
        self._own.n = getattr(self._own, "n", 0) + 1
        return self._own.n
""",
        ("add",),
        state=("_own",),
    ),
    "state by identity of threads": Case(
        """
import threading
class Box:
    def __init__(self):
        self.d = {}
    def enter(self):
        self.d[threading.get_ident()] = 1
        return threading.get_ident()
""",
        ("enter",),
        state=("d",),
    ),
    "ids of itertools.count": Case(
        """
import itertools, threading
class Box:
    def __init__(self):
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self.d = {}
        self.last = None
    def add(self, name):
        number = next(self._ids)
        with self._lock:
            self.d[number] = name
            self.last = name
        return number
""",
        ("add",),
        state=("d",),
    ),
    "time stamps": Case(
        """
import threading, time
from time import monotonic
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.d = {}
    def mark(self, key):
        now = (time.time(), monotonic(), time.perf_counter_ns())
        time.sleep(0.5)
        took = monotonic() - now[1]
        with self._lock:
            self.d[key] = now, took
""",
        ("mark",),
        state=("d",),
    ),
    "random names": Case(
        """
import random, secrets, threading, uuid
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.d = {}
    def add(self, key):
        name = uuid.uuid4(), secrets.token_hex(4), random.random(), random.randint(1, 99)
        with self._lock:
            self.d[key] = name
        return name
""",
        ("add",),
        state=("d",),
    ),
    "value computed twice": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def square(self, n):
        found = self.d.get(n)
        if found is None:
            found = self.d[n] = n * n
        return found
""",
        ("square",),
        state=("d",),
    ),
    "cached by functools": Case(
        """
import functools
class Box:
    def __init__(self):
        self.n = 3
    @functools.cached_property
    def rows(self):
        return [self.n]
    @functools.lru_cache
    def made(self, n):
        return [n]
""",
        ("made", "rows"),
    ),
    "live list leaves after its lock": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.items = []
    def add(self, item):
        with self._lock:
            self.items.append(item)
        return self.items
""",
        ("add",),
        state=("items",),
    ),
    "atomic operations": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def claim(self, key, value):
        return self.d.setdefault(key, value)
""",
        ("claim",),
        state=("d",),
    ),
    "queue": Case(
        """
import queue
class Box:
    def __init__(self):
        self.q = queue.Queue()
    def put(self, item):
        self.q.put(item)
    def take(self):
        return self.q.get()
""",
        ("put", "take"),
        state=("q",),
    ),
    "wait with a time limit": Case(
        """
import queue
class Box:
    def __init__(self):
        self.q = queue.Queue()
    def put(self, item):
        self.q.put(item)
    def take(self):
        try:
            return self.q.get(timeout=5)
        except queue.Empty:
            return None
""",
        ("put", "take"),
        state=("q",),
    ),
    "refuses to overlap by a try for its lock": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.n = 0
    def run(self):
        if not self._lock.acquire(blocking=False):
            return False
        try:
            self.n += 1
            return True
        finally:
            self._lock.release()
""",
        ("run",),
    ),
    "refuses to overlap by a mark": Case(
        """
import threading
class BusyError(Exception):
    pass
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self._busy = False
        self.n = 0
    def run(self):
        with self._lock:
            if self._busy:
                raise BusyError
            self._busy = True
        n = self.n
        self.n = n + 1
        with self._lock:
            self._busy = False
""",
        ("run",),
    ),
    "condition": Case(
        """
import threading
class Box:
    def __init__(self):
        self._changed = threading.Condition()
        self.items = []
    def put(self, item):
        with self._changed:
            self.items.append(item)
            self._changed.notify()
    def take(self):
        with self._changed:
            while not self.items:
                self._changed.wait()
            return self.items.pop(0)
""",
        ("put", "take"),
        state=("items",),
    ),
    "double check": Case(
        """
import threading
class Thing:
    pass
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self._thing = None
    def thing(self):
        if self._thing is None:
            with self._lock:
                if self._thing is None:
                    self._thing = Thing()
        return self._thing
""",
        ("thing",),
        state=("_thing",),
    ),
    "copy on write": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.items = ()
    def add(self, item):
        with self._lock:
            self.items = (*self.items, item)
    def read(self):
        return self.items
""",
        ("add", "read"),
        state=("items",),
    ),
    "lock made on first use": Case(
        """
import threading
class Box:
    def __init__(self):
        self.locks = {}
        self.d = {}
    def add(self, key):
        with self.locks.setdefault(key, threading.Lock()):
            self.d[key] = self.d.get(key, 0) + 1
""",
        ("add",),
        state=("d",),
    ),
    "weak references": Case(
        """
import threading, weakref
class Thing:
    pass
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.things = weakref.WeakSet()
    def make(self):
        thing = Thing()
        with self._lock:
            self.things.add(thing)
        return thing
""",
        ("make",),
        state=("things",),
    ),
    "log in the order of arrival": Case(
        """
import logging
LOG = logging.getLogger("box")
class Box:
    def __init__(self):
        self.lines = []
    def note(self, name):
        LOG.info("note %s", name)
        self.lines.append(("begin", name))
        self.lines.append(("end", name))
""",
        ("note",),
        state=("lines",),
    ),
    "generator over a copy": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.items = []
    def add(self, item):
        with self._lock:
            self.items.append(item)
    def each(self):
        with self._lock:
            copy = list(self.items)
        yield from copy
""",
        ("add", "each"),
        state=("items",),
    ),
    "sets of words": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.words = set()
    def add(self, name):
        with self._lock:
            self.words |= {name, name + name, "z" + name}
        return len(name)
""",
        ("add",),
        state=("words",),
    ),
}

CORRECT |= {
    "those that wait are counted": Case(
        """
import threading
class Box:
    def __init__(self):
        self._changed = threading.Condition()
        self.items = []
        self.waiting = 0
    def put(self, item):
        with self._changed:
            self.items.append(item)
            self._changed.notify()
    def take(self):
        with self._changed:
            self.waiting += 1
            self._changed.wait_for(lambda: self.items, timeout=5)
            self.waiting -= 1
            return self.items.pop(0) if self.items else None
    def crowd(self):
        with self._changed:
            return self.waiting
""",
        ("take", "crowd", "put"),
        state=("waiting",),
    ),
    "keyed by address": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.d = {}
    def add(self, name):
        thing = [name]
        with self._lock:
            self.d[id(thing)] = thing
        return id(thing)
""",
        ("add",),
        state=("d",),
    ),
    "simple queue": Case(
        """
import queue
class Box:
    def __init__(self):
        self.q = queue.SimpleQueue()
    def put(self, item):
        self.q.put(item)
    def take(self):
        return self.q.get()
""",
        ("put", "take"),
        state=("q",),
    ),
}

CORRECT |= {
    "block between taking and giving back": Case(
        """
import threading
from contextlib import contextmanager
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.free = 1
    @contextmanager
    def lease(self):
        with self._lock:
            self.free -= 1
        yield
        with self._lock:
            self.free += 1
    def left(self):
        with self._lock:
            return self.free
""",
        ("lease", "left"),
        state=("free",),
    ),
    "generator that locks for each item": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.n = 0
    def add(self):
        with self._lock:
            self.n += 1
    def read(self):
        for _ in range(2):
            with self._lock:
                n = self.n
            yield n
""",
        ("add", "read"),
    ),
}
RACY |= {
    "generator over what another call changes": Case(
        """
class Box:
    def __init__(self):
        self.d = {"a": 1, "b": 2}
    def drop(self):
        self.d.pop("b", None)
    def each(self):
        for key in self.d:
            yield self.d[key]
""",
        ("each", "drop"),
        state=("d",),
    ),
}

RACY |= {
    "what is done when a callback fails": Case(
        """
class Box:
    def __init__(self):
        self.n = 0
    def call(self, func):
        try:
            return func()
        except Exception:
            self.n += 1
            raise
""",
        ("call",),
    ),
    "a count of those inside of a block": Case(
        """
class Box:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, *failure):
        self.n -= 1
""",
        ("__exit__",),
    ),
}

CORRECT |= {
    "a container that is made anew while it is empty": Case(
        """
class Box:
    def __init__(self):
        self.d = {}
    def known(self):
        if not self.d:
            self.d = {}
        return self.d
""",
        ("known",),
        state=("d",),
    ),
    "an equal value that is computed twice": Case(
        """
class Value:
    def __init__(self):
        self.parts = [[1], [2]]
    def __eq__(self, other):
        return self.parts == other.parts
    def __hash__(self):
        return 1
class Box:
    def __init__(self):
        self.value = None
    def get(self):
        if self.value is None:
            self.value = Value()
        return self.value
""",
        ("get",),
        state=("value",),
    ),
    "a lock that one call takes and another gives back": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self._locks = {}
        self.d = {}
    def take(self, key):
        with self._lock:
            lock = self._locks.setdefault(key, threading.RLock())
        lock.acquire()
        return self.d.get(key)
    def give(self, key):
        lock = self._locks[key]
        with lock:
            self.d[key] = 1
        lock.release()
""",
        ("give", "take"),
        state=("d",),
    ),
}

CORRECT |= {
    "callers that wait share one run": Case(
        """
import threading
class Box:
    def __init__(self):
        self._changed = threading.Condition()
        self.running = None
    def share(self, func):
        with self._changed:
            run = self.running
            if run is None:
                run = self.running = []
                leads = True
            else:
                leads = False
                while not run:
                    self._changed.wait()
        if not leads:
            return run[0]
        result = func()
        with self._changed:
            run.append(result)
            self.running = None
            self._changed.notify_all()
        return result
""",
        ("share",),
        state=("running",),
    ),
    "an argument that a busy object would ask": Case(
        """
import threading
class Box:
    def __init__(self):
        self._lock = threading.Lock()
        self.busy = False
        self.n = 0
    def add(self, patience):
        while True:
            with self._lock:
                if not self.busy:
                    self.busy = True
                    break
            patience.lose()
        with self._lock:
            self.n += 1
            self.busy = False
""",
        ("add",),
    ),
}
