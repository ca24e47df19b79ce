"""`cleveragents demo`: a plan with many actors, killed in its middle, and its books afterwards."""

from __future__ import annotations

import shutil
import signal
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cleveragents.cli import output
from cleveragents.domain.errors import RequestError

if TYPE_CHECKING:
    import subprocess
    from argparse import Namespace
    from collections.abc import Callable, Iterator

    from cleveragents.cli.demo_run import DemoRun

#: Fewer would be done before anybody can kill them.
ACTORS_MIN: Final = 8
ACTORS_MAX: Final = 64


class Interrupt:
    """Whether the user pressed Ctrl-C: a plain flag, because a signal may come at any moment."""

    def __init__(self) -> None:
        self.is_asked = False
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self) -> None:
        """Ask to stop, also the process that runs now."""
        self.is_asked = True
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)

    def pass_on_to(self, child: subprocess.Popen[bytes]) -> None:
        """Know the process that runs now; what was asked before it began counts too."""
        self._child = child
        if self.is_asked:
            child.send_signal(signal.SIGINT)


def demo(options: Namespace) -> int:
    """Run the demo and show its books; 0 only when every check of them holds."""
    if options.llm:
        from cleveragents.cli.demo_llm import LlmDemo, as_text, check_packages

        check_packages()
        output.talk("demo  one agent, one failing test, and a model server on this machine\n")
        return _played(options, LlmDemo, as_text)
    if not ACTORS_MIN <= options.actors <= ACTORS_MAX:
        rule = f"`--actors` must be {ACTORS_MIN} to {ACTORS_MAX}"
        raise RequestError(f"{rule}, got {options.actors}")
    from cleveragents.cli.demo_run import DemoRun

    output.talk(f"demo  {options.actors} actors on one file, in a temporary git repository\n")
    return _played(options, DemoRun, _as_text)


def _played(
    options: Namespace, play: type[DemoRun], as_text: Callable[[dict[str, Any]], str]
) -> int:
    with _first_interrupt_asks() as interrupt, _folder(keep=options.keep) as folder:
        run = play(folder / "shop", options.actors, output.talk, interrupt)
        report = _report_of(run)
        if report is None:
            # Whoever stops it wants nothing of it.
            shutil.rmtree(folder, ignore_errors=True)
    if report is None:
        output.talk("interrupted: the temporary repository is removed, nothing else was made")
        raise KeyboardInterrupt
    if options.keep:
        report["folder"] = str(run.root)
    if options.json:
        output.record(report)
    else:
        output.data(as_text(report))
    return 0 if all(report["checks"].values()) else 1


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Give a new folder, which is removed at the end unless it is to be kept."""
    if keep:
        yield Path(tempfile.mkdtemp(prefix="cleveragents-demo-"))
        return
    with tempfile.TemporaryDirectory(prefix="cleveragents-demo-") as folder:
        yield Path(folder)


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
        interrupt.ask()

    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)


def _as_text(report: dict[str, Any]) -> str:
    killed, folder = report["killed"], report.get("folder")
    raised = f", then {report['spent']} of {report['budget_raised']}"
    facts = {
        "plan": f"{report['plan']}: {report['nodes']} nodes, {report['at_once']} at once",
        "killed": f"{killed['done']} nodes were done, {killed['to_merge']} waited to be merged,"
        f" {killed['cut_off']} were cut off",
        "ran again": f"{report['ran_again']} of {killed['done']} finished nodes",
        "spent": f"{report['spent_at_stop']} of {report['budget']}{raised}",
        "refused": f"{report['calls_refused']} calls that could have exceeded the budget",
        "errors": _listed(report["errors"]),
        "decided": _listed(report["decisions"]),
        "edits": f"of one file by {report['editors']} actors, each in its own changeset",
        "took": f"{report['seconds']} s",
        **({"kept": folder} if folder else {}),
    }
    checks = "\n".join(
        f"  {'✓' if holds else '✗'} {check}" for check, holds in report["checks"].items()
    )
    return f"{output.facts(facts)}\n\n{checks}"


def _listed(counts: dict[str, int]) -> str:
    parts = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{sum(counts.values())}: {parts}" if counts else "none"
