"""Why an owner of state is taken to be shared, the strongest reason first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from cleveragents.hunt.candidate import Evidence, EvidenceKind
from cleveragents.hunt.find.sharing import THREAD_TARGET

if TYPE_CHECKING:
    from cleveragents.hunt.find.modules import ModuleFacts
    from cleveragents.hunt.find.scopes import Scope, Tree

__all__ = ["STRENGTH", "Reasons"]

#: What each kind is worth; far more than any pattern is.
STRENGTH: Final[dict[EvidenceKind, int]] = {
    EvidenceKind.PASSED_TO_THREADS: 90,
    EvidenceKind.MODULE_INSTANCE: 75,
    EvidenceKind.SINGLETON: 70,
    EvidenceKind.REGISTERED: 65,
    EvidenceKind.CLAIMS_SAFETY: 60,
    EvidenceKind.HAS_LOCK: 45,
    EvidenceKind.USES_THREADS: 25,
    EvidenceKind.STATEFUL: 0,
}
_ORDER: Final = {kind: at for at, kind in enumerate(EvidenceKind)}
#: More of one kind say nothing new.
_OF_A_KIND_MAX: Final = 3


class Reasons:
    """The places of the whole tree that speak for sharing, by the class that they are about."""

    def __init__(self, tree: Tree) -> None:
        self._about: dict[int, list[Evidence]] = defaultdict(list)
        self._targets: dict[str, set[str]] = defaultdict(set)
        for module in tree.modules:
            for site in module.sites:
                name, _, method = site.about.partition(".")
                if method:
                    self._targets[module.path].add(site.about.removeprefix(THREAD_TARGET))
                    continue
                found = tree.find_class(name, module)
                evidence = Evidence(
                    kind=site.kind, reason=site.reason, path=module.path, line=site.line
                )
                for one in () if found is None else tree.line_of(found, module):
                    self._about[id(one)].append(evidence)

    def targets(self, module: ModuleFacts) -> frozenset[str]:
        """Return the functions and `Class.method`s of a module that threads run."""
        return frozenset(self._targets.get(module.path, ()))

    def of(self, scope: Scope) -> tuple[Evidence, ...]:
        """Return what speaks for an owner, at least that it keeps state."""
        module, owner = scope.module, scope.owner
        found: list[Evidence] = []

        def add(kind: EvidenceKind, reason: str) -> None:
            line = 1 if owner is None else owner.line
            found.append(Evidence(kind=kind, reason=reason, path=module.path, line=line))

        if owner is None:
            add(EvidenceKind.MODULE_INSTANCE, "The module itself keeps it")
        else:
            found += self._about.get(id(owner), ())
        if scope.claims_safety:
            add(EvidenceKind.CLAIMS_SAFETY, "Its docstring claims that threads may share it")
        if scope.lock is not None:
            add(EvidenceKind.HAS_LOCK, f"It has the lock `{scope.lock}`")
        if module.uses_threads and not (owner is not None and _is_private(owner.name)):
            # A private class without a lock is the affair of the class that uses it.
            add(EvidenceKind.USES_THREADS, "Its module imports what threads need")
        if owner is not None and owner.is_confined:
            found.clear()
            add(EvidenceKind.STATEFUL, "Its docstring says that it is for one thread")
        if not found:
            add(EvidenceKind.STATEFUL, "It keeps state")
        return _few(found)


def _few(found: list[Evidence]) -> tuple[Evidence, ...]:
    kept: list[Evidence] = []
    ordered = sorted(found, key=lambda one: (_ORDER[one.kind], one.path, one.line, one.reason))
    for one in dict.fromkeys(ordered):
        if sum(other.kind is one.kind for other in kept) < _OF_A_KIND_MAX:
            kept.append(one)
    return tuple(kept)


def _is_private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")
