"""How much may be spent on one candidate."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ProveOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveOptions:
    """Limits of a proof; they come as JSON, so they are plain values."""

    #: Wall time for the whole candidate.
    budget_s: float = 20.0
    #: How long the program waits beyond the budget before it ends a proof that hangs.
    grace_s: float = 10.0
    #: How often a found interleaving is replayed before it is called proven.
    replays: int = 10
    #: A file of factories, relative to the root of the hunt or absolute.
    factories: str | None = None
    #: A file of arguments that the recorder wrote while the repository's tests ran.
    recorded: str | None = None
    #: Limits of the process, for the program alone; None sets none.
    memory_bytes_max: int | None = 2_000_000_000
    cpu_s_max: int | None = None
