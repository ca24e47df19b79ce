"""`cleveragents demo`: what the promises look like when twenty actors work at once."""

from __future__ import annotations

import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output
from cleveragents.domain.errors import RequestError
from cleveragents.domain.money import Money

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from cleveragents.cli.demo_run import DemoRun

ACTORS_MAX: Final = 256


class Interrupt:
    """Whether the user pressed Ctrl-C: a plain flag, because a signal may come at any moment."""

    is_asked = False


def demo(options: Namespace) -> int:
    """Run the demo and show its books; 0 only when every check of them holds."""
    if not 1 <= options.actors <= ACTORS_MAX:
        raise RequestError(f"`--actors` must be 1 to {ACTORS_MAX}, got {options.actors}")
    budget = Money.of(options.budget_usd_max)
    from cleveragents.cli.demo_run import DemoRun

    actors = "1 actor" if options.actors == 1 else f"{options.actors} actors at once"
    output.talk(f"demo  {actors}, budget {budget}, seed {options.seed}")
    with (
        _first_interrupt_asks() as interrupt,
        tempfile.TemporaryDirectory(prefix="cleveragents-demo-") as folder,
    ):
        root = Path(folder) / "shop"
        run = DemoRun(root, options.actors, options.seed, budget, output.talk, interrupt)
        report = _report_of(run)
    if report is None:
        output.talk("interrupted: the temporary repository is removed, nothing else was made")
        raise KeyboardInterrupt
    if options.json:
        output.record(report)
    else:
        output.data(report["diff"])
        output.data(_as_text(report))
    return 0 if all(report["checks"].values()) else 1


def _report_of(run: DemoRun) -> dict[str, Any] | None:
    """Return the report; None after an interrupt, whatever else it made fail."""
    try:
        report = run.run()
    except BaseException:
        if not run.interrupt.is_asked:
            raise
        return None
    return None if run.interrupt.is_asked else report


@contextmanager
def _first_interrupt_asks() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a question to stop, asked when it is safe; a second ends at once.

    A `KeyboardInterrupt` may come between any two instructions, and leave things behind.
    """
    interrupt = Interrupt()
    # Known before `ask` can be called: the signal may come as soon as it is in place.
    before = signal.getsignal(signal.SIGINT)

    def ask(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        interrupt.is_asked = True

    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def _as_text(report: dict[str, Any]) -> str:
    changes, breaker = report["changes"].values(), report["breaker"]
    pico = f"{report['spent_pico_usd']:,} pico-USD"
    facts = output.facts(
        {
            "spent": f"{report['spent']} of {report['budget']}, exactly {pico}",
            "unconfirmed": f"{report['unconfirmed']} calls without a bill, at their upper bound",
            "refused": f"{report['calls_refused']} calls that could have exceeded the budget",
            "errors": _listed(report["errors"]),
            "decided": _listed(report["decisions"]),
            "breaker": f"{breaker['pauses']} pauses, {breaker['probes']} probes",
            "changes": f"{sum(changes)}, each in its actor's own changeset",
            "by actor": ", ".join(f"{n} {actor}" for actor, n in report["changes"].items()),
        }
    )
    checks = "\n".join(
        f"  {'✓' if holds else '✗'} {check}" for check, holds in report["checks"].items()
    )
    return f"{facts}\n\n{checks}"


def _listed(counts: dict[str, int]) -> str:
    parts = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{sum(counts.values())}: {parts}" if counts else "none"
