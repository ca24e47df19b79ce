"""Runs a fixer that is told its files by name, or tells by its exit code that it changed some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cleveragents.application.attempts import ActorResult
from cleveragents.domain.command import Command, CommandLimits, last_words
from cleveragents.domain.error_record import ErrorCategory
from cleveragents.domain.errors import SandboxError
from cleveragents.domain.redaction import redact_to
from cleveragents.domain.stop_signal import Stopped
from cleveragents.infrastructure.fixers.fixer import FileChoice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cleveragents.application.attempts import AttemptContext, Bench, Files
    from cleveragents.domain.command import Finished
    from cleveragents.domain.stop_signal import StopSignal
    from cleveragents.infrastructure.fixers.fixer import Fixer

#: What a plan calls `fix` by.
FIX: Final = f"{__name__}:fix"

#: Every system takes that much on one command line.
_NAMES_BYTES_MAX: Final = 100_000
_SAID_CHARS_MAX: Final = 2_000


def fix(attempt: AttemptContext) -> ActorResult:
    """Run the fixer that the inputs of the node describe, on as many files at once as can be."""
    inputs = attempt.inputs
    argv = tuple(inputs["argv"])
    limits = (
        CommandLimits() if attempt.node.timeout_s is None else CommandLimits(attempt.node.timeout_s)
    )
    printed = []
    for names in _rounds(attempt.files, inputs["files"]):
        command = Command((*argv, *names), env=attempt.node.env, limits=limits)
        finished = attempt.bench.run(command, stop=attempt.stop)
        _raise_unless_done(argv[0], finished, inputs["codes"])
        printed.append(finished.stdout.decode("utf-8", "replace"))
    return ActorResult(redact_to("".join(printed), _SAID_CHARS_MAX))


def run_fixer(fixer: Fixer, bench: Bench, stop: StopSignal) -> None:
    """Run a fixer in a sandbox, outside of a plan's nodes; raise when it fails."""
    chosen = None if fixer.files is None else fixer.files.plain()
    for names in _rounds(bench.files, chosen):
        finished = bench.run(Command((*fixer.argv, *names)), stop=stop)
        _raise_unless_done(fixer.argv[0], finished, fixer.codes)


def _rounds(files: Files, chosen: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names for each run: none for a fixer that finds its files by itself."""
    if chosen is None:
        yield ()
        return
    names: list[str] = []
    room = _NAMES_BYTES_MAX
    for path in _chosen(files, FileChoice.of(chosen)):
        name = f"./{path}" if path.startswith("-") else path
        size = len(name.encode("utf-8", "surrogateescape")) + 1
        if names and size > room:
            yield tuple(names)
            names, room = [], _NAMES_BYTES_MAX
        names.append(name)
        room -= size
    if names:
        yield tuple(names)


def _chosen(files: Files, choice: FileChoice) -> Iterator[str]:
    for path in sorted(files.walk()):
        if not choice.takes(path):
            continue
        try:
            data = b"" if choice.suffixes else files.read(path)
        except SandboxError:
            # A link to nowhere, or out of the tree: nothing that a fixer may touch.
            continue
        if choice.takes_content(data):
            yield path


def _raise_unless_done(program: str, finished: Finished, codes: Sequence[int]) -> None:
    if finished.stopped == "cancelled":
        raise Stopped("cancelled")
    if finished.stopped is not None:
        code, category = "CA5005", ErrorCategory.TOOL_TIMEOUT
        how = f"reached its limit of {finished.stopped} and was ended"
    elif finished.exit_code not in codes:
        code, category = "CA5201", ErrorCategory.TOOL_CRASH
        how = f"failed with exit code {finished.exit_code}"
    else:
        return
    last = last_words(finished, _SAID_CHARS_MAX)
    raise SandboxError(
        f"The fixer {program!r} {how}" + (f": {last.splitlines()[-1]}" if last else ""),
        code=code,
        facts={
            "category": category,
            "program": program,
            "exit_code": finished.exit_code,
            "last_lines": last,
        },
    )
