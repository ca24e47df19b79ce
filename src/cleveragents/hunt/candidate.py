"""A candidate: state that threads may share, and the calls that touch it in a way that may race.

It is found by reading alone; nothing here says that it is a bug.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Access", "Candidate", "Evidence", "EvidenceKind", "Pattern", "is_shared"]


class Pattern(StrEnum):
    """How the state is touched."""

    #: `self.n += 1`, `d[k] = d[k] + 1`, `d[k].append(x)` after `d[k] = []`.
    READ_MODIFY_WRITE = "read-modify-write"
    #: `if k not in d: d[k] = …`, `if not self._x: self._x = …`, emptiness then index or pop.
    CHECK_THEN_ACT = "check-then-act"
    #: `items[-1]` beside `items.append(…)`.
    LAST_ELEMENT = "last-element"
    #: A loop over a container that another method changes.
    ITERATE_BESIDE_MUTATE = "iterate-beside-mutate"
    #: Several attributes that belong together are written one after the other.
    TORN_UPDATE = "torn-update"
    #: Written under a lock in one place, touched without it in another.
    MIXED_GUARD = "mixed-guard"
    #: A lock that every call makes anew guards nothing.
    LOCK_PER_CALL = "lock-per-call"
    #: A callback or a wait while a lock is held: no lost data, but a deadlock in waiting.
    LOCK_HELD_ACROSS = "lock-held-across"


class EvidenceKind(StrEnum):
    """Why the object is taken to be shared by threads, the strongest first."""

    PASSED_TO_THREADS = "passed-to-threads"
    MODULE_INSTANCE = "module-instance"
    SINGLETON = "singleton"
    REGISTERED = "registered"
    CLAIMS_SAFETY = "claims-safety"
    HAS_LOCK = "has-lock"
    USES_THREADS = "uses-threads"
    #: Nothing speaks for it but that the class keeps state.
    STATEFUL = "stateful"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One reason to believe that threads share the object, with its place."""

    kind: EvidenceKind
    #: A sentence without a period that a person can read.
    reason: str
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One place that touches the state."""

    #: The method or function that holds it, such as `add` or `_grow`.
    call: str
    line: int
    #: `read`, `write`, `test`, `iterate` or `call`.
    kind: str
    #: Whether it stands under a lock.
    guarded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """State, its owner, and the calls to be tried against one another.

    `path` is relative to the root of the hunt, `import_root` the folder, relative to it, that has
    to be on `sys.path` for `module` to be found.
    """

    module: str
    path: str
    import_root: str
    #: The class by its qualified name; None for state of the module itself.
    owner: str | None
    #: The attribute or global names that race, sorted.
    state: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    #: Public methods (or functions) that touch the state, the most suspicious first.
    calls: tuple[str, ...]
    accesses: tuple[Access, ...]
    evidence: tuple[Evidence, ...]
    #: The line where the owner (or the state of a module) begins.
    line: int
    #: The name of the owner's lock, if it has one: `_lock`.
    lock: str | None = None
    #: Whether its docstring claims that threads may share it.
    claims_safety: bool = False
    #: Higher is more worth trying.
    rank: int = 0

    @property
    def name(self) -> str:
        """What people call it: `app.cache:Cache._items`."""
        owner = f"{self.owner}." if self.owner else ""
        return f"{self.module}:{owner}{'+'.join(self.state)}"

    @property
    def id(self) -> str:
        """Stable while the names stay: lines may move."""
        about = "\0".join([self.module, self.owner or "", *self.state])
        return f"h-{hashlib.sha256(about.encode()).hexdigest()[:10]}"


def is_shared(candidate: Candidate) -> bool:
    """Say whether anything speaks for threads sharing it, beyond that it keeps state."""
    return any(one.kind is not EvidenceKind.STATEFUL for one in candidate.evidence)
