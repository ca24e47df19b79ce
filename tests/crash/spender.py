"""One of several processes on one budget: spends until it is refused, then says how often it could.

Run as `python spender.py STORE THREADS [escrow [loud]]`: it says `ready` and starts when given a
line. A loud one says `paid` after each call.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from cleveragents.domain.errors import BudgetExceeded
from cleveragents.infrastructure.durable_cost_tracker import DurableCostTracker
from cleveragents.infrastructure.escrow_cost_tracker import EscrowCostTracker
from cleveragents.infrastructure.store import Store
from cleveragents.testing import run_together


def main() -> None:
    path, threads, *escrow = sys.argv[1:]
    loud = "loud" in escrow
    kind = EscrowCostTracker if escrow else DurableCostTracker
    with Store(Path(path)) as store, kind(store) as tracker:
        pause = threading.Event()

        def spend() -> int:
            calls = 0
            while True:
                try:
                    reservation = tracker.reserve(0.01)
                except BudgetExceeded:
                    return calls
                # Hold the promise for a moment, as a call does, so that the others get a turn.
                pause.wait(0.002)
                reservation.settle(0.01)
                calls += 1
                if loud:
                    os.write(1, b"paid\n")

        print("ready", flush=True)
        sys.stdin.readline()
        print(sum(run_together([spend] * int(threads))))


if __name__ == "__main__":
    main()
