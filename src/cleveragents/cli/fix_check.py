"""The check of `cleveragents fix`: run in a sandbox of its own, and judged by how it was before."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cleveragents.cli.table import one_line
from cleveragents.domain.command import Command, CommandLimits
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.stop_signal import StopSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cleveragents.application.attempts import Bench
    from cleveragents.domain.command import Finished
    from cleveragents.runs import WorkspaceBenches

#: As long as the check of a node may take.
_CHECK_S_MAX: Final = 300.0
#: How pytest names what failed, at the end of its output.
_FAILED_TEST: Final = re.compile(rb"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_PYTHON: Final = re.compile(r"^(py\.?test|python[\d.]*)$")
#: What `env` and shells answer for a program that is not there, or that is none.
_NOT_STARTED: Final = {126, 127}
_SAID_CHARS_MAX: Final = 200
_COLOR: Final = re.compile(rb"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check; without an exit code it did not run, and says nothing."""

    exit_code: int | None
    says: str = ""
    failures: frozenset[str] = frozenset()

    @property
    def passes(self) -> bool:
        """Say whether it ran and was content."""
        return self.exit_code == 0

    def is_worse_than(self, before: Checked) -> bool:
        """Say whether something fails that did not before; what did may go on to.

        A check that passed and cannot run any more is worse: a fixer may have broken it.
        """
        if self.exit_code is None:
            return before.passes
        if self.passes:
            return False
        return before.exit_code in {0, None} or not self.failures <= before.failures

    def compared(self, before: Checked) -> str:
        """Say how it stands, in the light of how it stood."""
        if self.exit_code is None:
            return f"not run: {self.says}" if self.says else "not run"
        if self.passes:
            return "passes"
        if before.passes or before.exit_code is None:
            return f"fails: {self.says}"
        fresh = sorted(self.failures - before.failures)
        if fresh:
            return f"red before, and now also {', '.join(fresh[:3])}" + (
                f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""
            )
        return f"red before and after: {self.says}"


NOT_RUN: Final = Checked(None)


class FixCheck:
    """Runs the check on the tree of a plan; it counts how often. Used by one thread."""

    def __init__(self, benches: WorkspaceBenches, argv: tuple[str, ...] | None, root: Path) -> None:
        self._benches = benches
        self.argv = None if argv is None else _in_place(argv, root)
        self.count = 0

    @contextmanager
    def beside(self, plan_id: str, when: str) -> Iterator[Callable[[], Checked]]:
        """Check the plan's tree as it is now while the block does other work.

        What is given waits for the verdict. A check that nobody waited for is stopped.
        """
        if self.argv is None:
            yield lambda: NOT_RUN
            return
        self.count += 1
        node = f"check-{when}-{self.count}"
        bench, stop = self._benches.open(plan_id, node, 1, actor="check"), StopSignal()
        try:
            # The sandbox is made now: what is merged from here on is not what is checked.
            _ = bench.files
            with ThreadPoolExecutor(1, thread_name_prefix="ca-check") as pool:
                running = pool.submit(_outcome, bench, self.argv, stop)
                try:
                    yield running.result
                finally:
                    stop.stop("nobody waits for this check any more")
        finally:
            bench.close()

    def now(self, plan_id: str, when: str) -> Checked:
        """Check the plan's tree as it is now."""
        with self.beside(plan_id, when) as verdict:
            return verdict()


def _outcome(bench: Bench, argv: tuple[str, ...], stop: StopSignal) -> Checked:
    command = Command(argv, limits=CommandLimits(time_s=_CHECK_S_MAX))
    try:
        return _judged(bench.run(command, stop=stop))
    except SandboxError as error:
        return Checked(None, error.message)


def _judged(finished: Finished) -> Checked:
    if finished.stopped is not None:
        return Checked(finished.exit_code or 1, f"it reached its limit of {finished.stopped}")
    if finished.exit_code in _NOT_STARTED:
        return Checked(None, f"exit code {finished.exit_code}, it could not be started")
    printed = _COLOR.sub(b"", finished.stdout + b"\n" + finished.stderr)
    last = printed.rstrip().rpartition(b"\n")[2].decode("utf-8", "replace")
    says = one_line(redact_to(last, _SAID_CHARS_MAX)) or f"exit code {finished.exit_code}"
    failures = {os.fsdecode(one) for one in _FAILED_TEST.findall(printed)}
    return Checked(finished.exit_code, says, frozenset(failures))


def _in_place(check: tuple[str, ...], root: Path) -> tuple[str, ...]:
    """Return a check that looks at the sandbox.

    A package that is installed in place is found in the user's tree, where nothing was changed:
    its tests would pass whatever the fixers did. So the sandbox's own sources come first.
    """
    if not _PYTHON.search(Path(check[0]).name):
        return check
    sources = "src" if (root / "src").is_dir() else "."
    return ("env", f"PYTHONPATH={sources}", "PYTHONDONTWRITEBYTECODE=1", *check)
