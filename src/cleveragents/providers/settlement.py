"""The rule of settling: what one more bill does to a reservation, in whatever state it is."""

from __future__ import annotations

from dataclasses import dataclass

from cleveragents.providers.reservation import Outcome, State


@dataclass(frozen=True, slots=True)
class Effect:
    """What changes; amounts are pico-dollars to add."""

    outcome: Outcome
    #: What stands on the reservation's own accounts for it afterwards.
    billed: int
    #: Added to what its accounts have spent.
    spent: int
    #: Whether it adds something above what was promised, so that a user should know.
    over: bool
    #: Added to the bill that was known before, on that bill's own accounts.
    raised: int


def settlement(state: State, promised: int, billed: int, actual: int, known: int | None) -> Effect:
    """Return what a bill does; `known` is the amount of the same bill where it was told before.

    Every bill counts once, and the larger of two amounts told for it counts, in any order.
    """
    if known is None:
        in_time = Outcome.CHARGED if actual <= promised else Outcome.OVERRUN
        outcome = in_time if state is State.OPEN else Outcome.LATE
        over = actual > promised
        return Effect(outcome, billed=actual, spent=actual - billed, over=over, raised=0)
    raised = max(0, actual - known)
    over = raised > 0 and actual > promised
    left = billed if state is State.SETTLED else 0
    return Effect(Outcome.REPEATED, billed=left, spent=left - billed, over=over, raised=raised)
